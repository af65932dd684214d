/* layer_norm_grad: per row, with xhat = (x - mean) * invstd and h = gamma * dy:
 * dx = invstd * (h - mean(h) - xhat * mean(h * xhat)); dgamma = sum of dy * xhat and dbeta = sum of dy over
 * all rows.  With the attribute residual a last input is added to dx: the gradient that x has already. */
#include "ops/norm_rules.h"

enum { DY, X, GAMMA, MEAN, INVSTD, MORE };

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_norm_attr *a = c->attr;
    ls_shape x = c->in[X], stat, last;
    ls_status st = LS_OK;

    LS_TRY(lsi_norm_check(c, X, a->residual ? 6 : 5, err));
    if (a->act != LS_ACT_NONE) return ls_fail(err, LS_INVALID, "carries no activation");
    if (x.rank < 1) return ls_fail(err, LS_INVALID, "needs x (..., D)");
    stat = ls_shape_make(x.rank - 1, x.dim);
    last = LS_SHAPE(x.dim[x.rank - 1]);
    LS_TRY(lsi_norm_check_like(c, X, DY, "dy", err));
    LS_TRY(lsi_norm_check_stat(c, X, GAMMA, "gamma", last, err));
    LS_TRY(lsi_norm_check_stat(c, X, MEAN, "the mean", stat, err));
    LS_TRY(lsi_norm_check_stat(c, X, INVSTD, "invstd", stat, err));
    if (a->residual) LS_TRY(lsi_norm_check_like(c, X, MORE, "what is added to dx", err));
    c->out[0] = x;
    for (int k = 1; k < 3; k++) {
        c->out[k] = last;
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[X]);
    }
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    lsi_norm_form f = lsi_layer_norm_form(ls_value_shape(c->in[X]));

    lsi_norm_grad_grad(c, &ls_op_layer_norm_grad, &f);
}

static void ref(const ls_ref_call *c)
{
    const ls_norm_attr *a = c->attr;
    ls_norm_attr plain = *a;
    lsi_norm_form f = lsi_layer_norm_form(c->in[X].shape);
    lsi_norm_grad_data d = {.dy = c->in[DY].d,
                            .x = c->in[X].d,
                            .gamma = c->in[GAMMA].d,
                            .mean = c->in[MEAN].d,
                            .invstd = c->in[INVSTD].d,
                            .dx = c->out[0].d,
                            .dgamma = c->out[1].d,
                            .dbeta = c->out[2].d};

    plain.residual = false;
    lsi_norm_grad_ref(&f, &plain, &d);
    if (a->residual)
        for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] += c->in[MORE].d[i];
}

const ls_op ls_op_layer_norm_grad = {
    .name = "layer_norm_grad",
    .min_in = 5,
    .max_in = 6,
    .n_out = 3,
    .attr_size = sizeof(ls_norm_attr),
    .infer = infer,
    .grad = grad,
    .flops = lsi_norm_grad_flops,
    .ref = ref,
    .attr_text = lsi_norm_attr_text,
};

ls_value ls_layer_norm_grad(ls_value dy, ls_value x, ls_value gamma, ls_value mean, ls_value invstd,
                            ls_norm_attr a)
{
    return ls_graph_add(x.g, &ls_op_layer_norm_grad, 5, (ls_value[]){dy, x, gamma, mean, invstd}, &a);
}
