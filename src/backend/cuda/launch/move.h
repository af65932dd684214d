/* move.h: what the kernels that fill and convert are called with (module/move.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_MOVE_H
#define LS_BACKEND_CUDA_LAUNCH_MOVE_H

#include "lockstep/tensor.h"

/* count elements of `value`. */
typedef struct lsi_cuda_fill_args {
    void *out;
    ls_dtype dtype;
    int64_t count;
    double value;
} lsi_cuda_fill_args;

/* out[i] = in[i], rounded once. */
typedef struct lsi_cuda_cast_args {
    void *out;
    const void *in;
    ls_dtype to, from;
    int64_t count;
} lsi_cuda_cast_args;

#endif
