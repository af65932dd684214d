/* random_rules.c: keys, checks and the filling loop of ops that draw random numbers. */
#include "ops/random_rules.h"

#include <stdio.h>

ls_status lsi_check_key(const ls_infer *c, int i, ls_err *err)
{
    if (c->in_dtype[i] != LS_I32 || !ls_shape_equal(c->in[i], LS_SHAPE(4)))
        return ls_fail(err, LS_INVALID,
                       "the random key must be i32 (4): seed_lo, seed_hi, step, sample_base");
    return LS_OK;
}

ls_status lsi_infer_random(ls_infer *c, ls_err *err)
{
    const ls_random_attr *a = c->attr;
    char buf[LS_SHAPE_TEXT];

    if (a->shape.rank < 1 || !ls_shape_valid(a->shape))
        return ls_fail(err, LS_INVALID, "cannot draw %s: needs a shape whose first dimension counts samples",
                       ls_shape_text(a->shape, buf));
    c->out[0] = a->shape;
    c->out_dtype[0] = LS_F32;
    return lsi_check_key(c, 0, err);
}

ls_rng_key lsi_random_key(const ls_ref_tensor *t)
{
    uint32_t w[4];

    for (int i = 0; i < 4; i++) w[i] = (uint32_t)(int32_t)t->d[i];
    return (ls_rng_key){w[0], w[1], w[2], w[3]};
}

void lsi_random_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_random_attr *a = attr;
    char shape[LS_SHAPE_TEXT] = "x";

    if (a->shape.rank > 0) ls_shape_text(a->shape, shape);
    snprintf(buf, n, "p=%.9g stream=%08x per_channel=%d shape=%s", a->p, (unsigned)a->stream,
             a->per_channel ? 1 : 0, shape);
}

void lsi_ref_random(const ls_ref_call *c, lsi_draw draw)
{
    const ls_random_attr *a = c->attr;
    ls_rng_key key = lsi_random_key(&c->in[0]);
    int64_t n = c->out[0].shape.dim[0], per_sample = n > 0 ? c->out[0].count / n : 0;

    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] = draw(&key, a, (uint32_t)(i / per_sample), (uint64_t)(i % per_sample));
}
