/* abs: y = |x|; the gradient at 0 is 0. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return fabs(a);
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_mul(c->dout[0], ls_sign(c->in[0]));
}

const ls_op ls_op_abs = {
    .name = "abs",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_ABS,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_abs(ls_value x)
{
    return lsi_add_unary(&ls_op_abs, x, 0, 0);
}
