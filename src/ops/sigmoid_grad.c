/* sigmoid_grad: dx = dy * y * (1 - y); y is the output of sigmoid. */
#include "ops/pointwise_rules.h"

static double eval(double dy, double y, const double *p)
{
    (void)p;
    return dy * y * (1 - y);
}

static void grad(ls_grad_call *c)
{
    ls_value ddx = c->dout[0], dy = c->in[0], y = c->in[1];

    if (c->want[0]) c->din[0] = ls_sum_to(ls_sigmoid_grad(ddx, y), ls_value_shape(dy));
    if (c->want[1]) c->din[1] = ls_sum_to(ls_mul(ls_mul(ddx, dy), ls_affine(y, -2, 1)), ls_value_shape(y));
}

const ls_op ls_op_sigmoid_grad = {
    .name = "sigmoid_grad",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SIGMOID_GRAD,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_sigmoid_grad(ls_value dy, ls_value y)
{
    return lsi_add_binary(&ls_op_sigmoid_grad, dy, y, 0);
}
