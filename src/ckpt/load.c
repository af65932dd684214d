/* load.c: opening, reading and verifying a checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "ckpt/ckpt_internal.h"
#include "exec/tensor.h"
#include "passes/lower.h"

#define MAX_MANIFEST ((uint64_t)1 << 30)
#define CHUNK        ((size_t)1 << 20) /* read at a time where nobody wants the bytes */

struct ls_ckpt {
    char tensors_path[LSI_PATH], manifest_path[LSI_PATH];
    lsi_manifest manifest;
    lsi_table places; /* what the safetensors file says */
    int fd;           /* kept open: a checkpoint that is pruned meanwhile can still be read */
    uint64_t file_bytes;
};

/* -- opening ----------------------------------------------------------------------------------------------
 */

static ls_status open_manifest(ls_ckpt *c, ls_err *err)
{
    uint64_t bytes = 0;
    char *text = NULL;
    int fd = -1;
    ls_status st = LS_OK;

    LS_TRY(lsi_io_open(c->manifest_path, &fd, &bytes, err));
    if (bytes > MAX_MANIFEST) {
        st = ls_fail(err, LS_DATA, "%s: %llu bytes cannot be right", c->manifest_path,
                     (unsigned long long)bytes);
        goto out;
    }
    text = ls_alloc(LS_MEM_CKPT, (size_t)bytes);
    if (text == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", c->manifest_path);
        goto out;
    }
    LS_TRY(lsi_io_read(fd, c->manifest_path, 0, text, (size_t)bytes, err));
    st = lsi_manifest_parse(&c->manifest, text, (size_t)bytes, err);
    ls_fail_in(err, st, "%s", c->manifest_path);
out:
    if (fd >= 0) close(fd);
    ls_free(text);
    return st;
}

/* Manifest and header agree about every tensor. */
static ls_status compare_tables(const ls_ckpt *c, ls_err *err)
{
    const lsi_table *m = &c->manifest.tensors;

    for (int i = 0; i < m->n; i++) {
        const lsi_item *x = &m->items[i], *y = lsi_table_find(&c->places, x->name);
        if (y == NULL) return ls_fail(err, LS_DATA, "tensor \"%s\": is not in the file", x->name);
        if (x->dtype != y->dtype || !ls_shape_equal(x->shape, y->shape))
            return ls_fail(err, LS_DATA, "tensor \"%s\": type or shape differ from the manifest's", x->name);
    }
    for (int i = 0; i < c->places.n; i++)
        if (lsi_table_find(m, c->places.items[i].name) == NULL)
            return ls_fail(err, LS_DATA, "tensor \"%s\": is not in the manifest", c->places.items[i].name);
    if (m->n != c->places.n) return ls_fail(err, LS_DATA, "the manifest names a tensor twice");
    return LS_OK;
}

static ls_status open_tensors(ls_ckpt *c, ls_err *err)
{
    const lsi_manifest *m = &c->manifest;
    char *text = NULL;
    size_t length;
    ls_status st = LS_OK;

    st = lsi_io_open(c->tensors_path, &c->fd, &c->file_bytes, err);
    if (st != LS_OK) return st;
    if (c->file_bytes < m->header_bytes) {
        st = ls_fail(err, LS_DATA, "ends after %llu bytes, within its header",
                     (unsigned long long)c->file_bytes);
        goto out;
    }
    text = ls_alloc(LS_MEM_CKPT, m->header_bytes);
    if (text == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for its header");
        goto out;
    }
    LS_TRY(lsi_io_read(c->fd, "header", 0, text, m->header_bytes, err));
    /* Proved before it is parsed: from here on offsets and lengths are those that were written. */
    if (XXH3_64bits(text, m->header_bytes) != m->header_xxh3) {
        st = ls_fail(err, LS_DATA, "its header is damaged, or belongs to another manifest");
        goto out;
    }
    LS_TRY(lsi_st_header_length((const unsigned char *)text, c->file_bytes, &length, err));
    if (length != m->header_bytes - 8) {
        st = ls_fail(err, LS_DATA, "its header has another length than the manifest says");
        goto out;
    }
    LS_TRY(lsi_st_parse(&c->places, text + 8, length, c->file_bytes - m->header_bytes, err));
    LS_TRY(compare_tables(c, err));
out:
    ls_free(text);
    return ls_fail_in(err, st, "%s", c->tensors_path);
}

