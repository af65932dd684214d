/* batch_norm: y = (x - mean) * invstd * gamma + beta, with the batch's mean and 1 / sqrt(biased variance +
 * eps) of each channel, and running = (1 - momentum) * running + momentum * batch for evaluation.  An empty
 * batch leaves the running values alone; of a single element the variance is 0 under either convention.
 * Gradients flow through y only.
 *
 * Without running values (three inputs, or four with a residual, and three outputs) it is one that is
 * computed again (passes/recompute.c): they have been moved on already. */
#include "ops/norm_rules.h"

enum { X, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR };
enum { Y, MEAN, INVSTD, NEW_MEAN, NEW_VAR };

/* Whether there are running values. */
static bool tracks(int n_in)
{
    return n_in > RUNNING_VAR;
}

static int count_out(int n_in, const void *attr)
{
    (void)attr;
    return tracks(n_in) ? 5 : 3;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    static const char *const names[] = {"x", "gamma", "beta", "the running mean", "the running variance"};
    const ls_norm_attr *a = c->attr;
    ls_shape x = c->in[X];
    const int last = tracks(c->n_in) ? RUNNING_VAR : BETA;
    ls_status st = LS_OK;

    LS_TRY(lsi_norm_check(c, X, last + 1 + a->residual, err));
    if (x.rank != 2 && x.rank != 4) return ls_fail(err, LS_INVALID, "needs x (N, C) or (N, C, H, W)");
    for (int i = GAMMA; i <= last; i++)
        LS_TRY(lsi_norm_check_stat(c, X, i, names[i], LS_SHAPE(x.dim[1]), err));
    if (a->residual) LS_TRY(lsi_norm_check_like(c, X, last + 1, "the residual", err));
    c->out[Y] = x;
    for (int k = MEAN; k < c->n_out; k++) {
        c->out[k] = LS_SHAPE(x.dim[1]);
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[X]);
    }
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    const ls_norm_attr *a = c->attr;
    ls_value d;

    LS_BUG_IF(a->act != LS_ACT_NONE || a->residual);
    if (!ls_value_ok(c->dout[Y]) || !(c->want[X] || c->want[GAMMA] || c->want[BETA])) return;
    d = ls_batch_norm_grad(c->dout[Y], c->in[X], c->in[GAMMA], c->out[MEAN], c->out[INVSTD], *a);
    for (int i = X; i <= BETA; i++)
        if (c->want[i]) c->din[i] = ls_graph_out(d, i);
}

static int alias(int n_in, const void *attr, int k)
{
    (void)n_in;
    (void)attr;
    return k == NEW_MEAN || k == NEW_VAR ? k : -1; /* the running values are inputs 3 and 4 as well */
}

static void ref(const ls_ref_call *c)
{
    const ls_norm_attr *a = c->attr;
    lsi_norm_form f = lsi_batch_norm_form(c->in[X].shape);
    lsi_norm_data d = {.x = c->in[X].d,
                       .gamma = c->in[GAMMA].d,
                       .beta = c->in[BETA].d,
                       .residual = a->residual ? c->in[c->n_in - 1].d : NULL,
                       .y = c->out[Y].d,
                       .mean = c->out[MEAN].d,
                       .invstd = c->out[INVSTD].d};

    lsi_norm_ref(&f, a, &d);
    if (tracks(c->n_in)) lsi_batch_norm_track(c, a, &f);
}

const ls_op ls_op_batch_norm = {
    .name = "batch_norm",
    .min_in = 3,
    .max_in = 6,
    .count_out = count_out,
    .attr_size = sizeof(ls_norm_attr),
    .flags = LS_OP_UPDATE,
    .infer = infer,
    .grad = grad,
    .flops = lsi_norm_flops,
    .alias = alias,
    .ref = ref,
    .attr_text = lsi_norm_attr_text,
};

ls_value ls_batch_norm(ls_value x, ls_value gamma, ls_value beta, ls_value running_mean, ls_value running_var,
                       ls_norm_attr a)
{
    ls_value in[] = {x, gamma, beta, running_mean, running_var};

    return ls_graph_add(x.g, &ls_op_batch_norm, 5, in, &a);
}
