/* attention.h: what lies between the products of attention (module/attention.cu).  Scores are rows of `t`
 * numbers that begin every `pitch`. */
#ifndef LS_BACKEND_CUDA_LAUNCH_ATTENTION_H
#define LS_BACKEND_CUDA_LAUNCH_ATTENTION_H

#include "lockstep/tensor.h"

/* p = softmax(scale * scores) along each row, and the log-sum-exp of the row; the rest of a row of p is 0. */
typedef struct lsi_cuda_attend_args {
    const float *scores;
    void *p; /* may be the scores, where dtype is f32 */
    float *lse;
    ls_dtype dtype; /* of p */
    int64_t rows, t, pitch;
    float scale;
} lsi_cuda_attend_args;

/* From scores and dp = dout v^T: p = exp(scale * scores - lse) and ds = scale * p * (dp - dout . out). */
typedef struct lsi_cuda_attend_grad_args {
    const float *scores, *dp, *lse;
    void *p, *ds;           /* may be scores and dp, where dtype is f32 */
    const void *out, *dout; /* rows of d elements */
    ls_dtype dtype;
    int64_t rows, t, pitch, d;
    float scale;
} lsi_cuda_attend_grad_args;

#endif
