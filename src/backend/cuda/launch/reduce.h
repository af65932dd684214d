/* reduce.h: what the kernels of sums and maxima are called with (module/reduce.cu, module/reduce_max.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_REDUCE_H
#define LS_BACKEND_CUDA_LAUNCH_REDUCE_H

#include "backend/cuda/launch/groups.h"
#include "ops/ops.h"

/* out[group] = the sum of its elements. */
typedef struct lsi_cuda_sum_args {
    ls_dtype dtype;
    lsi_cuda_groups groups;
    const void *x;
    void *out;
} lsi_cuda_sum_args;

/* Sums over any set of dimensions: out[i] is the sum over `terms` elements.  Dimensions that stay and that
 * are summed, outermost first, with their strides in x. */
typedef struct lsi_cuda_sum_any_args {
    ls_dtype dtype;
    int64_t count, terms;
    int n_kept, n_summed;
    int64_t kept[LS_MAX_RANK], kept_stride[LS_MAX_RANK], summed[LS_MAX_RANK], summed_stride[LS_MAX_RANK];
    const void *x;
    void *out;
} lsi_cuda_sum_any_args;

/* dz = act'(y) * dy and its sum for each group. */
typedef struct lsi_cuda_bias_act_grad_args {
    ls_dtype dtype;
    lsi_cuda_groups groups;
    ls_act act;
    float slope;
    const void *dy, *y;
    void *dz, *dbias;
} lsi_cuda_bias_act_grad_args;

/* Over `length` of (outer, length, inner). */
typedef struct lsi_cuda_max_args {
    ls_dtype dtype;
    int64_t outer, length, inner;
    const void *x;
    void *out;
    int32_t *index;
} lsi_cuda_max_args;

typedef struct lsi_cuda_max_grad_args {
    ls_dtype dtype;
    int64_t outer, length, inner;
    const void *dy;
    const int32_t *index;
    void *dx;
} lsi_cuda_max_grad_args;

#endif
