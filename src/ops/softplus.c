/* softplus: y = log(1 + e^x), computed without overflow. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return (a > 0 ? a : 0) + log1p(exp(-fabs(a)));
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_mul(c->dout[0], ls_sigmoid(c->in[0]));
}

const ls_op ls_op_softplus = {
    .name = "softplus",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SOFTPLUS,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_softplus(ls_value x)
{
    return lsi_add_unary(&ls_op_softplus, x, 0, 0);
}
