/* safetensors.c: tables of tensors, and the header of a safetensors file.
 *
 * The format: 8 bytes with the header's length, little-endian; the header, a JSON object of
 * name: {"dtype", "shape", "data_offsets": [begin, end]} and an optional "__metadata__" of strings; the data.
 * Offsets count from the start of the data, which the tensors must cover without gap or overlap. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ckpt/ckpt_internal.h"

#define MAX_HEADER ((uint64_t)100 << 20) /* what the format's own reader accepts */
#define ALIGN      64
#define METADATA   "__metadata__"

/* Names of the format.  Those without a type of ours can be measured and skipped. */
static const struct {
    const char *name;
    ls_dtype dtype;
    size_t size;
} dtypes[] = {
    {"F32", LS_F32, 4},     {"BF16", LS_BF16, 2},       {"F16", LS_F16, 2},         {"F64", LS_F64, 8},
    {"I32", LS_I32, 4},     {"U8", LS_U8, 1},           {"BOOL", LS_BOOL, 1},       {"I64", LS_DTYPE_N, 8},
    {"U64", LS_DTYPE_N, 8}, {"U32", LS_DTYPE_N, 4},     {"I16", LS_DTYPE_N, 2},     {"U16", LS_DTYPE_N, 2},
    {"I8", LS_DTYPE_N, 1},  {"F8_E4M3", LS_DTYPE_N, 1}, {"F8_E5M2", LS_DTYPE_N, 1},
};

#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

/* -- tables -----------------------------------------------------------------------------------------------
 */

void lsi_table_release(lsi_table *t)
{
    ls_free(t->items);
    ls_arena_destroy(t->arena);
    *t = (lsi_table){0};
}

const lsi_item *lsi_table_find(const lsi_table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0) return &t->items[i];
    return NULL;
}

static ls_status make(lsi_table *t, int n, ls_err *err)
{
    *t = (lsi_table){.items = ls_alloc(LS_MEM_CKPT, sizeof *t->items * (size_t)n)};
    return t->items != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoint: no memory for %d entries", n);
}

/* All of a variable, wherever its pieces are. */
static void add_variable(lsi_table *t, const ls_state *vars, int i)
{
    const ls_tensor whole = ls_state_whole(vars, i);
    const bool cut = ls_state_in_pieces(vars, i);

    t->items[t->n++] = (lsi_item){.name = whole.name,
                                  .dtype = whole.dtype,
                                  .shape = whole.shape,
                                  .role = ls_state_role(vars, i),
                                  .tensor = cut ? NULL : ls_state_at(vars, i),
                                  .vars = cut ? vars : NULL,
                                  .index = i,
                                  .bytes = whole.bytes};
}

static void add(lsi_table *t, const ls_tensor *x, ls_var_role role)
{
    t->items[t->n++] = (lsi_item){
        .name = x->name, .dtype = x->dtype, .shape = x->shape, .role = role, .tensor = x, .bytes = x->bytes};
}

ls_status lsi_table_of_tensors(lsi_table *t, const ls_tensor *const *tensors, int n, ls_err *err)
{
    ls_status st = make(t, n, err);

    for (int i = 0; st == LS_OK && i < n; i++) add(t, tensors[i], LS_VAR_PARAM);
    return st;
}

ls_status lsi_table_of_state(lsi_table *t, const ls_state *vars, ls_err *err)
{
    int n = ls_state_count(vars);
    ls_status st = make(t, n, err);

    for (int i = 0; st == LS_OK && i < n; i++)
        if (ls_state_role(vars, i) != LS_VAR_ACCUMULATED || ls_state_pending(vars)) add_variable(t, vars, i);
    return st;
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

/* Wide elements first, so that every element is aligned although there are no gaps. */
static int by_place(const void *a, const void *b)
{
    const lsi_item *x = a, *y = b;
    size_t sx = ls_dtype_size(x->dtype), sy = ls_dtype_size(y->dtype);

    if (sx != sy) return sx > sy ? -1 : 1;
    return strcmp(x->name, y->name);
}

ls_status lsi_st_arrange(lsi_table *t, ls_err *err)
{
    uint64_t at = 0;

    if (t->n > 1) qsort(t->items, (size_t)t->n, sizeof *t->items, by_place);
    for (int i = 0; i < t->n; i++) {
        if (i > 0 && strcmp(t->items[i - 1].name, t->items[i].name) == 0)
            return ls_fail(err, LS_INVALID, "checkpoint: two tensors are called \"%s\"", t->items[i].name);
        t->items[i].begin = at;
        at += t->items[i].bytes;
    }
    return LS_OK;
}

json_t *lsi_shape_json(ls_shape s)
{
    json_t *list = json_array();

    for (int i = 0; i < s.rank; i++) json_array_append_new(list, json_integer(s.dim[i]));
    return list;
}

static json_t *describe(const lsi_item *x)
{
    size_t k = 0;

    while (dtypes[k].dtype != x->dtype) k++;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtypes[k].name, "shape", lsi_shape_json(x->shape),
                     "data_offsets", (json_int_t)x->begin, (json_int_t)(x->begin + x->bytes));
}

ls_status lsi_json_text(const json_t *o, size_t flags, ls_text *out, ls_err *err)
{
    ls_json_add(out, o, flags);
    return out->failed ? ls_fail(err, LS_NOMEM, "checkpoint: no memory for a header") : LS_OK;
}

