/* sigmoid: y = 1 / (1 + exp(-x)), computed without overflow.  Its gradient is written with the output. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return a >= 0 ? 1 / (1 + exp(-a)) : exp(a) / (1 + exp(a));
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_sigmoid_grad(c->dout[0], c->out[0]);
}

const ls_op ls_op_sigmoid = {
    .name = "sigmoid",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SIGMOID,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_sigmoid(ls_value x)
{
    return lsi_add_unary(&ls_op_sigmoid, x, 0, 0);
}
