/* batch_norm_grad: dx = gamma * invstd * (dz - mean(dz) - xhat * mean(dz * xhat)), dgamma = sum(dz * xhat),
 * dbeta = sum(dz), where xhat = (x - mean) * invstd and dz is dy, or act'(y) * dy when an activation is
 * fused.  A fused residual receives dz as output 3.  With `by_beta` the sign of y, which is all that ReLU and
 * leaky ReLU need, is that of xhat * gamma + beta.  With `sums` a last input is added to dy, where there is
 * a residual. */
#include "ops/norm_rules.h"

enum { DY, X, GAMMA, MEAN, INVSTD, Y, BETA = Y };

static int count_out(int n_in, const void *attr)
{
    const ls_norm_attr *a = attr;

    (void)n_in;
    return a->residual ? 4 : 3;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_norm_attr *a = c->attr;
    ls_shape x = c->in[X];
    bool act = a->act != LS_ACT_NONE;
    ls_status st = LS_OK;

    LS_TRY(lsi_norm_check(c, X, 5 + act + a->sums, err));
    LS_TRY(lsi_norm_check_act(a, err));
    if (x.rank != 2 && x.rank != 4) return ls_fail(err, LS_INVALID, "needs x (N, C) or (N, C, H, W)");
    LS_TRY(lsi_norm_check_like(c, X, DY, "dy", err));
    LS_TRY(lsi_norm_check_stat(c, X, GAMMA, "gamma", LS_SHAPE(x.dim[1]), err));
    LS_TRY(lsi_norm_check_stat(c, X, MEAN, "the mean", LS_SHAPE(x.dim[1]), err));
    LS_TRY(lsi_norm_check_stat(c, X, INVSTD, "invstd", LS_SHAPE(x.dim[1]), err));
    if (a->by_beta && (a->residual || !lsi_norm_act_by_sign(a)))
        return ls_fail(err, LS_INVALID, "the sign of x tells nothing of this activation's result");
    if (a->sums && !a->residual) return ls_fail(err, LS_INVALID, "adds to dy only beside a residual");
    if (a->sums) LS_TRY(lsi_norm_check_like(c, X, c->n_in - 1, "what is added to dy", err));
    if (a->by_beta)
        LS_TRY(lsi_norm_check_stat(c, X, BETA, "beta", LS_SHAPE(x.dim[1]), err));
    else if (act)
        LS_TRY(lsi_norm_check_like(c, X, Y, "y", err));
    c->out[0] = x;
    for (int k = 1; k < 3; k++) {
        c->out[k] = LS_SHAPE(x.dim[1]);
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[X]);
    }
    if (a->residual) c->out[3] = x;
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    lsi_norm_form f = lsi_batch_norm_form(ls_value_shape(c->in[X]));

    lsi_norm_grad_grad(c, &ls_op_batch_norm_grad, &f);
}

static void ref(const ls_ref_call *c)
{
    const ls_norm_attr *a = c->attr;
    lsi_norm_form f = lsi_batch_norm_form(c->in[X].shape);
    lsi_norm_grad_data d = {.dy = c->in[DY].d,
                            .x = c->in[X].d,
                            .gamma = c->in[GAMMA].d,
                            .mean = c->in[MEAN].d,
                            .invstd = c->in[INVSTD].d,
                            .y = a->act != LS_ACT_NONE && !a->by_beta ? c->in[Y].d : NULL,
                            .beta = a->by_beta ? c->in[BETA].d : NULL,
                            .dx = c->out[0].d,
                            .dgamma = c->out[1].d,
                            .dbeta = c->out[2].d,
                            .dresidual = a->residual ? c->out[3].d : NULL};

    if (a->sums) { /* the sum lies where dx will: an element is read before it is written, and not again */
        for (int64_t i = 0; i < c->in[X].count; i++)
            c->out[0].d[i] = c->in[DY].d[i] + c->in[c->n_in - 1].d[i];
        d.dy = c->out[0].d;
    }
    lsi_norm_grad_ref(&f, a, &d);
}

const ls_op ls_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .min_in = 5,
    .max_in = 7,
    .attr_size = sizeof(ls_norm_attr),
    .count_out = count_out,
    .infer = infer,
    .grad = grad,
    .flops = lsi_norm_grad_flops,
    .ref = ref,
    .attr_text = lsi_norm_attr_text,
};

ls_value ls_batch_norm_grad(ls_value dy, ls_value x, ls_value gamma, ls_value mean, ls_value invstd,
                            ls_norm_attr a)
{
    ls_value in[] = {dy, x, gamma, mean, invstd};

    return ls_graph_add(x.g, &ls_op_batch_norm_grad, 5, in, &a);
}
