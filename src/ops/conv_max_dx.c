/* conv_max_dx: dy (N, O, 1), index (N, O, 1), w (O, C, 1, 1) -> dx (N, C, 1, length): the gradient of a
 * convolution of 1 x 1 over points through the maximum over them, conv2d_dx(reduce_max_grad(dy, index), w),
 * without the gradient in between, which is zero but for one point of each channel.  Made by fusion, after
 * gradients are taken. */
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_conv_max_attr *a = c->attr;
    const ls_shape dy = c->in[0], w = c->in[2];

    if (c->in_dtype[1] != LS_I32 || dy.rank != 3 || dy.dim[2] != 1 || !ls_shape_equal(dy, c->in[1]))
        return ls_fail(err, LS_INVALID, "needs dy (N, O, 1) and an i32 index of its shape");
    if (!ls_dtype_is_float(c->in_dtype[0]) || c->in_dtype[2] != c->in_dtype[0])
        return ls_fail(err, LS_INVALID, "dy and w must have one floating type");
    if (w.rank != 4 || w.dim[0] != dy.dim[1] || w.dim[2] != 1 || w.dim[3] != 1)
        return ls_fail(err, LS_INVALID, "w must be (O, C, 1, 1)");
    if (a->length < 1)
        return ls_fail(err, LS_INVALID, "the length must be at least 1, got %lld", (long long)a->length);
    c->out[0] = LS_SHAPE(dy.dim[0], w.dim[1], 1, a->length);
    return LS_OK;
}

/* As many as conv2d_dx, so that steps are compared by the same count whatever computes them. */
static double flops(const ls_graph *g, const ls_node *n)
{
    return 2.0 * (double)ls_shape_count(*ls_node_out_shape(g, n, 0)) *
           (double)ls_node_in_shape(g, n, 2)->dim[0];
}

static void ref(const ls_ref_call *c)
{
    const int64_t length = ((const ls_conv_max_attr *)c->attr)->length;
    const int64_t O = c->in[2].shape.dim[0], C = c->in[2].shape.dim[1];

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[0].count; i++) { /* (n, o) */
        const int64_t at = (int64_t)c->in[1].d[i];
        if (at < 0 || at >= length) continue;
        for (int64_t k = 0; k < C; k++)
            c->out[0].d[(i / O * C + k) * length + at] += c->in[0].d[i] * c->in[2].d[i % O * C + k];
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    snprintf(buf, n, "length=%lld", (long long)((const ls_conv_max_attr *)attr)->length);
}

const ls_op ls_op_conv_max_dx = {
    .name = "conv_max_dx",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(ls_conv_max_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};
