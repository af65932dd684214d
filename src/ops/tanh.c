/* tanh: y = tanh(x).  Its gradient is written with the output, so that the input need not be kept. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return tanh(a);
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_tanh_grad(c->dout[0], c->out[0]);
}

const ls_op ls_op_tanh = {
    .name = "tanh",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_TANH,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_tanh(ls_value x)
{
    return lsi_add_unary(&ls_op_tanh, x, 0, 0);
}
