/* rsqrt: y = x^(-1/2).  dx = -dy * y^3 / 2, written with the output. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return 1 / sqrt(a);
}

static void grad(ls_grad_call *c)
{
    ls_value y = c->out[0];

    if (c->want[0]) c->din[0] = ls_mul(ls_mul(c->dout[0], ls_scale(y, -0.5)), ls_square(y));
}

const ls_op ls_op_rsqrt = {
    .name = "rsqrt",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_RSQRT,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_rsqrt(ls_value x)
{
    return lsi_add_unary(&ls_op_rsqrt, x, 0, 0);
}
