/* square: y = x * x. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return a * a;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_mul(c->dout[0], ls_scale(c->in[0], 2));
}

const ls_op ls_op_square = {
    .name = "square",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SQUARE,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_square(ls_value x)
{
    return lsi_add_unary(&ls_op_square, x, 0, 0);
}
