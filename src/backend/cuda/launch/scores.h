/* scores.h: what the kernels over rows of scores are called with (module/scores.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_SCORES_H
#define LS_BACKEND_CUDA_LAUNCH_SCORES_H

#include "lockstep/tensor.h"

/* Rows of `width` elements. */
typedef struct lsi_cuda_softmax_args {
    ls_dtype dtype;
    int64_t rows, width;
    bool log;
    const void *x;
    void *y;
} lsi_cuda_softmax_args;

/* The mean over rows of -log softmax(x)[label], and the probabilities; both f32. */
typedef struct lsi_cuda_cross_entropy_args {
    ls_dtype dtype;
    int64_t rows, width;
    const void *x;
    const int32_t *labels;
    float *loss, *probs;
    float *each;      /* scratch: one per row */
    unsigned *ticket; /* one, 0 between launches */
} lsi_cuda_cross_entropy_args;

typedef struct lsi_cuda_cross_entropy_grad_args {
    int64_t rows, width;
    const float *dloss, *probs;
    const int32_t *labels;
    float *dx;
} lsi_cuda_cross_entropy_grad_args;

/* How many rows have their (first) largest element at the label. */
typedef struct lsi_cuda_accuracy_args {
    ls_dtype dtype;
    int64_t rows, width;
    const void *x;
    const int32_t *labels;
    float *right;
    float *each;
    unsigned *ticket;
} lsi_cuda_accuracy_args;

#endif
