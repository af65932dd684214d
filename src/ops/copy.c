/* copy: y = x in memory of its own, any type. */
#include "ops/pointwise_rules.h"
#include "ops/shape_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)b;
    (void)p;
    return a;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = c->dout[0];
}

const ls_op ls_op_copy = {
    .name = "copy",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE | LS_OP_MOVE,
    .pw = LS_PW_COPY,
    .infer = lsi_infer_same,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_copy(ls_value x)
{
    return lsi_add_unary(&ls_op_copy, x, 0, 0);
}
