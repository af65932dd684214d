/* instance_norm: y = (x - mean) * invstd, with the mean and 1 / sqrt(biased variance + eps) of every image
 * (one sample, one channel).  Gradients flow through y only. */
#include "ops/norm_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_norm_attr *a = c->attr;
    ls_shape x = c->in[0];
    ls_status st = LS_OK;

    LS_TRY(lsi_norm_check(c, 0, a->residual ? 2 : 1, err));
    if (x.rank != 4) return ls_fail(err, LS_INVALID, "needs x (N, C, H, W)");
    if (a->residual) LS_TRY(lsi_norm_check_like(c, 0, 1, "the residual", err));
    c->out[0] = x;
    for (int k = 1; k < 3; k++) {
        c->out[k] = LS_SHAPE(x.dim[0], x.dim[1]);
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[0]);
    }
out:
    return st;
}

static void grad(ls_grad_call *c)
{
    const ls_norm_attr *a = c->attr;

    LS_BUG_IF(a->act != LS_ACT_NONE || a->residual);
    if (c->want[0] && ls_value_ok(c->dout[0]))
        c->din[0] = ls_instance_norm_grad(c->dout[0], c->in[0], c->out[1], c->out[2], *a);
}

static void ref(const ls_ref_call *c)
{
    const ls_norm_attr *a = c->attr;
    lsi_norm_form f = lsi_instance_norm_form(c->in[0].shape);
    lsi_norm_data d = {.x = c->in[0].d,
                       .residual = a->residual ? c->in[1].d : NULL,
                       .y = c->out[0].d,
                       .mean = c->out[1].d,
                       .invstd = c->out[2].d};

    lsi_norm_ref(&f, a, &d);
}

const ls_op ls_op_instance_norm = {
    .name = "instance_norm",
    .min_in = 1,
    .max_in = 2,
    .n_out = 3,
    .attr_size = sizeof(ls_norm_attr),
    .infer = infer,
    .grad = grad,
    .flops = lsi_norm_flops,
    .ref = ref,
    .attr_text = lsi_norm_attr_text,
};

ls_value ls_instance_norm(ls_value x, ls_norm_attr a)
{
    return ls_graph_add(x.g, &ls_op_instance_norm, 1, &x, &a);
}
