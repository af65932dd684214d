/* optim_rules.h: what all optimisers share: the order of inputs and outputs, the shape rule, and the loop
 * over the parameters of a group in the reference kernels. */
#ifndef LS_OPS_OPTIM_RULES_H
#define LS_OPS_OPTIM_RULES_H

#include "ops/ops.h"

enum {
    LSI_OPTIM_LR,
    LSI_OPTIM_SCALE,
    LSI_OPTIM_T,
    LSI_OPTIM_W
}; /* the first inputs; weights begin at the last */

/* Whether `op` can work with these numbers. */
ls_status lsi_optim_check(const ls_optim_attr *a, const ls_op *op, ls_err *err);
/* Checks the whole group against `op`'s number of states and gives each output the shape and type of the
 * input it replaces.  Learning rate, loss scale and states are f32 (f64 beside f64 weights); gradients are
 * like weights. */
ls_status lsi_optim_infer(ls_infer *c, const ls_op *op, ls_err *err);
int lsi_optim_count_out(int n_in, const void *attr);
int lsi_optim_alias(int n_in, const void *attr, int k);
void lsi_optim_attr_text(const void *attr, char *buf, size_t n);
/* `per_element` operations for every weight of the group. */
double lsi_optim_flops(const ls_graph *g, const ls_node *node, double per_element);

/* One parameter in a reference kernel.  Old and new tensors never overlap. */
typedef struct lsi_param {
    int64_t count;
    int rank;
    const double *w, *g; /* g as it came: still multiplied by the loss scale */
    const double *s[2];  /* old states */
    double *w_new, *s_new[2];
} lsi_param;

typedef struct lsi_optim_step {
    const ls_optim_attr *attr;
    double lr, loss_scale;
    double t; /* number of this update: 1 for the first */
} lsi_optim_step;

typedef void (*lsi_optim_update)(const lsi_optim_step *step, const lsi_param *p);
/* The reference kernel of all optimisers: counts the update and calls `update` for each parameter. */
void lsi_ref_optim(const ls_ref_call *c, lsi_optim_update update);

/* The gradient of element i without the loss scale, plus decay * w (L2 regularisation). */
static inline double lsi_optim_gradient(const lsi_optim_step *step, const lsi_param *p, int64_t i,
                                        double decay)
{
    return p->g[i] / step->loss_scale + decay * p->w[i];
}
/* Adam's moments of element i after gradient g, into the new states 0 and 1. */
void lsi_optim_moments(const lsi_optim_step *step, const lsi_param *p, int64_t i, double g);
/* Euclidean norm. */
double lsi_norm(const double *x, int64_t n);

/* The op of an optimiser whose file has `update`; with what it costs per element. */
#define LSI_OPTIM_OP(rule, per_element)                                                                      \
    static void ref(const ls_ref_call *c)                                                                    \
    {                                                                                                        \
        lsi_ref_optim(c, update);                                                                            \
    }                                                                                                        \
    static ls_status infer(ls_infer *c, ls_err *err)                                                         \
    {                                                                                                        \
        return lsi_optim_infer(c, &ls_op_##rule, err);                                                       \
    }                                                                                                        \
    static double flops(const ls_graph *g, const ls_node *n)                                                 \
    {                                                                                                        \
        return lsi_optim_flops(g, n, per_element);                                                           \
    }                                                                                                        \
    const ls_op ls_op_##rule = {                                                                             \
        .name = #rule,                                                                                       \
        .min_in = LSI_OPTIM_W + 2,                                                                           \
        .max_in = -1,                                                                                        \
        .attr_size = sizeof(ls_optim_attr),                                                                  \
        .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,                                                               \
        .count_out = lsi_optim_count_out,                                                                    \
        .infer = infer,                                                                                      \
        .flops = flops,                                                                                      \
        .alias = lsi_optim_alias,                                                                            \
        .ref = ref,                                                                                          \
        .attr_text = lsi_optim_attr_text,                                                                    \
    };

#endif
