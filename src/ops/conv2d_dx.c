/* conv2d_dx: the adjoint of conv2d in x: dx[n][c][iy][ix] = the sum of w[o][c][ky][kx] * dy[n][o][oy][ox]
 * over all taps of conv2d that read x[n][c][iy][ix].  As a layer it is transposed convolution, which is why
 * it alone of the two adjoints carries a fused bias and activation: y = act(conv2d_dx(x, w) + bias). */
#include "ops/conv_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_conv_attr *a = c->attr;
    ls_shape dy = c->in[0], w = c->in[1];
    ls_status st = LS_OK;

    LS_TRY(lsi_conv_check_inputs(c, "dy (N, O, HO, WO) and weights (O, C/groups, KH, KW)", err));
    if (dy.dim[1] != w.dim[0])
        return ls_fail(err, LS_INVALID, "dy has %lld channels, the weights are for %lld",
                       (long long)dy.dim[1], (long long)w.dim[0]);
    LS_TRY(lsi_conv_check_channels(a, a->in[1], w.dim[0], w.dim[1], err));
    LS_TRY(lsi_conv_check_bias(c, a->in[1], err));
    LS_TRY(lsi_conv_check_dy(a, dy, w.dim[2], w.dim[3], err));
    a->in[0] = dy.dim[0];
    a->kernel[0] = (int)w.dim[2];
    a->kernel[1] = (int)w.dim[3];
    c->out[0] = ls_shape_make(4, a->in);
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    const ls_conv_attr *a = c->attr;

    LS_BUG_IF(a->act != LS_ACT_NONE || c->n_in > 2);
    if (c->want[0]) c->din[0] = ls_conv2d(c->dout[0], c->in[1], *a);
    if (c->want[1]) c->din[1] = ls_conv2d_dw(c->dout[0], c->in[0], *a);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_conv_flops(*ls_node_in_shape(g, n, 0), *ls_node_in_shape(g, n, 1));
}

static void add_term(const lsi_conv_data *t, int64_t yi, int64_t wi, int64_t xi)
{
    t->x[xi] += t->w[wi] * t->y[yi];
}

static void ref(const ls_ref_call *c)
{
    lsi_conv_data t = {.x = c->out[0].d, .w = c->in[1].d, .y = c->in[0].d};

    lsi_conv_start(c);
    lsi_conv_each(c->attr, c->out[0].shape, c->in[1].shape, c->in[0].shape, add_term, &t);
    lsi_conv_finish(c);
}

const ls_op ls_op_conv2d_dx = {
    .name = "conv2d_dx",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(ls_conv_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_conv_attr_text,
};

ls_value ls_conv2d_dx(ls_value dy, ls_value w, ls_conv_attr a)
{
    return ls_graph_add(dy.g, &ls_op_conv2d_dx, 2, (ls_value[]){dy, w}, &a);
}
