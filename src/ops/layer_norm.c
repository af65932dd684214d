/* layer_norm: y = (x - mean) * invstd * gamma + beta, with the mean and 1 / sqrt(biased variance + eps) of
 * every row (the last dimension).  Gradients flow through y only.  It has no fused forms. */
#include "ops/norm_rules.h"

enum { X, GAMMA, BETA };

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_norm_attr *a = c->attr;
    ls_shape x = c->in[X];
    ls_status st = LS_OK;

    LS_TRY(lsi_norm_check(c, X, 3, err));
    LS_TRY(lsi_norm_check_unfused(a, err));
    if (x.rank < 1) return ls_fail(err, LS_INVALID, "needs x (..., D)");
    LS_TRY(lsi_norm_check_stat(c, X, GAMMA, "gamma", LS_SHAPE(x.dim[x.rank - 1]), err));
    LS_TRY(lsi_norm_check_stat(c, X, BETA, "beta", LS_SHAPE(x.dim[x.rank - 1]), err));
    c->out[0] = x;
    for (int k = 1; k < 3; k++) {
        c->out[k] = ls_shape_make(x.rank - 1, x.dim);
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[X]);
    }
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    const ls_norm_attr *a = c->attr;
    ls_value d;

    if (!ls_value_ok(c->dout[0])) return;
    d = ls_layer_norm_grad(c->dout[0], c->in[X], c->in[GAMMA], c->out[1], c->out[2], *a);
    for (int i = X; i <= BETA; i++)
        if (c->want[i]) c->din[i] = ls_graph_out(d, i);
}

static void ref(const ls_ref_call *c)
{
    lsi_norm_form f = lsi_layer_norm_form(c->in[X].shape);
    lsi_norm_data d = {.x = c->in[X].d,
                       .gamma = c->in[GAMMA].d,
                       .beta = c->in[BETA].d,
                       .y = c->out[0].d,
                       .mean = c->out[1].d,
                       .invstd = c->out[2].d};

    lsi_norm_ref(&f, c->attr, &d);
}

const ls_op ls_op_layer_norm = {
    .name = "layer_norm",
    .min_in = 3,
    .max_in = 3,
    .n_out = 3,
    .attr_size = sizeof(ls_norm_attr),
    .infer = infer,
    .grad = grad,
    .flops = lsi_norm_flops,
    .ref = ref,
    .attr_text = lsi_norm_attr_text,
};

ls_value ls_layer_norm(ls_value x, ls_value gamma, ls_value beta, ls_norm_attr a)
{
    return ls_graph_add(x.g, &ls_op_layer_norm, 3, (ls_value[]){x, gamma, beta}, &a);
}
