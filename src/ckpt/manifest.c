/* manifest.c: the text of manifest.json.
 *
 * The last line but one is the XXH3 of everything before it.  A reader computes it anew, writes that ending,
 * and compares: no byte of the file can differ, not even a space. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "ckpt/ckpt_internal.h"

#define TAIL_BYTES 32 /* what `tail` writes */

static const char *const role_names[] = {
    [LS_VAR_PARAM] = "parameter",
    [LS_VAR_BUFFER] = "buffer",
    [LS_VAR_OPTIMIZER] = "optimizer",
    [LS_VAR_ACCUMULATED] = "accumulated",
};

#define N_ROLES (int)(sizeof role_names / sizeof role_names[0])

const char *ls_ckpt_role_name(ls_var_role role)
{
    return role_names[role];
}

static void tail(char buf[TAIL_BYTES + 1], const char *text, size_t length)
{
    snprintf(buf, TAIL_BYTES + 1, ",\n \"xxh3\": \"%016llx\"\n}\n",
             (unsigned long long)XXH3_64bits(text, length));
}

static json_t *hex(uint64_t x)
{
    char buf[24];

    snprintf(buf, sizeof buf, "%016llx", (unsigned long long)x);
    return json_string(buf);
}

static bool from_hex(const json_t *o, uint64_t *x)
{
    const char *s = json_string_value(o);

    *x = 0;
    if (s == NULL || strlen(s) != 16 || strspn(s, "0123456789abcdef") != 16) return false;
    for (; *s != '\0'; s++) *x = *x << 4 | (uint64_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
    return true;
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

static json_t *tensor_json(const lsi_item *x)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:o}", "name", x->name, "file", LSI_CKPT_TENSORS, "role",
                     role_names[x->role], "dtype", ls_dtype_name(x->dtype), "shape", lsi_shape_json(x->shape),
                     "bytes", (json_int_t)x->bytes, "xxh3", hex(x->xxh3));
}

ls_status lsi_manifest_text(const lsi_manifest *m, ls_text *out, ls_err *err)
{
    json_t *tensors = json_array(), *root;
    char end[TAIL_BYTES + 1];
    ls_status st = LS_OK;

    for (int i = 0; i < m->tensors.n; i++) json_array_append_new(tensors, tensor_json(&m->tensors.items[i]));
    root =
        json_pack("{s:i, s:s, s:o, s:o, s:{s:s, s:I, s:o}, s:o, s:o}", "format", LSI_CKPT_FORMAT, "lockstep",
                  m->version, "plan_hash", hex(m->plan_hash), "metric",
                  isfinite(m->metric) ? json_real(m->metric) : json_null(), "header", "file",
                  LSI_CKPT_TENSORS, "bytes", (json_int_t)m->header_bytes, "xxh3", hex(m->header_xxh3),
                  "tensors", tensors, "state", m->state != NULL ? json_deep_copy(m->state) : json_object());
    if (root == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", LSI_CKPT_MANIFEST);
    LS_TRY(lsi_json_text(root, JSON_INDENT(1), out, err));
    out->length -= 2; /* "\n}" */
    tail(end, out->data, out->length);
    out->data[out->length] = '\0';
    ls_text_add(out, "%s", end);
    if (out->failed) st = ls_fail(err, LS_NOMEM, "%s: no memory", LSI_CKPT_MANIFEST);
out:
    json_decref(root);
    return st;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static bool read_tensor(lsi_item *x, const json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "dtype"));
    const char *role = json_string_value(json_object_get(o, "role"));
    const char *file = json_string_value(json_object_get(o, "file"));
    const json_t *bytes = json_object_get(o, "bytes");
    int t = 0, r = 0;

    x->name = json_string_value(json_object_get(o, "name"));
    if (x->name == NULL || type == NULL || role == NULL || file == NULL) return false;
    while (t < LS_DTYPE_N && strcmp(ls_dtype_name((ls_dtype)t), type) != 0) t++;
    while (r < N_ROLES && strcmp(role_names[r], role) != 0) r++;
    if (t == LS_DTYPE_N || r == N_ROLES || strcmp(file, LSI_CKPT_TENSORS) != 0) return false;
    x->dtype = (ls_dtype)t;
    x->role = (ls_var_role)r;
    if (!lsi_shape_from_json(json_object_get(o, "shape"), &x->shape) || !json_is_integer(bytes)) return false;
    x->bytes = (size_t)ls_shape_count(x->shape) * ls_dtype_size(x->dtype);
    return (size_t)json_integer_value(bytes) == x->bytes && from_hex(json_object_get(o, "xxh3"), &x->xxh3);
}

static ls_status read_tensors(lsi_manifest *m, const json_t *list, ls_err *err)
{
    size_t i;
    json_t *o;

    if (!json_is_array(list)) return ls_fail(err, LS_DATA, "has no list of tensors");
    m->tensors.items = ls_alloc(LS_MEM_CKPT, sizeof *m->tensors.items * json_array_size(list));
    if (m->tensors.items == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for %zu tensors", json_array_size(list));
    json_array_foreach(list, i, o)
    {
        if (!read_tensor(&m->tensors.items[i], o))
            return ls_fail(err, LS_DATA, "tensor %zu is not described as it must be", i);
        m->tensors.n++;
    }
    return LS_OK;
}

static ls_status read_fields(lsi_manifest *m, ls_err *err)
{
    const json_t *header = json_object_get(m->root, "header"), *metric = json_object_get(m->root, "metric");
    json_int_t format = json_integer_value(json_object_get(m->root, "format"));
    json_int_t bytes = json_integer_value(json_object_get(header, "bytes"));

    if (format != LSI_CKPT_FORMAT)
        return ls_fail(err, LS_DATA, "format %lld; this version reads format %d", (long long)format,
                       LSI_CKPT_FORMAT);
    m->version = json_string_value(json_object_get(m->root, "lockstep"));
    m->state = json_object_get(m->root, "state");
    m->metric = json_is_number(metric) ? json_number_value(metric) : (double)NAN;
    m->header_bytes = (size_t)bytes;
    if (m->version == NULL || !json_is_object(m->state) || bytes < 8 ||
        !from_hex(json_object_get(m->root, "plan_hash"), &m->plan_hash) ||
        !from_hex(json_object_get(header, "xxh3"), &m->header_xxh3))
        return ls_fail(err, LS_DATA, "lacks a part, or one has the wrong type");
    return read_tensors(m, json_object_get(m->root, "tensors"), err);
}

ls_status lsi_manifest_parse(lsi_manifest *m, const char *text, size_t length, ls_err *err)
{
    char end[TAIL_BYTES + 1];
    json_error_t why;

    *m = (lsi_manifest){0};
    if (length < TAIL_BYTES) return ls_fail(err, LS_DATA, "ends after %zu bytes", length);
    tail(end, text, length - TAIL_BYTES);
    if (memcmp(end, text + length - TAIL_BYTES, TAIL_BYTES) != 0)
        return ls_fail(err, LS_DATA, "is damaged: its bytes and the hash at its end differ");
    m->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(m->root))
        return ls_fail(err, LS_DATA, "line %d: %s", why.line, m->root == NULL ? why.text : "is no object");
    return read_fields(m, err);
}

void lsi_manifest_release(lsi_manifest *m)
{
    json_decref(m->root);
    ls_free(m->tensors.items);
    *m = (lsi_manifest){0};
}
