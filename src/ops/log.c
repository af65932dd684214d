/* log: y = ln(x). */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return log(a);
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_div(c->dout[0], c->in[0]);
}

const ls_op ls_op_log = {
    .name = "log",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_LOG,
    .infer = lsi_infer_unary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_ln(ls_value x)
{
    return lsi_add_unary(&ls_op_log, x, 0, 0);
}
