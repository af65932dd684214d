/* gelu: y = x * Phi(x), Phi being the cumulative distribution of the standard normal (the exact form, with
 * erf). */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return 0.5 * a * (1 + erf(a * 0.70710678118654752440)); /* 1 / sqrt(2) */
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_gelu_grad(c->dout[0], c->in[0]);
}

const ls_op ls_op_gelu = {
    .name = "gelu",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_GELU,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_gelu(ls_value x)
{
    return lsi_add_unary(&ls_op_gelu, x, 0, 0);
}
