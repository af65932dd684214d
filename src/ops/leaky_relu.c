/* leaky_relu: y = x where x > 0, else slope * x.  Its gradient is written with the output, which has the sign
 * of the input as long as the slope is not negative. */
#include "ops/pointwise_rules.h"

static double eval(double a, double b, const double *p)
{
    (void)b;
    return a > 0 ? a : p[0] * a;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_pw_attr *a = c->attr;

    if (!(a->p[0] >= 0)) return ls_fail(err, LS_INVALID, "the slope must be at least 0, got %g", a->p[0]);
    return lsi_infer_unary(c, err);
}

static void grad(ls_grad_call *c)
{
    const ls_pw_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_leaky_relu_grad(c->dout[0], c->out[0], a->p[0]);
}

const ls_op ls_op_leaky_relu = {
    .name = "leaky_relu",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_pw_attr),
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_LEAKY,
    .infer = infer,
    .grad = grad,
    .pw_eval = eval,
    .attr_text = lsi_pw_attr_text,
};

ls_value ls_leaky_relu(ls_value x, double slope)
{
    return lsi_add_unary(&ls_op_leaky_relu, x, slope, 0);
}
