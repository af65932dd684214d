/* sign: y = -1, 0 or 1; NaN stays NaN. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return a > 0 ? 1 : a < 0 ? -1 : a;
}

static void grad(ls_grad_call *c)
{
    (void)c; /* flat wherever it is defined: the gradient is zero */
}

const ls_op ls_op_sign = {
    .name = "sign",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SIGN,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_sign(ls_value x)
{
    return lsi_add_unary(&ls_op_sign, x, 0, 0);
}
