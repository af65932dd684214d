/* affine: y = p[0] * x + p[1]. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)b;
    return p[0] * a + p[1];
}

static void grad(ls_grad_call *c)
{
    const ls_pw_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_scale(c->dout[0], a->p[0]);
}

const ls_op ls_op_affine = {
    .name = "affine",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_pw_attr),
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_AFFINE,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
    .attr_text = lsi_pw_attr_text,
};

ls_value ls_affine(ls_value x, double scale, double shift)
{
    if (scale == 1 && shift == 0) return x;
    return lsi_add_unary(&ls_op_affine, x, scale, shift);
}
