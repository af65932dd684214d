/* reduce_max_grad: dx = dy at the index along a new axis, zeros elsewhere. */
#include <stdio.h>

#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_reduce_max_grad_attr *a = c->attr;
    ls_shape dy = c->in[0];
    ls_status st;

    if (!ls_dtype_is_float(c->in_dtype[0]) || c->in_dtype[1] != LS_I32)
        return ls_fail(err, LS_INVALID, "needs a floating type and an i32 index, got %s and %s",
                       ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[1]));
    if (!ls_shape_equal(dy, c->in[1])) return ls_fail(err, LS_INVALID, "dy and index differ in shape");
    if (dy.rank == LS_MAX_RANK)
        return ls_fail(err, LS_INVALID, "one more axis would make more than %d", LS_MAX_RANK);
    st = lsi_resolve_axis(&a->axis, dy.rank + 1, err);
    if (st != LS_OK) return st;
    if (a->length < 1)
        return ls_fail(err, LS_INVALID, "the length must be at least 1, got %lld", (long long)a->length);
    c->out[0].rank = dy.rank + 1;
    for (int i = 0; i < c->out[0].rank; i++)
        c->out[0].dim[i] = i == a->axis ? a->length : dy.dim[i < a->axis ? i : i - 1];
    return LS_OK;
}

/* The adjoint picks ddx at the index: the sum over the axis of ddx times a tensor that is 1 there and 0
 * elsewhere. */
static void grad(ls_grad_call *c)
{
    const ls_reduce_max_grad_attr *a = c->attr;
    ls_value ones, mask;

    if (!c->want[0]) return;
    ones = ls_fill(c->g, ls_value_shape(c->in[0]), ls_value_dtype(c->in[0]), 1);
    mask = ls_reduce_max_grad(ones, c->in[1], a->axis, a->length);
    c->din[0] = ls_reduce_sum(ls_mul(c->dout[0], mask), 1u << a->axis, false);
}

static void ref(const ls_ref_call *c)
{
    const ls_reduce_max_grad_attr *a = c->attr;
    lsi_split x = lsi_split_at(c->out[0].shape, a->axis);

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = 0;
    for (int64_t i = 0; i < c->in[0].count; i++) {
        int64_t k = (int64_t)c->in[1].d[i];
        if (k >= 0 && k < x.length)
            c->out[0].d[(i / x.inner * x.length + k) * x.inner + i % x.inner] = c->in[0].d[i];
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_reduce_max_grad_attr *a = attr;

    snprintf(buf, n, "axis=%d length=%lld", a->axis, (long long)a->length);
}

const ls_op ls_op_reduce_max_grad = {
    .name = "reduce_max_grad",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(ls_reduce_max_grad_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_reduce_max_grad(ls_value dy, ls_value index, int axis, int64_t length)
{
    return ls_graph_add(dy.g, &ls_op_reduce_max_grad, 2, (ls_value[]){dy, index},
                        &(ls_reduce_max_grad_attr){axis, length});
}
