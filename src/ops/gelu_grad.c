/* gelu_grad: dx = dy * (Phi(x) + x * phi(x)); phi is the density of the standard normal, Phi its integral; x
 * is the input of gelu. */
#include "ops/pointwise_rules.h"

#include <math.h>

static double eval(double dy, double x, const double *p)
{
    double cdf = 0.5 * (1 + erf(x * 0.70710678118654752440));    /* 1 / sqrt(2) */
    double density = exp(-0.5 * x * x) * 0.39894228040143267794; /* 1 / sqrt(2 pi) */

    (void)p;
    return dy * (cdf + x * density);
}

/* phi(x) * (2 - x^2); the density is written exp(log phi), which needs no constant factor of its own. */
static ls_value second_derivative(ls_value x)
{
    ls_value x2 = ls_square(x);
    ls_value density = ls_exp(ls_affine(x2, -0.5, -0.91893853320467274178)); /* log(1 / sqrt(2 pi)) */

    return ls_mul(density, ls_affine(x2, -1, 2));
}

static void grad(ls_grad_call *c)
{
    ls_value ddx = c->dout[0], dy = c->in[0], x = c->in[1];

    if (c->want[0]) c->din[0] = ls_sum_to(ls_gelu_grad(ddx, x), ls_value_shape(dy));
    if (c->want[1]) c->din[1] = ls_sum_to(ls_mul(ls_mul(ddx, dy), second_derivative(x)), ls_value_shape(x));
}

const ls_op ls_op_gelu_grad = {
    .name = "gelu_grad",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .pw = LS_PW_GELU_GRAD,
    .infer = lsi_infer_binary,
    .grad = grad,
    .pw_eval = eval,
};

ls_value ls_gelu_grad(ls_value dy, ls_value x)
{
    return lsi_add_binary(&ls_op_gelu_grad, dy, x, 0);
}
