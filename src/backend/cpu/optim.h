/* optim.h: the updates of the optimisers on runs of elements, per instruction set. */
#ifndef LS_BACKEND_CPU_OPTIM_H
#define LS_BACKEND_CPU_OPTIM_H

#include "ops/ops.h"

/* Numbers of one update; which of them an optimiser uses is said beside its function. */
typedef struct lsi_optim_numbers {
    float g_scale; /* multiplies the gradient as it came */
    float decay;   /* times w is added to the gradient */
    float lr, momentum;
    bool nesterov;
    float b1, b1_rest, b2, b2_rest; /* decays of the moments, and 1 minus them */
    float step, root_scale, eps;    /* adam, lamb: direction = step * m / (sqrt(v) * root_scale + eps) */
    float w_decay;                  /* decoupled decay: w -= w_decay * w */
} lsi_optim_numbers;

/* Elements of one parameter: old values in, new values out; each out may equal its in exactly. */
typedef struct lsi_optim_run {
    int64_t n;
    const float *w, *g, *s0, *s1;
    float *w_new, *s0_new, *s1_new;
} lsi_optim_run;

typedef void (*lsi_optim_fn)(const lsi_optim_numbers *c, const lsi_optim_run *r);

typedef struct lsi_optim_table {
    const char *impl;
    lsi_optim_fn sgd;              /* without momentum: g_scale, decay, lr */
    lsi_optim_fn sgd_momentum;     /* also momentum, nesterov; s0 is the velocity */
    lsi_optim_fn adam;             /* g_scale, decay, moments, step, root_scale, eps, w_decay */
    lsi_optim_fn rmsprop;          /* g_scale, decay, b2 (alpha), eps, lr; s0 is the mean square */
    lsi_optim_fn rmsprop_momentum; /* also momentum; s1 is the buffer */
    /* lamb: moments only, then the norm of the direction; then w -= lr * direction. */
    void (*lamb_moments)(const lsi_optim_numbers *c, const lsi_optim_run *r, double *u_square);
    lsi_optim_fn lamb_step;
    double (*square_sum)(const float *x, int64_t n);
    /* sum = weight * g, plus sum itself with `keep`. */
    void (*accumulate)(float *sum, const float *g, bool keep, float weight, int64_t n);
} lsi_optim_table;
extern const lsi_optim_table lsi_optim_avx512, lsi_optim_avx2;
/* That of this machine; NULL: there is none, and the reference kernels are used. */
const lsi_optim_table *lsi_optimiser_table(void);

#endif
