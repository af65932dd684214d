/* pointwise.h: what chains of element-wise functions are called with (module/pointwise.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_POINTWISE_H
#define LS_BACKEND_CUDA_LAUNCH_POINTWISE_H

#include "ops/ops.h"

/* The result's elements in the order in which they lie in memory; where inputs step differently through them,
 * as a grid with strides per input (in elements, 0 along what is repeated). */
typedef struct lsi_cuda_chain_args {
    void *out;
    const void *in[LS_PW_MAX_INPUTS];
    ls_dtype dtype; /* of all */
    int n_in;
    int64_t count;
    int rank; /* of the grid; 0: every input has `count` elements, or one where `one` says so */
    bool one[LS_PW_MAX_INPUTS];
    int64_t dim[LS_MAX_RANK], stride[LS_PW_MAX_INPUTS][LS_MAX_RANK];
    ls_pointwise_attr chain;
    void *compiled; /* the kernel that was generated for it, or NULL: it is interpreted */
    int vector;     /* elements that a thread of the compiled kernel takes at once */
} lsi_cuda_chain_args;

#endif
