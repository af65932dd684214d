/* conv2d: y[n][o][oy][ox] = sum over c, ky, kx of w[o][c][ky][kx] * x[n][g*C/groups + c][oy*s + ky*d -
 * p][...], zeros outside.  conv2d, conv2d_dx and conv2d_dw are closed under differentiation: each one's
 * gradients are the other two, so gradients of any order exist. */
#include "ops/conv_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_conv_attr *a = c->attr;
    ls_shape x = c->in[0], w = c->in[1];
    int64_t ho = 0, wo = 0;
    ls_status st;

    if (x.rank != 4 || w.rank != 4)
        return ls_fail(err, LS_INVALID, "needs x (N, C, H, W) and weights (O, C/groups, KH, KW)");
    if (c->in_dtype[0] != c->in_dtype[1]) return ls_fail(err, LS_INVALID, "x and weights differ in type");
    if (a->groups < 1 || x.dim[1] != w.dim[1] * a->groups || w.dim[0] % a->groups != 0)
        return ls_fail(err, LS_INVALID,
                       "%lld input channels in %d groups do not fit weights for %lld per group",
                       (long long)x.dim[1], a->groups, (long long)w.dim[1]);
    if (c->n_in > 2 && (c->in[2].rank != 1 || c->in[2].dim[0] != w.dim[0]))
        return ls_fail(err, LS_INVALID, "the bias must have one entry per output channel");
    st = lsi_conv_out_size(a, x.dim, w.dim[2], w.dim[3], &ho, &wo, err);
    if (st != LS_OK) return st;
    for (int i = 0; i < 4; i++) a->in[i] = x.dim[i];
    a->kernel[0] = (int)w.dim[2];
    a->kernel[1] = (int)w.dim[3];
    c->out[0] = LS_SHAPE(x.dim[0], w.dim[0], ho, wo);
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_conv_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_conv2d_dx(c->dout[0], c->in[1], *a);
    if (c->want[1]) c->din[1] = ls_conv2d_dw(c->in[0], c->dout[0], *a);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_conv_flops(*ls_node_out_shape(g, n, 0), *ls_node_in_shape(g, n, 1));
}

typedef struct terms {
    const double *x, *w;
    double *y;
} terms;

static void add_term(void *ctx, int64_t yi, int64_t wi, int64_t xi)
{
    terms *t = ctx;

    t->y[yi] += t->w[wi] * t->x[xi];
}

static void ref(const ls_ref_call *c)
{
    const ls_conv_attr *a = c->attr;
    ls_shape y = c->out[0].shape;
    int64_t map = y.dim[2] * y.dim[3];
    terms t = {c->in[0].d, c->in[1].d, c->out[0].d};

    for (int64_t i = 0; i < c->out[0].count; i++) t.y[i] = c->n_in > 2 ? c->in[2].d[i / map % y.dim[1]] : 0;
    lsi_conv_each(a, c->in[0].shape, c->in[1].shape, y, add_term, &t);
    for (int64_t i = 0; i < c->out[0].count; i++) t.y[i] = ls_act_eval(a->act, a->slope, t.y[i]);
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
