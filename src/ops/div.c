/* div: y = a / b, with broadcasting.  db = -dy * a / b^2 is written with the output: -dy * y / b. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)p;
    return a / b;
}

static void grad(ls_grad_call *c)
{
    ls_value dy = c->dout[0], b = c->in[1], y = c->out[0];

    if (c->want[0]) c->din[0] = ls_sum_to(ls_div(dy, b), ls_value_shape(c->in[0]));
    if (c->want[1]) c->din[1] = ls_neg(ls_sum_to(ls_div(ls_mul(dy, y), b), ls_value_shape(b)));
}

const ls_op ls_op_div = {
    .name = "div",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_DIV,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_div(ls_value a, ls_value b)
{
    return lsi_add_binary(&ls_op_div, a, b, 0);
}
