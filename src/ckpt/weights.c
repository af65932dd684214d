/* weights.c: a model's variables from a checkpoint or a safetensors file. */
#include "ckpt/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/globs.h"
#include "ckpt/ckpt_internal.h"
#include "exec/tensor.h"

#define CHUNK ((size_t)1 << 20)

struct ls_weights {
    char path[LSI_PATH], file[LSI_PATH]; /* as given out; the safetensors file of it */
    ls_ckpt *ckpt;                       /* NULL: a plain file, which fd and data_at are of */
    int fd;
    size_t data_at;
    uint64_t bytes;
    lsi_table tensors; /* of the model */
};

/* -- opening ----------------------------------------------------------------------------------------------
 */

static ls_status list_checkpoint(ls_weights *w, ls_err *err)
{
    const int n = ls_ckpt_count(w->ckpt);

    w->tensors.items = ls_alloc(LS_MEM_CKPT, sizeof *w->tensors.items * (size_t)(n > 0 ? n : 1));
    if (w->tensors.items == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", w->path);
    for (int i = 0; i < n; i++) {
        const ls_ckpt_tensor t = ls_ckpt_at(w->ckpt, i);
        if (lsi_is_model(t.role))
            w->tensors.items[w->tensors.n++] =
                (lsi_item){.name = t.name, .dtype = t.dtype, .shape = t.shape, .bytes = t.bytes};
    }
    return LS_OK;
}

static ls_status open_folder(ls_weights *w, const char *given, ls_err *err)
{
    ls_status st = LS_OK;

    if (snprintf(w->path, sizeof w->path, "%s", given) >= (int)sizeof w->path)
        return ls_fail(err, LS_INVALID, "%.60s...: the path is too long", given);
    LS_TRY(lsi_io_join(w->file, sizeof w->file, w->path, LSI_CKPT_TENSORS, err));
    LS_TRY(ls_ckpt_advise(given, ls_ckpt_open(&w->ckpt, w->path, err), err));
    LS_TRY(list_checkpoint(w, err));
out:
    return st;
}

static ls_status open_file(ls_weights *w, const char *given, ls_err *err)
{
    ls_status st = LS_OK;

    if (snprintf(w->path, sizeof w->path, "%s", given) >= (int)sizeof w->path)
        return ls_fail(err, LS_INVALID, "%.60s...: the path is too long", given);
    memcpy(w->file, w->path, sizeof w->file);
    LS_TRY(ls_ckpt_refuse_foreign(given, err));
    LS_TRY(lsi_io_open(given, &w->fd, &w->bytes, err));
    LS_TRY(lsi_st_read_header(w->fd, given, w->bytes, &w->tensors, &w->data_at, err));
out:
    return st == LS_DATA ? ls_fail_in(err, lsi_advise(st, err, LSI_FETCH_AGAIN), "as a safetensors file")
                         : st;
}

ls_status ls_weights_open(ls_weights **out, const char *path, ls_err *err)
{
    ls_weights *w = NULL;
    struct stat info;
    ls_status st = LS_OK;

    *out = NULL;
    if (stat(path, &info) != 0)
        return ls_fail(err, LS_INVALID, "%s: there is no such checkpoint or safetensors file", path);
    w = ls_alloc(LS_MEM_CKPT, sizeof *w);
    if (w == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", path);
    w->fd = -1;
    LS_TRY(S_ISDIR(info.st_mode) ? open_folder(w, path, err) : open_file(w, path, err));
    *out = w;
    w = NULL;
out:
    ls_weights_close(w);
    return st;
}

void ls_weights_close(ls_weights *w)
{
    if (w == NULL) return;
    if (w->fd >= 0) close(w->fd);
    lsi_table_release(&w->tensors);
    ls_ckpt_close(w->ckpt);
    ls_free(w);
}

const char *ls_weights_path(const ls_weights *w)
{
    return w->path;
}

ls_status ls_weights_hash(const ls_weights *w, uint64_t *hash, ls_err *err)
{
    XXH3_state_t *h = XXH3_createState();
    char *buf = ls_alloc(LS_MEM_CKPT, CHUNK);
    uint64_t bytes = 0;
    int fd = -1;
    ls_status st = LS_OK;

    if (h == NULL || buf == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", w->file);
        goto out;
    }
    XXH3_64bits_reset(h);
    LS_TRY(lsi_io_open(w->file, &fd, &bytes, err));
    for (uint64_t at = 0; at < bytes; at += CHUNK) {
        const size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        LS_TRY(lsi_io_read(fd, w->file, at, buf, n, err));
        XXH3_64bits_update(h, buf, n);
    }
    *hash = XXH3_64bits_digest(h);
out:
    if (fd >= 0) close(fd);
    ls_free(buf);
    XXH3_freeState(h);
    return st;
}

/* -- what fits --------------------------------------------------------------------------------------------
 */

enum { MAX_NAMED = 6 }; /* of each kind of difference; the rest is counted */

/* All that deciding needs; `prefix` stands before every name in the file. */
typedef struct fitting {
    const ls_weights *w;
    const ls_state *vars;
    const ls_weights_wish *wish;
    const char *prefix;
} fitting;

static bool is_skipped(const fitting *f, const char *name)
{
    return f->wish->skip != NULL && ls_globs_match(f->wish->skip, name);
}

/* PyTorch counts the batches that a batch norm has seen; nothing of ours depends on it. */
static bool is_counter(const char *name)
{
    static const char counter[] = "num_batches_tracked";
    const size_t n = strlen(name), m = sizeof counter - 1;

    return n >= m && strcmp(name + n - m, counter) == 0;
}

/* Whether `name` is VARIABLE.RULE.STATE, as optimisers call theirs. */
static bool is_below(const char *name, const char *variable)
{
    const size_t n = strlen(variable);
    const char *rule, *state;

    if (strncmp(name, variable, n) != 0 || name[n] != '.') return false;
    rule = name + n + 1;
    state = strchr(rule, '.');
    return state != NULL && state > rule && strchr(state + 1, '.') == NULL;
}

/* The file inside one of our checkpoints also holds what its optimiser keeps, which the one of these
 * variables need not have. */
static bool is_of_optimiser(const fitting *f, const char *name)
{
    static const char sums[] = "accumulated.", steps[] = "optimizer.";
    const size_t n = strlen(name);

    if (lsi_is_optional(name)) return true;
    if (strncmp(name, steps, sizeof steps - 1) == 0 && strcmp(name + n - 2, ".t") == 0) return true;
    for (int i = 0; i < ls_state_count(f->vars); i++) {
        const char *variable = ls_state_at(f->vars, i)->name;
        if (!lsi_is_model(ls_state_role(f->vars, i))) continue;
        if (is_below(name, variable)) return true;
        if (strncmp(name, sums, sizeof sums - 1) == 0 && strcmp(name + sizeof sums - 1, variable) == 0)
            return true;
    }
    return false;
}

static const lsi_item *find(const fitting *f, const char *name)
{
    const size_t n = strlen(f->prefix);

    for (int i = 0; i < f->w->tensors.n; i++) {
        const lsi_item *x = &f->w->tensors.items[i];
        if (strncmp(x->name, f->prefix, n) == 0 && strcmp(x->name + n, name) == 0) return x;
    }
    return NULL;
}

/* The tensor LAYER.what of the file; layer has no end of its own. */
static const lsi_item *find_of_layer(const fitting *f, const char *layer, size_t n, const char *what)
{
    for (int i = 0; i < f->w->tensors.n; i++) {
        const lsi_item *x = &f->w->tensors.items[i];
        if (strncmp(x->name, layer, n) == 0 && x->name[n] == '.' && strcmp(x->name + n + 1, what) == 0)
            return x;
    }
    return NULL;
}

/* It also holds the pools of earlier samples that a model shows again (nn/replay.c): LAYER.images with
 * LAYER.filled, and what waits to be put there.  They are no weights, and a model with a pool of another size
 * or with none need not take them. */
static bool is_of_replay(const fitting *f, const char *name)
{
    static const char sums[] = "accumulated.";
    const char *layer = strncmp(name, sums, sizeof sums - 1) == 0 ? name + sizeof sums - 1 : name,
               *what = strrchr(layer, '.');
    const lsi_item *images, *filled;

    if (what == NULL || (strcmp(what, ".images") != 0 && strcmp(what, ".filled") != 0 &&
                         (layer == name || strcmp(what, ".slots") != 0)))
        return false;
    images = find_of_layer(f, layer, (size_t)(what - layer), "images");
    filled = find_of_layer(f, layer, (size_t)(what - layer), "filled");
    return images != NULL && filled != NULL && images->shape.rank == 2 && filled->shape.rank == 2 &&
           filled->shape.dim[1] == 1 && filled->shape.dim[0] == images->shape.dim[0];
}

/* The prefix under which most variables are found. */
static const char *choose_prefix(fitting f)
{
    static const char *const prefixes[] = {"", "module.", "_orig_mod.", "model.", "module._orig_mod."};
    const char *best = "";
    int most = 0;

    for (size_t k = 0; k < sizeof prefixes / sizeof prefixes[0]; k++) {
        int n = 0;
        f.prefix = prefixes[k];
        for (int i = 0; i < ls_state_count(f.vars); i++)
            n += lsi_is_model(ls_state_role(f.vars, i)) && find(&f, ls_state_at(f.vars, i)->name) != NULL;
        if (n <= most) continue;
        most = n;
        best = prefixes[k];
    }
    return best;
}

static bool is_float(ls_dtype t)
{
    return t == LS_F32 || t == LS_F64 || t == LS_F16 || t == LS_BF16;
}

static bool converts(ls_dtype from, ls_dtype to)
{
    return from == to || (to == LS_F32 && is_float(from));
}

typedef struct difference {
    ls_text text;
    int n;
} difference;

static void differ(difference *d, const char *name)
{
    if (d->n++ < MAX_NAMED) ls_text_add(&d->text, "%s\"%.200s\"", d->n > 1 ? ", " : "", name);
}

static void differ_in_shape(difference *d, const ls_tensor *v, const lsi_item *x)
{
    char have[LS_SHAPE_TEXT], want[LS_SHAPE_TEXT];

    differ(d, v->name);
    if (d->n > MAX_NAMED) return;
    ls_text_add(&d->text, " %s %s instead of %s %s",
                x->dtype < LS_DTYPE_N ? ls_dtype_name(x->dtype) : "integers", ls_shape_text(x->shape, have),
                ls_dtype_name(v->dtype), ls_shape_text(v->shape, want));
}

static void conclude(difference *d, const char *what, ls_text *out)
{
    if (d->n > 0) {
        ls_text_add(out, "%s%d %s: %s", out->length > 0 ? "; " : "", d->n, what,
                    d->text.data ? d->text.data : "");
        if (d->n > MAX_NAMED) ls_text_add(out, " and %d more", d->n - MAX_NAMED);
    }
    if (d->text.failed) out->failed = true;
    ls_text_release(&d->text);
}

static void compare_variables(const fitting *f, ls_weights_outcome *o)
{
    difference missing = {0}, misfits = {0};

    for (int i = 0; i < ls_state_count(f->vars); i++) {
        const ls_tensor whole = ls_state_whole(f->vars, i), *v = &whole;
        const lsi_item *x;
        if (!lsi_is_model(ls_state_role(f->vars, i))) continue;
        if (is_skipped(f, v->name)) {
            o->skipped++;
            continue;
        }
        x = find(f, v->name);
        if (x == NULL)
            differ(&missing, v->name);
        else if (!converts(x->dtype, v->dtype) || !ls_shape_equal(x->shape, v->shape))
            differ_in_shape(&misfits, v, x);
    }
    o->missing = missing.n;
    o->misfits = misfits.n;
    conclude(&missing, "missing", &o->differences);
    conclude(&misfits, "of another shape or type", &o->differences);
}

static void compare_tensors(const fitting *f, ls_weights_outcome *o)
{
    const size_t n = strlen(f->prefix);
    difference extra = {0};

    for (int i = 0; i < f->w->tensors.n; i++) {
        const char *name = f->w->tensors.items[i].name;
        if (is_counter(name) || is_of_optimiser(f, name) || is_of_replay(f, name)) continue;
        if (strncmp(name, f->prefix, n) != 0)
            differ(&extra, name);
        else if (!is_skipped(f, name + n) && ls_state_find(f->vars, name + n) == NULL)
            differ(&extra, name + n);
    }
    o->extra = extra.n;
    conclude(&extra, "beyond the model's", &o->differences);
}

static ls_status check_skip(const fitting *f, ls_err *err)
{
    const char **names;
    size_t n = 0;
    ls_status st;

    if (f->wish->skip == NULL) return LS_OK;
    names = ls_alloc(LS_MEM_CKPT, sizeof *names * ((size_t)ls_state_count(f->vars) + 1));
    if (names == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", f->w->path);
    for (int i = 0; i < ls_state_count(f->vars); i++)
        if (lsi_is_model(ls_state_role(f->vars, i))) names[n++] = ls_state_at(f->vars, i)->name;
    st = ls_globs_check(f->wish->skip, names, n, "variables to leave as they are", err);
    ls_free(names);
    return st;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static ls_status read_as_is(const ls_weights *w, const lsi_item *x, void *to, ls_err *err)
{
    if (w->ckpt != NULL) return ls_ckpt_read(w->ckpt, x->name, x->dtype, x->shape, to, err);
    return lsi_io_read(w->fd, w->path, w->data_at + x->begin, to, x->bytes, err);
}

/* A tensor of the file on its way into a variable. */
typedef struct transfer {
    const ls_weights *w;
    const lsi_item *x;
    const void *raw; /* its bytes, where they are to be converted */
} transfer;

static ls_status read_chunk(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const transfer *t = ctx;

    return lsi_io_read(t->w->fd, t->w->path, t->w->data_at + t->x->begin + offset, chunk, bytes, err);
}

/* Finite numbers that f32 cannot hold must not become infinite without a word. */
static ls_status convert_chunk(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const transfer *t = ctx;
    float *to = chunk;
    const size_t first = offset / sizeof *to;

    for (size_t i = 0; i < bytes / sizeof *to; i++) {
        if (t->x->dtype == LS_BF16) to[i] = ls_bf16_to_f32(((const uint16_t *)t->raw)[first + i]);
        if (t->x->dtype == LS_F16) to[i] = ls_f16_to_f32(((const uint16_t *)t->raw)[first + i]);
        if (t->x->dtype != LS_F64) continue;
        const double x = ((const double *)t->raw)[first + i];
        to[i] = (float)x;
        if (isfinite(x) && !isfinite(to[i]))
            return ls_fail(err, LS_DATA, "%s: tensor \"%s\" holds a number that is too large for f32",
                           t->w->path, t->x->name);
    }
    return LS_OK;
}

static ls_status read_item(const ls_weights *w, const lsi_item *x, const ls_state *vars, int i, ls_err *err)
{
    const ls_dtype dtype = ls_state_at(vars, i)->dtype;
    void *raw;
    ls_status st;

    if (x->dtype == dtype && w->ckpt != NULL) return lsi_ckpt_read_variable(w->ckpt, x->name, vars, i, err);
    if (x->dtype == dtype) return ls_pieces_fill(vars, i, read_chunk, &(transfer){w, x, NULL}, err);
    raw = ls_alloc(LS_MEM_CKPT, x->bytes > 0 ? x->bytes : 1);
    if (raw == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory to convert \"%s\"", w->path, x->name);
    st = read_as_is(w, x, raw, err);
    if (st == LS_OK) st = ls_pieces_fill(vars, i, convert_chunk, &(transfer){w, x, raw}, err);
    ls_free(raw);
    return st;
}

static ls_status read_all(const fitting *f, ls_weights_outcome *o, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(f->vars); i++) {
        const ls_tensor whole = ls_state_whole(f->vars, i), *v = &whole;
        const lsi_item *x = find(f, v->name);
        if (!lsi_is_model(ls_state_role(f->vars, i)) || x == NULL || is_skipped(f, v->name)) continue;
        if (!converts(x->dtype, v->dtype) || !ls_shape_equal(x->shape, v->shape)) continue;
        LS_TRY(read_item(f->w, x, f->vars, i, err));
        o->loaded++;
        o->converted += x->dtype != v->dtype;
    }
out:
    return st;
}

void ls_weights_outcome_release(ls_weights_outcome *o)
{
    ls_text_release(&o->differences);
    *o = (ls_weights_outcome){0};
}

ls_status ls_weights_load(const ls_weights *w, ls_state *vars, const ls_weights_wish *wish,
                          ls_weights_outcome *out, ls_err *err)
{
    fitting f = {w, vars, wish, ""};
    ls_status st = LS_OK;

    ls_weights_outcome_release(out);
    f.prefix = choose_prefix(f);
    LS_TRY(check_skip(&f, err));
    compare_variables(&f, out);
    compare_tensors(&f, out);
    if (out->differences.failed) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", w->path);
        goto out;
    }
    if (out->differences.length > 0 && !wish->lenient) {
        st = ls_fail(err, LS_INVALID, "%s: is not of this model: %s%s%s", w->path, out->differences.data,
                     wish->remedy != NULL ? ".  " : "", wish->remedy != NULL ? wish->remedy : "");
        goto out;
    }
    st = read_all(&f, out, err);
    if (w->ckpt != NULL) st = ls_ckpt_advise(w->path, st, err);
out:
    return st;
}
