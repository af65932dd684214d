/* maximum: y = the larger of a and b, with broadcasting; NaN when either is NaN.  The gradient goes to the
 * operand that was taken, to b when they are equal (so that maximum(x, 0) has relu's gradient). */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)p;
    return a > b || isnan(a) ? a : b;
}

static void grad(ls_grad_call *c)
{
    ls_value dy = c->dout[0], a = c->in[0], b = c->in[1];
    ls_value to_a = ls_relu_grad(dy, ls_sub(a, b));

    if (c->want[0]) c->din[0] = ls_sum_to(to_a, ls_value_shape(a));
    if (c->want[1]) c->din[1] = ls_sum_to(ls_sub(dy, to_a), ls_value_shape(b));
}

const ls_op ls_op_maximum = {
    .name = "maximum",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_MAX,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_maximum(ls_value a, ls_value b)
{
    return lsi_add_binary(&ls_op_maximum, a, b, 0);
}
