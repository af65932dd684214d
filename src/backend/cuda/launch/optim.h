/* optim.h: what the kernels that update weights are called with (module/optim.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_OPTIM_H
#define LS_BACKEND_CUDA_LAUNCH_OPTIM_H

#include "ops/ops.h"

typedef enum lsi_cuda_rule {
    LSI_RULE_SGD,
    LSI_RULE_ADAM,
    LSI_RULE_RMSPROP,
    LSI_RULE_LARS,
    LSI_RULE_LAMB
} lsi_cuda_rule;

/* One parameter; everything is updated where it lies.  Weights and gradients are of one type, states f32. */
typedef struct lsi_cuda_param {
    void *w;
    const void *g;
    float *state[2];
    int64_t count;
    int32_t first; /* number of its first chunk: parameters lie behind one another in chunks */
    bool vector;   /* its rank is 0 or 1 */
} lsi_cuda_param;

/* Elements that a block updates. */
enum { LSI_OPTIM_CHUNK = 8192 };

/* Chunks of a parameter; an empty one has one too, with nothing in it, so that each has a block of its own.
 */
#define LSI_OPTIM_CHUNKS(count) ((count) > 0 ? ((count) + LSI_OPTIM_CHUNK - 1) / LSI_OPTIM_CHUNK : 1)

typedef struct lsi_cuda_optim_args {
    lsi_cuda_rule rule;
    ls_dtype dtype;
    ls_optim_attr attr;
    const lsi_cuda_param *params; /* in host memory: they become arguments of the kernel */
    int n;
    const float *lr, *loss_scale;
    int32_t *t;       /* counted up after all have read it, unless the attributes say `part` */
    float *norms;     /* scratch of lars and lamb: two for each chunk of all parameters */
    unsigned *ticket; /* one, 0 between launches */
} lsi_cuda_optim_args;

/* sum = weight * gradient, added to what is there where keep is not 0. */
typedef struct lsi_cuda_accumulate_args {
    ls_dtype dtype; /* of the gradient */
    int64_t count;
    float *sum;
    const void *gradient;
    const float *keep, *weight;
} lsi_cuda_accumulate_args;

#endif
