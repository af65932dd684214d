/* tensor.c: tensors, for those who may not know where they lie. */
#include "exec/tensor.h"

#include <xxhash.h>

#include "backend/buffer.h"
#include "base/alloc.h"

/* A tensor is often a part of a larger buffer: its own range is checked first. */
static ls_status check(const ls_tensor *t, size_t offset, size_t bytes, const char *what, ls_err *err)
{
    if (offset <= t->bytes && bytes <= t->bytes - offset) return LS_OK;
    return ls_fail(err, LS_INVALID, "tensor \"%s\": %s %zu bytes from byte %zu: it has %zu", t->name, what,
                   bytes, offset, t->bytes);
}

static ls_status named(const ls_tensor *t, ls_status st, ls_err *err)
{
    return st == LS_OK ? LS_OK : ls_fail_in(err, st, "tensor \"%s\"", t->name);
}

ls_status ls_tensor_read(const ls_tensor *t, size_t offset, void *to, size_t bytes, ls_err *err)
{
    const ls_status st = check(t, offset, bytes, "reading", err);

    return st == LS_OK ? named(t, ls_buffer_read(t->buffer, t->offset + offset, to, bytes, err), err) : st;
}

ls_status ls_tensor_write(const ls_tensor *t, size_t offset, const void *from, size_t bytes, ls_err *err)
{
    const ls_status st = check(t, offset, bytes, "writing", err);

    return st == LS_OK ? named(t, ls_buffer_write(t->buffer, t->offset + offset, from, bytes, err), err) : st;
}

ls_status ls_tensor_copy(const ls_tensor *to, const ls_tensor *from, ls_err *err)
{
    char a[LS_SHAPE_TEXT], b[LS_SHAPE_TEXT];

    if (to->dtype != from->dtype || to->bytes != from->bytes)
        return ls_fail(err, LS_INVALID, "tensor \"%s\" is %s %s and cannot take a copy of \"%s\", %s %s",
                       to->name, ls_dtype_name(to->dtype), ls_shape_text(to->shape, a), from->name,
                       ls_dtype_name(from->dtype), ls_shape_text(from->shape, b));
    return named(to, ls_buffer_copy(to->buffer, to->offset, from->buffer, from->offset, to->bytes, err), err);
}

ls_status ls_tensor_zero(const ls_tensor *t, ls_err *err)
{
    return named(t, ls_buffer_zero(t->buffer, t->offset, t->bytes, err), err);
}

static ls_status check_scalar(const ls_tensor *t, ls_err *err)
{
    char shape[LS_SHAPE_TEXT];

    if (t->dtype == LS_F32 && t->bytes == sizeof(float)) return LS_OK;
    return ls_fail(err, LS_INVALID, "tensor \"%s\" is %s %s, not one f32", t->name, ls_dtype_name(t->dtype),
                   ls_shape_text(t->shape, shape));
}

ls_status ls_tensor_read_scalar(const ls_tensor *t, double *x, ls_err *err)
{
    float value = 0;
    ls_status st = LS_OK;

    LS_TRY(check_scalar(t, err));
    LS_TRY(ls_tensor_read(t, 0, &value, sizeof value, err));
    *x = (double)value;
out:
    return st;
}

ls_status ls_tensor_write_scalar(const ls_tensor *t, double x, ls_err *err)
{
    const float value = (float)x;
    const ls_status st = check_scalar(t, err);

    return st == LS_OK ? ls_tensor_write(t, 0, &value, sizeof value, err) : st;
}

/* -- chunks -----------------------------------------------------------------------------------------------
 */

/* Of a tensor that the host cannot see, through memory that it can; one of look and make is not NULL. */
static ls_status walk_staged(const ls_tensor *t, ls_tensor_look look, ls_tensor_make make, void *ctx,
                             ls_err *err)
{
    const size_t most = t->bytes < LS_TENSOR_CHUNK ? t->bytes : LS_TENSOR_CHUNK;
    char *staging = ls_alloc(LS_MEM_PLAN, most);
    ls_status st = LS_OK;

    if (staging == NULL)
        return ls_fail(err, LS_NOMEM, "tensor \"%s\": no memory for %zu bytes on their way", t->name, most);
    for (size_t at = 0, n; at < t->bytes; at += n) {
        n = t->bytes - at < most ? t->bytes - at : most;
        if (look != NULL) {
            LS_TRY(ls_tensor_read(t, at, staging, n, err));
            LS_TRY(look(ctx, staging, at, n, err));
        } else {
            LS_TRY(make(ctx, staging, at, n, err));
            LS_TRY(ls_tensor_write(t, at, staging, n, err));
        }
    }
out:
    ls_free(staging);
    return st;
}

ls_status ls_tensor_visit(const ls_tensor *t, ls_tensor_look look, void *ctx, ls_err *err)
{
    if (t->bytes == 0) return LS_OK;
    if (!t->buffer->host_visible) return walk_staged(t, look, NULL, ctx, err);
    return look(ctx, ls_buffer_host(t->buffer, t->offset), 0, t->bytes, err);
}

ls_status ls_tensor_fill(const ls_tensor *t, ls_tensor_make make, void *ctx, ls_err *err)
{
    if (t->bytes == 0) return LS_OK;
    if (!t->buffer->host_visible) return walk_staged(t, NULL, make, ctx, err);
    return make(ctx, ls_buffer_host(t->buffer, t->offset), 0, t->bytes, err);
}

typedef struct hashing {
    const ls_tensor *t;
    XXH3_state_t *state; /* made when there is more than one chunk */
    uint64_t seed, hash;
} hashing;

static ls_status hash_chunk(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    hashing *h = ctx;

    if (bytes == h->t->bytes) {
        h->hash = XXH3_64bits_withSeed(chunk, bytes, h->seed);
        return LS_OK;
    }
    if (h->state == NULL) {
        h->state = XXH3_createState();
        if (h->state == NULL)
            return ls_fail(err, LS_NOMEM, "tensor \"%s\": no memory for a hash", h->t->name);
        XXH3_64bits_reset_withSeed(h->state, h->seed);
    }
    XXH3_64bits_update(h->state, chunk, bytes);
    if (offset + bytes == h->t->bytes) h->hash = XXH3_64bits_digest(h->state);
    return LS_OK;
}

ls_status ls_tensor_hash(const ls_tensor *t, uint64_t seed, uint64_t *hash, ls_err *err)
{
    hashing h = {.t = t, .seed = seed, .hash = XXH3_64bits_withSeed("", 0, seed)};
    const ls_status st = ls_tensor_visit(t, hash_chunk, &h, err);

    XXH3_freeState(h.state);
    *hash = h.hash;
    return st;
}
