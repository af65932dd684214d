/* leaky_relu_grad: dx = dy where y > 0, else slope * dy; y is the output of leaky_relu (or its input: same
 * sign). */
#include "ops/pointwise_rules.h"

static double eval(double dy, double y, const double *p)
{
    return y > 0 ? dy : p[0] * dy;
}

static void grad(ls_grad_call *c)
{
    const ls_pw_attr *a = c->attr;

    /* Linear in dy; the dependence on y is flat wherever it is defined. */
    if (c->want[0])
        c->din[0] = ls_sum_to(ls_leaky_relu_grad(c->dout[0], c->in[1], a->p[0]), ls_value_shape(c->in[0]));
}

const ls_op ls_op_leaky_relu_grad = {
    .name = "leaky_relu_grad",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(ls_pw_attr),
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_LEAKY_GRAD,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
    .attr_text = lsi_pw_attr_text,
};

ls_value ls_leaky_relu_grad(ls_value dy, ls_value y, double slope)
{
    return lsi_add_binary(&ls_op_leaky_relu_grad, dy, y, slope);
}
