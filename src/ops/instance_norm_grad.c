/* instance_norm_grad: dx = invstd * (dz - mean(dz) - xhat * mean(dz * xhat)) per image, where xhat = (x -
 * mean) * invstd and dz is dy, or act'(y) * dy when an activation is fused (y is then input 4).  A fused
 * residual receives dz as output 1.  With `by_beta` there is no y: its sign, which is all that ReLU and leaky
 * ReLU need, is that of xhat. */
#include "ops/norm_rules.h"

enum { DY, X, MEAN, INVSTD, Y };

static int count_out(int n_in, const void *attr)
{
    const ls_norm_attr *a = attr;

    (void)n_in;
    return a->residual ? 2 : 1;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_norm_attr *a = c->attr;
    ls_shape x = c->in[X];
    const bool reads_y = a->act != LS_ACT_NONE && !a->by_beta;
    ls_status st = LS_OK;

    LS_TRY(lsi_norm_check(c, X, reads_y ? 5 : 4, err));
    LS_TRY(lsi_norm_check_act(a, err));
    if (a->by_beta && (a->residual || !lsi_norm_act_by_sign(a)))
        return ls_fail(err, LS_INVALID, "the sign of x tells nothing of this activation's result");
    if (x.rank != 4) return ls_fail(err, LS_INVALID, "needs x (N, C, H, W)");
    LS_TRY(lsi_norm_check_like(c, X, DY, "dy", err));
    LS_TRY(lsi_norm_check_stat(c, X, MEAN, "the mean", LS_SHAPE(x.dim[0], x.dim[1]), err));
    LS_TRY(lsi_norm_check_stat(c, X, INVSTD, "invstd", LS_SHAPE(x.dim[0], x.dim[1]), err));
    if (reads_y) LS_TRY(lsi_norm_check_like(c, X, Y, "y", err));
    for (int k = 0; k < c->n_out; k++) c->out[k] = x;
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    lsi_norm_form f = lsi_instance_norm_form(ls_value_shape(c->in[X]));

    lsi_norm_grad_grad(c, &ls_op_instance_norm_grad, &f);
}

static void ref(const ls_ref_call *c)
{
    const ls_norm_attr *a = c->attr;
    lsi_norm_form f = lsi_instance_norm_form(c->in[X].shape);
    lsi_norm_grad_data d = {.dy = c->in[DY].d,
                            .x = c->in[X].d,
                            .mean = c->in[MEAN].d,
                            .invstd = c->in[INVSTD].d,
                            .y = a->act != LS_ACT_NONE && !a->by_beta ? c->in[Y].d : NULL,
                            .dx = c->out[0].d,
                            .dresidual = a->residual ? c->out[1].d : NULL};

    lsi_norm_grad_ref(&f, a, &d);
}

const ls_op ls_op_instance_norm_grad = {
    .name = "instance_norm_grad",
    .min_in = 4,
    .max_in = 5,
    .attr_size = sizeof(ls_norm_attr),
    .count_out = count_out,
    .infer = infer,
    .grad = grad,
    .flops = lsi_norm_grad_flops,
    .ref = ref,
    .attr_text = lsi_norm_attr_text,
};

ls_value ls_instance_norm_grad(ls_value dy, ls_value x, ls_value mean, ls_value invstd, ls_norm_attr a)
{
    return ls_graph_add(x.g, &ls_op_instance_norm_grad, 4, (ls_value[]){dy, x, mean, invstd}, &a);
}
