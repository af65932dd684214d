/* sqrt: y = x^(1/2).  dx = dy / (2 y), written with the output. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return sqrt(a);
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_div(ls_scale(c->dout[0], 0.5), c->out[0]);
}

const ls_op ls_op_sqrt = {
    .name = "sqrt",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SQRT,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_sqrt(ls_value x)
{
    return lsi_add_unary(&ls_op_sqrt, x, 0, 0);
}
