/* relu_grad: dx = dy where y > 0, else 0; y is the output of relu (or its input: same sign). */
#include "ops/pointwise_rules.h"

static double eval(double dy, double y, const double *p)
{
    (void)p;
    return y > 0 ? dy : 0;
}

static void grad(ls_grad_call *c)
{
    /* Linear in dy; the dependence on y is flat wherever it is defined. */
    if (c->want[0]) c->din[0] = ls_sum_to(ls_relu_grad(c->dout[0], c->in[1]), ls_value_shape(c->in[0]));
}

const ls_op ls_op_relu_grad = {
    .name = "relu_grad",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_RELU_GRAD,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_relu_grad(ls_value dy, ls_value y)
{
    return lsi_add_binary(&ls_op_relu_grad, dy, y, 0);
}
