/* sub: y = a - b, with broadcasting. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)p;
    return a - b;
}

static void grad(ls_grad_call *c)
{
    ls_value dy = c->dout[0];

    if (c->want[0]) c->din[0] = ls_sum_to(dy, ls_value_shape(c->in[0]));
    if (c->want[1]) c->din[1] = ls_neg(ls_sum_to(dy, ls_value_shape(c->in[1])));
}

const ls_op ls_op_sub = {
    .name = "sub",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_SUB,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_sub(ls_value a, ls_value b)
{
    return lsi_add_binary(&ls_op_sub, a, b, 0);
}
