/* add: y = a + b, with broadcasting. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)p;
    return a + b;
}

static void grad(ls_grad_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->want[i]) c->din[i] = ls_sum_to(c->dout[0], ls_value_shape(c->in[i]));
}

const ls_op ls_op_add = {
    .name = "add",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_ADD,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_add(ls_value a, ls_value b)
{
    return lsi_add_binary(&ls_op_add, a, b, 0);
}
