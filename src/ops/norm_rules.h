/* norm_rules.h: what batch, instance and layer norm share.
 *
 * All three subtract a mean and divide by a standard deviation; they differ in which elements belong together
 * and in which of them share a gamma and beta.  lsi_norm_form says both, and one pair of reference kernels
 * and one second derivative serve all three. */
#ifndef LS_OPS_NORM_RULES_H
#define LS_OPS_NORM_RULES_H

#include "ops/ops.h"
#include "ops/type_rules.h"

typedef enum lsi_norm_affine {
    LSI_AFFINE_NONE,
    LSI_AFFINE_GROUP, /* one gamma and beta per group: batch norm */
    LSI_AFFINE_INNER  /* one per position inside the group: layer norm */
} lsi_norm_affine;

/* A tensor seen as (outer, groups, inner): a group's statistics run over outer and inner. */
typedef struct lsi_norm_form {
    int64_t outer, groups, inner;
    lsi_norm_affine affine;
    unsigned axes; /* the dimensions that the statistics run over, as a mask for reductions */
    ls_shape stat,
        stat_row;        /* shape of mean and invstd; the same with ones, so that it broadcasts against x */
    ls_shape affine_row; /* shape in which gamma broadcasts against x */
} lsi_norm_form;

lsi_norm_form lsi_batch_norm_form(ls_shape x);
lsi_norm_form lsi_instance_norm_form(ls_shape x);
lsi_norm_form lsi_layer_norm_form(ls_shape x);

/* -- shape rules: `x` is the number of the input that holds x
 * ------------------------------------------------ */

/* x is floating, eps is not negative, and the number of inputs is n_in. */
ls_status lsi_norm_check(const ls_infer *c, int x, int n_in, ls_err *err);
/* Input i, called `name` in the message, has the type and shape of x. */
ls_status lsi_norm_check_like(const ls_infer *c, int x, int i, const char *name, ls_err *err);
/* Input i holds statistics for x in this shape. */
ls_status lsi_norm_check_stat(const ls_infer *c, int x, int i, const char *name, ls_shape shape, ls_err *err);
/* Gradients with a fused activation see only its result; refuses activations that cannot be undone from it.
 */
ls_status lsi_norm_check_act(const ls_norm_attr *a, ls_err *err);
/* Whether the activation is one whose gradient follows from the sign of its argument. */
bool lsi_norm_act_by_sign(const ls_norm_attr *a);
/* Neither activation nor residual: layer norm has no fused forms. */
ls_status lsi_norm_check_unfused(const ls_norm_attr *a, ls_err *err);
void lsi_norm_attr_text(const void *attr, char *buf, size_t n);
/* Of an ls_norm_pool_attr. */
void lsi_norm_pool_attr_text(const void *attr, char *buf, size_t n);

/* -- costs: FLOPs per element of x
 * ---------------------------------------------------------------------------- Forward: mean 1, variance 3,
 * one multiply-add to normalise 2.  Backward: normalised x 2, the two sums 3, dx 4. */
double lsi_norm_flops(const ls_graph *g, const ls_node *n);
double lsi_norm_grad_flops(const ls_graph *g, const ls_node *n);

/* -- reference kernels
 * ---------------------------------------------------------------------------------------- */

/* Mean and biased variance of one group; 0 and 0 of an empty one. */
void lsi_norm_moments(const lsi_norm_form *f, const double *x, int64_t group, double *mean, double *var);

/* y = act((x - mean) * invstd * gamma + beta + residual); what does not apply is NULL. */
typedef struct lsi_norm_data {
    const double *x, *gamma, *beta, *residual;
    double *y, *mean, *invstd;
} lsi_norm_data;
void lsi_norm_ref(const lsi_norm_form *f, const ls_norm_attr *a, const lsi_norm_data *d);

/* The gradients; y (the result after act), beta (in its place), gamma, dgamma, dbeta and dresidual may be
 * NULL. */
typedef struct lsi_norm_grad_data {
    const double *dy, *x, *gamma, *mean, *invstd, *y, *beta;
    double *dx, *dgamma, *dbeta, *dresidual;
} lsi_norm_grad_data;
void lsi_norm_grad_ref(const lsi_norm_form *f, const ls_norm_attr *a, const lsi_norm_grad_data *d);

/* Moves a batch norm's running values, inputs and outputs 3 and 4, on by the statistics of input 0. */
void lsi_batch_norm_track(const ls_ref_call *c, const ls_norm_attr *a, const lsi_norm_form *f);

/* -- second derivative
 * ------------------------------------------------------------------------------------------ */

/* The gradient rule of the three *_grad ops, whose inputs are dy, x[, gamma], mean, invstd.  Mean and invstd
 * count as functions of x here, since the forward ops pass no gradient through them. */
void lsi_norm_grad_grad(ls_grad_call *c, const ls_op *op, const lsi_norm_form *f);

#endif