ls_status lsi_st_header(const lsi_table *t, ls_text *out, ls_err *err)
{
    json_t *root = json_pack("{s:{s:s}}", METADATA, "format", "pt");
    ls_status st = LS_OK;
    size_t length;

    for (int i = 0; i < t->n; i++) /* The name of a tensor need not be text that JSON can hold. */
        if (strcmp(t->items[i].name, METADATA) == 0 ||
            json_object_set_new(root, t->items[i].name, describe(&t->items[i])) != 0) {
            st = ls_fail(err, LS_INVALID, "checkpoint: no tensor can be called \"%s\"", t->items[i].name);
            goto out;
        }
    ls_text_add(out, "%8s", "");
    LS_TRY(lsi_json_text(root, JSON_COMPACT, out, err));
    ls_text_add(out, "%*s", (int)((ALIGN - out->length % ALIGN) % ALIGN), "");
    if (out->failed) {
        st = ls_fail(err, LS_NOMEM, "checkpoint: no memory for a header");
        goto out;
    }
    length = out->length - 8;
    for (int i = 0; i < 8; i++) out->data[i] = (char)(unsigned char)(length >> (8 * i) & 0xff);
out:
    json_decref(root);
    return st;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

ls_status lsi_st_header_length(const unsigned char first[8], uint64_t file_bytes, size_t *length, ls_err *err)
{
    uint64_t n = 0;

    for (int i = 0; i < 8; i++) n |= (uint64_t)first[i] << (8 * i);
    *length = (size_t)n;
    if (file_bytes < 8 || n > file_bytes - 8 || n > MAX_HEADER)
        return ls_fail(err, LS_DATA, "states a header of %llu bytes in a file of %llu", (unsigned long long)n,
                       (unsigned long long)file_bytes);
    return LS_OK;
}

bool lsi_shape_from_json(const json_t *list, ls_shape *shape)
{
    size_t i;
    json_t *d;

    *shape = (ls_shape){0};
    if (!json_is_array(list) || json_array_size(list) > LS_MAX_RANK) return false;
    json_array_foreach(list, i, d)
    {
        if (!json_is_integer(d)) return false;
        shape->dim[shape->rank++] = json_integer_value(d);
    }
    return ls_shape_valid(*shape);
}

static ls_status read_item(lsi_item *x, const json_t *o, ls_err *err)
{
    const char *type = json_string_value(json_object_get(o, "dtype"));
    const json_t *at = json_object_get(o, "data_offsets");
    const json_t *begin = json_array_get(at, 0), *end = json_array_get(at, 1);
    size_t k = 0;

    while (k < N_DTYPES && (type == NULL || strcmp(dtypes[k].name, type) != 0)) k++;
    if (k == N_DTYPES) return ls_fail(err, LS_DATA, "tensor \"%s\": no known dtype", x->name);
    x->dtype = dtypes[k].dtype;
    if (!lsi_shape_from_json(json_object_get(o, "shape"), &x->shape))
        return ls_fail(err, LS_DATA, "tensor \"%s\": no valid shape of at most %d dimensions", x->name,
                       LS_MAX_RANK);
    if (!json_is_integer(begin) || !json_is_integer(end) || json_array_size(at) != 2 ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return ls_fail(err, LS_DATA, "tensor \"%s\": no valid data_offsets", x->name);
    x->begin = (uint64_t)json_integer_value(begin);
    x->bytes = (size_t)(json_integer_value(end) - json_integer_value(begin));
    if (x->bytes != (size_t)ls_shape_count(x->shape) * dtypes[k].size)
        return ls_fail(err, LS_DATA, "tensor \"%s\": %zu bytes do not fit its shape and dtype", x->name,
                       x->bytes);
    return LS_OK;
}

static int by_begin(const void *a, const void *b)
{
    const lsi_item *x = a, *y = b;

    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    /* An empty tensor before the one that starts at the same byte. */
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static ls_status check_cover(lsi_table *t, uint64_t data_bytes, ls_err *err)
{
    uint64_t at = 0;

    if (t->n > 1) qsort(t->items, (size_t)t->n, sizeof *t->items, by_begin);
    for (int i = 0; i < t->n; i++) {
        const lsi_item *x = &t->items[i];
        if (x->begin != at)
            return ls_fail(err, LS_DATA, "tensor \"%s\": starts at byte %llu of the data instead of %llu",
                           x->name, (unsigned long long)x->begin, (unsigned long long)at);
        if (x->bytes > data_bytes - at)
            return ls_fail(err, LS_DATA,
                           "tensor \"%s\": the file ends %llu bytes before the end of the tensor", x->name,
                           (unsigned long long)(x->bytes - (data_bytes - at)));
        at += x->bytes;
    }
    if (at != data_bytes)
        return ls_fail(err, LS_DATA, "has %llu bytes after the last tensor",
                       (unsigned long long)(data_bytes - at));
    return LS_OK;
}

ls_status lsi_st_parse(lsi_table *out, const char *text, size_t length, uint64_t data_bytes, ls_err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why), *o;
    const char *name;
    ls_status st = LS_OK;

    *out = (lsi_table){0};
    if (!json_is_object(root)) {
        st = ls_fail(err, LS_DATA, "header: %s", root == NULL ? why.text : "is no object");
        goto out;
    }
    LS_TRY(make(out, (int)json_object_size(root), err));
    LS_TRY(ls_arena_create(&out->arena, LS_MEM_CKPT, err));
    json_object_foreach(root, name, o)
    {
        lsi_item *x = &out->items[out->n];
        if (strcmp(name, METADATA) == 0) continue;
        x->name = ls_arena_strdup(out->arena, name);
        if (x->name == NULL) {
            st = ls_fail(err, LS_NOMEM, "header: no memory for names");
            goto out;
        }
        LS_TRY(read_item(x, o, err));
        out->n++;
    }
    LS_TRY(check_cover(out, data_bytes, err));
out:
    json_decref(root);
    if (st != LS_OK) lsi_table_release(out);
    return st;
}
