/* conv2d: y[n][o][oy][ox] = sum over c, ky, kx of w[o][c][ky][kx] * x[n][g*C/groups + c][oy*s + ky*d -
 * p][...], zeros outside.  conv2d, conv2d_dx and conv2d_dw are closed under differentiation: each one's
 * gradients are the other two, so gradients of any order exist. */
#include "ops/conv_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_conv_attr *a = c->attr;
    ls_shape x = c->in[0], w = c->in[1];
    int64_t ho = 0, wo = 0;
    ls_status st = LS_OK;

    LS_TRY(lsi_conv_check_inputs(c, "x (N, C, H, W) and weights (O, C/groups, KH, KW)", err));
    LS_TRY(lsi_conv_check_channels(a, x.dim[1], w.dim[0], w.dim[1], err));
    LS_TRY(lsi_conv_check_bias(c, w.dim[0], err));
    LS_TRY(lsi_conv_out_size(a, x.dim, w.dim[2], w.dim[3], &ho, &wo, err));
    for (int i = 0; i < 4; i++) a->in[i] = x.dim[i];
    a->kernel[0] = (int)w.dim[2];
    a->kernel[1] = (int)w.dim[3];
    c->out[0] = LS_SHAPE(x.dim[0], w.dim[0], ho, wo);
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    const ls_conv_attr *a = c->attr;

    LS_BUG_IF(a->act != LS_ACT_NONE || c->n_in > 2);
    if (c->want[0]) c->din[0] = ls_conv2d_dx(c->dout[0], c->in[1], *a);
    if (c->want[1]) c->din[1] = ls_conv2d_dw(c->in[0], c->dout[0], *a);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_conv_flops(*ls_node_out_shape(g, n, 0), *ls_node_in_shape(g, n, 1));
}

static void add_term(const lsi_conv_data *t, int64_t yi, int64_t wi, int64_t xi)
{
    t->y[yi] += t->w[wi] * t->x[xi];
}

static void ref(const ls_ref_call *c)
{
    lsi_conv_data t = {.x = c->in[0].d, .w = c->in[1].d, .y = c->out[0].d};

    lsi_conv_start(c);
    lsi_conv_each(c->attr, c->in[0].shape, c->in[1].shape, c->out[0].shape, add_term, &t);
    lsi_conv_finish(c);
}

const ls_op ls_op_conv2d = {
    .name = "conv2d",
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

ls_value ls_conv2d(ls_value x, ls_value w, ls_conv_attr a)
{
    return ls_graph_add(x.g, &ls_op_conv2d, 2, (ls_value[]){x, w}, &a);
}
