/* conv_max_dw: x (N, C, 1, L), dy (N, O, 1), index (N, O, 1) -> dw (O, C, 1, 1): the gradient of the weights
 * of a convolution of 1 x 1 over points through the maximum over them, conv2d_dw(x, reduce_max_grad(dy,
 * index)), from the points that won.  Made by fusion, after gradients are taken. */
#include <string.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_shape x = c->in[0], dy = c->in[1];

    if (c->in_dtype[2] != LS_I32 || dy.rank != 3 || dy.dim[2] != 1 || !ls_shape_equal(dy, c->in[2]))
        return ls_fail(err, LS_INVALID, "needs dy (N, O, 1) and an i32 index of its shape");
    if (!ls_dtype_is_float(c->in_dtype[0]) || c->in_dtype[1] != c->in_dtype[0])
        return ls_fail(err, LS_INVALID, "x and dy must have one floating type");
    if (x.rank != 4 || x.dim[0] != dy.dim[0] || x.dim[2] != 1)
        return ls_fail(err, LS_INVALID, "x must be (N, C, 1, L)");
    c->out[0] = LS_SHAPE(dy.dim[1], x.dim[1], 1, 1);
    return LS_OK;
}

/* As many as conv2d_dw, so that steps are compared by the same count whatever computes them. */
static double flops(const ls_graph *g, const ls_node *n)
{
    return 2.0 * (double)ls_shape_count(*ls_node_in_shape(g, n, 0)) *
           (double)ls_node_out_shape(g, n, 0)->dim[0];
}

/* Of x, the points that won. */
static double bytes(const ls_graph *g, const ls_node *n)
{
    const ls_vinfo *x = g->values[n->in[0]];
    const double wins = (double)ls_shape_count(*ls_node_in_shape(g, n, 1)),
                 each = (double)ls_dtype_size(x->dtype);

    return wins * ((double)x->shape.dim[1] * each + each + 4) +
           (double)ls_shape_count(*ls_node_out_shape(g, n, 0)) * each;
}

static void ref(const ls_ref_call *c)
{
    const int64_t O = c->out[0].shape.dim[0], C = c->out[0].shape.dim[1], L = c->in[0].shape.dim[3];

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[1].count; i++) { /* (n, o) */
        const int64_t at = (int64_t)c->in[2].d[i];
        if (at < 0 || at >= L) continue;
        for (int64_t k = 0; k < C; k++)
            c->out[0].d[i % O * C + k] += c->in[1].d[i] * c->in[0].d[(i / O * C + k) * L + at];
    }
}

const ls_op ls_op_conv_max_dw = {
    .name = "conv_max_dw",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .ref = ref,
};