/* *file receives the file that is to blame. */
static ls_status open_parts(ls_ckpt **out, const char *dir, const char **file, ls_err *err)
{
    ls_ckpt *c = ls_alloc(LS_MEM_CKPT, sizeof *c);
    ls_status st = LS_OK;

    *file = LSI_CKPT_MANIFEST;
    *out = c;
    if (c == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", dir);
    c->fd = -1;
    LS_TRY(lsi_io_join(c->manifest_path, sizeof c->manifest_path, dir, LSI_CKPT_MANIFEST, err));
    LS_TRY(lsi_io_join(c->tensors_path, sizeof c->tensors_path, dir, LSI_CKPT_TENSORS, err));
    LS_TRY(open_manifest(c, err));
    *file = LSI_CKPT_TENSORS;
    LS_TRY(open_tensors(c, err));
out:
    if (st != LS_OK) {
        ls_ckpt_close(c);
        *out = NULL;
    }
    return st;
}

ls_status ls_ckpt_open(ls_ckpt **out, const char *dir, ls_err *err)
{
    const char *file;

    return open_parts(out, dir, &file, err);
}

void ls_ckpt_close(ls_ckpt *c)
{
    if (c == NULL) return;
    if (c->fd >= 0) close(c->fd);
    lsi_table_release(&c->places);
    lsi_manifest_release(&c->manifest);
    ls_free(c);
}

const json_t *ls_ckpt_state(const ls_ckpt *c)
{
    return c->manifest.state;
}

uint64_t ls_ckpt_plan_hash(const ls_ckpt *c)
{
    return c->manifest.plan_hash;
}

const char *ls_ckpt_version(const ls_ckpt *c)
{
    return c->manifest.version;
}

double ls_ckpt_metric(const ls_ckpt *c)
{
    return c->manifest.metric;
}

int ls_ckpt_count(const ls_ckpt *c)
{
    return c->manifest.tensors.n;
}

ls_ckpt_tensor ls_ckpt_at(const ls_ckpt *c, int i)
{
    const lsi_item *x = &c->manifest.tensors.items[i];

    return (ls_ckpt_tensor){x->name, LSI_CKPT_TENSORS, x->dtype, x->shape, x->bytes, x->xxh3, x->role};
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static uint64_t place(const ls_ckpt *c, const lsi_item *x)
{
    return c->manifest.header_bytes + lsi_table_find(&c->places, x->name)->begin;
}

static ls_status damaged(const ls_ckpt *c, const lsi_item *x, ls_err *err)
{
    const unsigned long long begin = place(c, x), end = begin + x->bytes;

    return ls_fail(err, LS_DATA,
                   "%s: tensor \"%s\": is damaged: bytes %llu to %llu do not have the hash %016llx "
                   "of " LSI_CKPT_MANIFEST,
                   c->tensors_path, x->name, begin, end, (unsigned long long)x->xxh3);
}

static ls_status read_item(const ls_ckpt *c, const lsi_item *x, void *to, ls_err *err)
{
    ls_status st = lsi_io_read(c->fd, c->tensors_path, place(c, x), to, x->bytes, err);

    if (st != LS_OK) return ls_fail_in(err, st, "tensor \"%s\"", x->name);
    return XXH3_64bits(to, x->bytes) == x->xxh3 ? LS_OK : damaged(c, x, err);
}

/* The tensor of that name, type and shape. */
static ls_status find_item(const ls_ckpt *c, const char *name, ls_dtype dtype, ls_shape shape,
                           const lsi_item **out, ls_err *err)
{
    const lsi_item *x = *out = lsi_table_find(&c->manifest.tensors, name);
    char have[LS_SHAPE_TEXT], want[LS_SHAPE_TEXT];

    if (x == NULL) return ls_fail(err, LS_INVALID, "%s: has no tensor \"%s\"", c->tensors_path, name);
    if (x->dtype != dtype || !ls_shape_equal(x->shape, shape))
        return ls_fail(err, LS_INVALID, "%s: tensor \"%s\" is %s %s, not %s %s", c->tensors_path, name,
                       ls_dtype_name(x->dtype), ls_shape_text(x->shape, have), ls_dtype_name(dtype),
                       ls_shape_text(shape, want));
    return LS_OK;
}

ls_status ls_ckpt_read(const ls_ckpt *c, const char *name, ls_dtype dtype, ls_shape shape, void *to,
                       ls_err *err)
{
    const lsi_item *x;
    const ls_status st = find_item(c, name, dtype, shape, &x, err);

    return st == LS_OK ? read_item(c, x, to, err) : st;
}

typedef struct reading {
    const ls_ckpt *c;
    uint64_t at;        /* where the tensor begins in the file */
    XXH3_state_t *hash; /* of what was read; NULL: nobody needs it */
} reading;

static ls_status read_chunk(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const reading *r = ctx;
    const ls_status st = lsi_io_read(r->c->fd, r->c->tensors_path, r->at + offset, chunk, bytes, err);

    if (st == LS_OK && r->hash != NULL) XXH3_64bits_update(r->hash, chunk, bytes);
    return st;
}

/* Of a variable of this rank's own the hash is that of what is there now, wherever that is; of one in pieces,
 * of what has passed. */
static ls_status fill_variable(reading *r, const ls_state *vars, int i, uint64_t *hash, ls_err *err)
{
    ls_status st = LS_OK;

    if (!ls_state_in_pieces(vars, i)) {
        LS_TRY(ls_tensor_fill(ls_state_at(vars, i), read_chunk, r, err));
        return ls_tensor_hash(ls_state_at(vars, i), 0, hash, err);
    }
    r->hash = XXH3_createState();
    if (r->hash == NULL) return ls_fail(err, LS_NOMEM, "no memory for a hash");
    XXH3_64bits_reset(r->hash);
    st = ls_pieces_fill(vars, i, read_chunk, r, err);
    *hash = XXH3_64bits_digest(r->hash);
    XXH3_freeState(r->hash);
out:
    return st;
}

ls_status lsi_ckpt_read_variable(const ls_ckpt *c, const char *name, const ls_state *vars, int i, ls_err *err)
{
    const ls_tensor to = ls_state_whole(vars, i);
    const lsi_item *x;
    reading r = {.c = c};
    uint64_t hash = 0;
    ls_status st = LS_OK;

    LS_TRY(find_item(c, name, to.dtype, to.shape, &x, err));
    r.at = place(c, x);
    st = fill_variable(&r, vars, i, &hash, err);
    if (st != LS_OK) return ls_fail_in(err, st, "tensor \"%s\"", x->name);
    if (hash != x->xxh3) st = damaged(c, x, err);
out:
    return st;
}

/* -- all variables of a model -----------------------------------------------------------------------------
 */

#define MAX_NAMED 8 /* of each kind of difference; the rest is counted */

typedef struct difference {
    ls_text text;
    int n;
} difference;

static void differ(difference *d, const char *name)
{
    if (d->n++ < MAX_NAMED) ls_text_add(&d->text, "%s\"%s\"", d->n > 1 ? ", " : "", name);
}

static void conclude(const difference *d, const char *what, ls_text *out)
{
    if (d->n == 0) return;
    ls_text_add(out, "%s%s %s", out->length > 0 ? "; " : "", what, d->text.data != NULL ? d->text.data : "");
    if (d->n > MAX_NAMED) ls_text_add(out, " and %d more", d->n - MAX_NAMED);
}

/* What is compared and read: the model, and with `all` what else a run needs to go on.  A checkpoint holds
 * accumulated gradients only when it was taken between two updates; then they are needed too. */
typedef struct wish {
    bool all, accumulated;
} wish;

static bool wanted(ls_var_role role, wish w)
{
    return lsi_is_model(role) || (w.all && (role != LS_VAR_ACCUMULATED || w.accumulated));
}

bool lsi_is_optional(const char *name)
{
    static const char *const names[] = {LS_SCALE_VAR, LS_GOOD_VAR, LS_SKIPPED_VAR};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static wish wish_of(const ls_ckpt *c, bool all)
{
    wish w = {all, false};

    for (int i = 0; i < c->manifest.tensors.n; i++)
        if (c->manifest.tensors.items[i].role == LS_VAR_ACCUMULATED) w.accumulated = true;
    return w;
}

static ls_status compare(const ls_ckpt *c, const ls_state *vars, wish w, ls_err *err)
{
    const lsi_table *t = &c->manifest.tensors;
    difference missing = {0}, surplus = {0}, other = {0};
    ls_text text = {0};
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(vars); i++) {
        const ls_tensor v = ls_state_whole(vars, i);
        const lsi_item *x = lsi_table_find(t, v.name);
        if (!wanted(ls_state_role(vars, i), w)) continue;
        if (x == NULL && !lsi_is_optional(v.name))
            differ(&missing, v.name);
        else if (x != NULL && (x->dtype != v.dtype || !ls_shape_equal(x->shape, v.shape)))
            differ(&other, v.name);
    }
    for (int i = 0; i < t->n; i++)
        if (wanted(t->items[i].role, w) && ls_state_find(vars, t->items[i].name) == NULL &&
            !lsi_is_optional(t->items[i].name))
            differ(&surplus, t->items[i].name);
    if (missing.n + surplus.n + other.n > 0) {
        conclude(&missing, "it lacks", &text);
        conclude(&surplus, "it has beyond the model's:", &text);
        conclude(&other, "of another type or shape are", &text);
        st = ls_fail(err, LS_INVALID, "%s: is of another model: %s", c->manifest_path,
                     text.data != NULL ? text.data : "the variables differ");
    }
    ls_text_release(&missing.text);
    ls_text_release(&surplus.text);
    ls_text_release(&other.text);
    ls_text_release(&text);
    return st;
}

typedef struct loading {
    const ls_ckpt *c;
    const ls_state *vars;
    wish w;
} loading;

/* Whether variable i comes out of the file. */
static bool is_read(const loading *l, int i)
{
    const char *name = ls_state_at(l->vars, i)->name;

    if (!wanted(ls_state_role(l->vars, i), l->w)) return false;
    return !lsi_is_optional(name) || lsi_table_find(&l->c->manifest.tensors, name) != NULL;
}

static bool place_piece(const void *ctx, int i, uint64_t *at, uint64_t *xxh3)
{
    const loading *l = ctx;
    const lsi_item *x;

    if (!ls_state_in_pieces(l->vars, i) || !is_read(l, i)) return false;
    x = lsi_table_find(&l->c->manifest.tensors, ls_state_at(l->vars, i)->name);
    *at = place(l->c, x);
    *xxh3 = x->xxh3;
    return true;
}

/* What ranks have pieces of, each reads by itself, where all see the file. */
static ls_status load_pieces(const loading *l, bool *done, ls_err *err)
{
    const lsi_source from = {.path = l->c->tensors_path,
                             .file_bytes = l->c->file_bytes,
                             .header_bytes = l->c->manifest.header_bytes,
                             .header_xxh3 = l->c->manifest.header_xxh3,
                             .place = place_piece,
                             .ctx = l};
    int bad;
    const ls_status st = lsi_load_together(&from, l->vars, done, &bad, err);

    if (st != LS_OK || bad < 0) return st;
    return damaged(l->c, lsi_table_find(&l->c->manifest.tensors, ls_state_at(l->vars, bad)->name), err);
}

static ls_status load(const ls_ckpt *c, ls_state *vars, bool all, ls_err *err)
{
    const loading l = {c, vars, wish_of(c, all)};
    bool together = false;
    ls_status st = LS_OK;

    /* All of it before the first tensor is overwritten: weights of another model leave this one as it was. */
    LS_TRY(compare(c, vars, l.w, err));
    if (ls_pieces_any(vars, NULL)) LS_TRY(load_pieces(&l, &together, err));
    for (int i = 0; i < ls_state_count(vars); i++)
        if (is_read(&l, i) && !(together && ls_state_in_pieces(vars, i)))
            LS_TRY(lsi_ckpt_read_variable(c, ls_state_at(vars, i)->name, vars, i, err));
    if (all) ls_state_set_pending(vars, l.w.accumulated);
out:
    return st;
}

ls_status ls_ckpt_load_state(const ls_ckpt *c, ls_state *vars, ls_err *err)
{
    return load(c, vars, true, err);
}

ls_status ls_ckpt_load_model(const ls_ckpt *c, ls_state *vars, ls_err *err)
{
    return load(c, vars, false, err);
}

/* -- verifying --------------------------------------------------------------------------------------------
 */

/* `look` may be NULL. */
static ls_status hash_item(const ls_ckpt *c, const lsi_item *x, XXH3_state_t *h, char *buf,
                           ls_tensor_look look, void *ctx, ls_err *err)
{
    uint64_t at = place(c, x);

    XXH3_64bits_reset(h);
    for (size_t done = 0; done < x->bytes;) {
        size_t portion = x->bytes - done < CHUNK ? x->bytes - done : CHUNK;
        ls_status st = lsi_io_read(c->fd, c->tensors_path, at + done, buf, portion, err);
        if (st != LS_OK) return ls_fail_in(err, st, "tensor \"%s\"", x->name);
        XXH3_64bits_update(h, buf, portion);
        if (look != NULL) st = look(ctx, buf, done, portion, err);
        if (st != LS_OK) return st;
        done += portion;
    }
    return XXH3_64bits_digest(h) == x->xxh3 ? LS_OK : damaged(c, x, err);
}

ls_status lsi_ckpt_visit(const ls_ckpt *c, const char *name, ls_tensor_look look, void *ctx, ls_err *err)
{
    XXH3_state_t *h = XXH3_createState();
    char *buf = ls_alloc(LS_MEM_CKPT, CHUNK);
    const ls_status st = h != NULL && buf != NULL ? hash_item(c, lsi_table_find(&c->manifest.tensors, name),
                                                              h, buf, look, ctx, err)
                                                  : ls_fail(err, LS_NOMEM, "%s: no memory", c->tensors_path);

    XXH3_freeState(h);
    ls_free(buf);
    return st;
}

ls_status ls_ckpt_verify(const char *dir, int *bad, ls_ckpt_on_damage fn, void *arg, ls_err *err)
{
    XXH3_state_t *h = XXH3_createState();
    char *buf = ls_alloc(LS_MEM_CKPT, CHUNK);
    ls_err first = {0};
    const char *file;
    ls_ckpt *c = NULL;
    ls_status st = LS_OK;

    *bad = 0;
    if (h == NULL || buf == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", dir);
        goto out;
    }
    st = open_parts(&c, dir, &file, &first);
    if (st == LS_DATA) {
        ++*bad;
        if (fn != NULL) fn(arg, file, NULL, first.text);
    }
    for (int i = 0; c != NULL && i < ls_ckpt_count(c); i++) {
        const lsi_item *x = &c->manifest.tensors.items[i];
        ls_err why = {0};
        if (hash_item(c, x, h, buf, NULL, NULL, &why) == LS_OK) continue;
        ++*bad;
        if (fn != NULL) fn(arg, LSI_CKPT_TENSORS, x->name, why.text);
        st = ls_fail(&first, LS_DATA, "%s", why.text);
    }
    if (st != LS_OK) ls_fail(err, st, "%s", first.text);
out:
    ls_ckpt_close(c);
    ls_free(buf);
    XXH3_freeState(h);
    return st;
}

/* -- one number for a model -------------------------------------------------------------------------------
 */

typedef struct named {
    const char *name;
    int variable;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static ls_status hash_chunk(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    (void)offset, (void)err;
    XXH3_64bits_update(ctx, chunk, bytes);
    return LS_OK;
}

ls_status ls_weights_xxh3(const ls_state *vars, uint64_t *hash, ls_err *err)
{
    int n = ls_state_count(vars), m = 0;
    named *order = ls_alloc(LS_MEM_CKPT, sizeof *order * (size_t)n);
    XXH3_state_t *h = XXH3_createState();
    char shape[LS_SHAPE_TEXT];
    ls_status st = LS_OK;

    *hash = 0;
    if (order == NULL || h == NULL) {
        st = ls_fail(err, LS_NOMEM, "hash of the weights: no memory");
        goto out;
    }
    for (int i = 0; i < n; i++)
        if (lsi_is_model(ls_state_role(vars, i))) order[m++] = (named){ls_state_at(vars, i)->name, i};
    if (m > 1) qsort(order, (size_t)m, sizeof *order, by_name);
    XXH3_64bits_reset(h);
    for (int i = 0; i < m; i++) {
        const ls_tensor t = ls_state_whole(vars, order[i].variable);
        /* With their final NUL: no two lists of tensors give the same bytes. */
        XXH3_64bits_update(h, t.name, strlen(t.name) + 1);
        XXH3_64bits_update(h, ls_dtype_name(t.dtype), strlen(ls_dtype_name(t.dtype)) + 1);
        ls_shape_text(t.shape, shape);
        XXH3_64bits_update(h, shape, strlen(shape) + 1);
        LS_TRY(ls_pieces_visit(vars, order[i].variable, hash_chunk, h, err));
    }
    *hash = XXH3_64bits_digest(h);
out:
    ls_free(order);
    XXH3_freeState(h);
    return st;
}
