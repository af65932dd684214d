/* relu: y = max(x, 0).  Its gradient is written with the output, so that the input need not be kept. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return a < 0 ? 0 : a; /* NaN stays NaN: a ReLU must not hide a broken number */
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_relu_grad(c->dout[0], c->out[0]);
}

const ls_op ls_op_relu = {
    .name = "relu",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_RELU,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_relu(ls_value x)
{
    return lsi_add_unary(&ls_op_relu, x, 0, 0);
}
