/* conv2d_dw: the adjoint of conv2d in w: dw[o][c][ky][kx] = the sum of dy[n][o][oy][ox] * x[n][c][iy][ix]
 * over the batch and all positions that this tap of conv2d multiplies. */
#include "ops/conv_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_conv_attr *a = c->attr;
    ls_shape x = c->in[0], dy = c->in[1];
    int64_t cg;
    ls_status st = LS_OK;

    LS_TRY(lsi_conv_check_inputs(c, "x (N, C, H, W) and dy (N, O, HO, WO)", err));
    if (x.dim[0] != dy.dim[0])
        return ls_fail(err, LS_INVALID, "x holds %lld samples, dy %lld", (long long)x.dim[0],
                       (long long)dy.dim[0]);
    if (a->act != LS_ACT_NONE) return ls_fail(err, LS_INVALID, "carries no activation");
    cg = a->groups > 0 ? x.dim[1] / a->groups : 0;
    LS_TRY(lsi_conv_check_channels(a, x.dim[1], dy.dim[1], cg, err));
    for (int i = 0; i < 4; i++) a->in[i] = x.dim[i];
    LS_TRY(lsi_conv_check_dy(a, dy, a->kernel[0], a->kernel[1], err));
    c->out[0] = LS_SHAPE(dy.dim[1], cg, a->kernel[0], a->kernel[1]);
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    const ls_conv_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_conv2d_dx(c->in[1], c->dout[0], *a);
    if (c->want[1]) c->din[1] = ls_conv2d(c->in[0], c->dout[0], *a);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_conv_flops(*ls_node_in_shape(g, n, 1), *ls_node_out_shape(g, n, 0));
}

static void add_term(const lsi_conv_data *t, int64_t yi, int64_t wi, int64_t xi)
{
    t->w[wi] += t->y[yi] * t->x[xi];
}

static void ref(const ls_ref_call *c)
{
    lsi_conv_data t = {.x = c->in[0].d, .w = c->out[0].d, .y = c->in[1].d};

    lsi_conv_start(c);
    lsi_conv_each(c->attr, c->in[0].shape, c->out[0].shape, c->in[1].shape, add_term, &t);
}

const ls_op ls_op_conv2d_dw = {
    .name = "conv2d_dw",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(ls_conv_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_conv_attr_text,
};

ls_value ls_conv2d_dw(ls_value x, ls_value dy, ls_conv_attr a)
{
    return ls_graph_add(x.g, &ls_op_conv2d_dw, 2, (ls_value[]){x, dy}, &a);
}
