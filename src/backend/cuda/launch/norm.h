/* norm.h: what the kernels of batch and instance norm (module/norm.cu) and of layer norm
 * (module/layer_norm.cu) are called with, and those of batch norm under a max pool (module/norm_pool.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_NORM_H
#define LS_BACKEND_CUDA_LAUNCH_NORM_H

#include "backend/cuda/launch/groups.h"
#include "backend/cuda/launch/image.h"
#include "ops/ops.h"

/* y = act((x - mean) * invstd * gamma + beta + residual) with the statistics of each group; what does not
 * apply is NULL. */
typedef struct lsi_cuda_norm_args {
    ls_dtype dtype; /* of x, y and residual; all else is f32 */
    lsi_cuda_groups groups;
    lsi_cuda_cluster cluster;
    ls_norm_attr attr;
    const void *x, *residual;
    const float *gamma, *beta, *running_mean, *running_var;
    void *y;
    float *mean, *invstd, *new_mean, *new_var;
} lsi_cuda_norm_args;

/* The gradients; y only where an activation is fused, and not `by_x`: there x, with gamma and beta (which may
 * be NULL), shows what the activation let through. */
typedef struct lsi_cuda_norm_grad_args {
    ls_dtype dtype;
    lsi_cuda_groups groups;
    lsi_cuda_cluster cluster;
    ls_norm_attr attr;
    const void *dy, *x, *y;
    const void *more; /* is added to dy; only where dresidual is wanted, which then has the sum in it */
    const float *gamma, *beta, *mean, *invstd;
    void *dx, *dresidual;
    float *dgamma, *dbeta;
    float *factors; /* scratch: three per group */
    bool by_x;
} lsi_cuda_norm_grad_args;

/* maxpool2d of such a norm of x, channels last: norm.y is the pooled map, and `best` what x was where the
 * windows were won, at `index` in them. */
typedef struct lsi_cuda_norm_pool_args {
    lsi_cuda_norm_args norm;
    lsi_cuda_images map;
    ls_pool_attr pool;
    uint8_t *index;
    void *best;
} lsi_cuda_norm_pool_args;

/* Its gradients: norm.groups are of pooled maps, and norm.x is `best`, of which the sums are. */
typedef struct lsi_cuda_norm_pool_grad_args {
    lsi_cuda_norm_grad_args norm;
    lsi_cuda_images map;
    ls_pool_attr pool;
    const void *x;
    const uint8_t *index;
} lsi_cuda_norm_pool_grad_args;

/* Over rows of `width` elements. */
typedef struct lsi_cuda_layer_norm_args {
    ls_dtype dtype;
    int64_t rows, width;
    double eps;
    const void *x;
    const float *gamma, *beta;
    void *y;
    float *mean, *invstd;
} lsi_cuda_layer_norm_args;

typedef struct lsi_cuda_layer_norm_grad_args {
    ls_dtype dtype;
    int64_t rows, width; /* of at most LSI_LAYER_NORM_WIDTH */
    int blocks;
    const void *dy, *x;
    const void *residual; /* is added to dx; NULL: nothing */
    const float *gamma, *mean, *invstd;
    void *dx;
    float *dgamma, *dbeta;
    float *partial; /* scratch: 2 * width for each block */
} lsi_cuda_layer_norm_grad_args;

enum { LSI_LAYER_NORM_WIDTH = 4096 };

#endif
