/* mul: y = a * b, with broadcasting. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)p;
    return a * b;
}

static void grad(ls_grad_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->want[i]) c->din[i] = ls_sum_to(ls_mul(c->dout[0], c->in[1 - i]), ls_value_shape(c->in[i]));
}

const ls_op ls_op_mul = {
    .name = "mul",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_MUL,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_mul(ls_value a, ls_value b)
{
    return lsi_add_binary(&ls_op_mul, a, b, 0);
}
