/* conv2d_dw_pooled: conv2d_dw(x, maxpool2d_grad(dy, index)) in one: the gradient of a convolution's weights
 * through a max pool on top of it, without the gradient in between, which is mostly zeros.
 *
 * dw[o][c][ky][kx] = the sum over the windows of dy[n][o][py][px] * (the element of x that this tap of conv2d
 * multiplies at the position that won the window).  Made by fusion, after gradients are taken. */
#include <stdio.h>
#include <string.h>

#include "ops/conv_rules.h"
#include "ops/pool_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_conv_pool_attr *a = c->attr;
    ls_shape x = c->in[0], image;
    int64_t cg;
    ls_status st = LS_OK;

    LS_TRY(lsi_conv_check_inputs(c, "x (N, C, H, W) and dy (N, O, HO, WO)", err));
    if (c->in_dtype[2] != LS_U8 || !ls_shape_equal(c->in[1], c->in[2]))
        return ls_fail(err, LS_INVALID, "the positions must be u8, of the shape of dy");
    if (a->pool.relu || a->conv.act != LS_ACT_NONE) return ls_fail(err, LS_INVALID, "carries no activation");
    if (x.dim[0] != c->in[1].dim[0])
        return ls_fail(err, LS_INVALID, "x holds %lld samples, dy %lld", (long long)x.dim[0],
                       (long long)c->in[1].dim[0]);
    LS_TRY(lsi_pool_infer_grad(&a->pool, c->in_dtype[1], c->in[1], &image, err));
    cg = a->conv.groups > 0 ? x.dim[1] / a->conv.groups : 0;
    LS_TRY(lsi_conv_check_channels(&a->conv, x.dim[1], image.dim[1], cg, err));
    for (int i = 0; i < 4; i++) a->conv.in[i] = x.dim[i];
    LS_TRY(lsi_conv_check_dy(&a->conv, image, a->conv.kernel[0], a->conv.kernel[1], err));
    c->out[0] = LS_SHAPE(image.dim[1], cg, a->conv.kernel[0], a->conv.kernel[1]);
out:
    return st;
}

/* As many as conv2d_dw, so that steps are compared by the same count whatever computes them. */
static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_conv_pool_attr *a = n->attr;
    ls_shape image = *ls_node_in_shape(g, n, 1);

    image.dim[2] = a->pool.in[0];
    image.dim[3] = a->pool.in[1];
    return lsi_conv_flops(image, *ls_node_out_shape(g, n, 0));
}

/* One window's share: row o of dw gets dy times what its taps see from position (oy, ox). */
static void add_window(const ls_ref_call *c, int64_t sample, int64_t o, int64_t oy, int64_t ox, double dy)
{
    const ls_conv_attr *a = &((const ls_conv_pool_attr *)c->attr)->conv;
    const int64_t *dim = c->in[0].shape.dim, cg = c->out[0].shape.dim[1];
    const int64_t first = o / (c->out[0].shape.dim[0] / a->groups) * cg; /* channel of x */
    double *dw = c->out[0].d + o * cg * a->kernel[0] * a->kernel[1];

    for (int64_t i = 0; i < cg; i++)
        for (int64_t ky = 0; ky < a->kernel[0]; ky++)
            for (int64_t kx = 0; kx < a->kernel[1]; kx++, dw++) {
                int64_t y = oy * a->stride[0] + ky * a->dilation[0] - a->pad[0];
                int64_t x = ox * a->stride[1] + kx * a->dilation[1] - a->pad[1];
                if (y < 0 || y >= dim[2] || x < 0 || x >= dim[3]) continue;
                *dw += dy * c->in[0].d[((sample * dim[1] + first + i) * dim[2] + y) * dim[3] + x];
            }
}

static void ref(const ls_ref_call *c)
{
    const ls_conv_pool_attr *a = c->attr;
    const ls_shape pooled = c->in[1].shape;

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[1].count; i++) {
        lsi_pool_window w = lsi_pool_window_at(&a->pool, pooled, i);
        int64_t plane = i / (pooled.dim[2] * pooled.dim[3]), index = (int64_t)c->in[2].d[i];
        add_window(c, plane / pooled.dim[1], plane % pooled.dim[1], w.top + index / a->pool.kernel[1],
                   w.left + index % a->pool.kernel[1], c->in[1].d[i]);
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_conv_pool_attr *a = attr;
    char conv[256], pool[128];

    lsi_conv_attr_text(&a->conv, conv, sizeof conv);
    lsi_pool_attr_text(&a->pool, pool, sizeof pool);
    snprintf(buf, n, "%s pool: %s", conv, pool);
}

const ls_op ls_op_conv2d_dw_pooled = {
    .name = "conv2d_dw_pooled",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(ls_conv_pool_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_conv2d_dw_pooled(ls_value x, ls_value dy, ls_value index, ls_conv_pool_attr a)
{
    return ls_graph_add(x.g, &ls_op_conv2d_dw_pooled, 3, (ls_value[]){x, dy, index}, &a);
}
