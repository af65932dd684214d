/* few.h: what convolutions between maps of few and of many channels are called with (module/few_*.cu).
 *
 * All of them are one geometry: pixel (y, x) of the map with many channels meets pixel (y * stride + ky -
 * top, x * stride + kx - left) of the map with few, with the weight (m, f, ky, kx) between channel m of the
 * one and f of the other.  Which of the three is the result makes the pass; weights have strides of their
 * own, negative ones where the filter is turned around.  Maps are channels last. */
#ifndef LS_BACKEND_CUDA_LAUNCH_FEW_H
#define LS_BACKEND_CUDA_LAUNCH_FEW_H

#include "ops/ops.h"

typedef struct lsi_cuda_few {
    bool ask;           /* nothing is launched; the result says whether it could be */
    int n;              /* samples */
    int h, w, f;        /* the map with few channels */
    int mh, mw, m;      /* the map with many: m is a multiple of 64 */
    int kh, kw, stride; /* f * kw <= 32, kh <= 16, stride 1..4 */
    int top, left;
    int64_t w_first, w_m, w_f, w_ky, w_kx; /* weight (m, f, ky, kx) is at w_first + m * w_m + ... */
} lsi_cuda_few;

/* many = few * weights, then bias (one per channel, NULL: none) and activation. */
typedef struct lsi_cuda_few_to_many_args {
    lsi_cuda_few p;
    const void *few, *weights, *bias;
    void *many;
    ls_act act;
    float slope;
} lsi_cuda_few_to_many_args;

/* few = many * weights. */
typedef struct lsi_cuda_few_from_many_args {
    lsi_cuda_few p;
    const void *many, *weights, *bias;
    void *few;
    ls_act act;
    float slope;
} lsi_cuda_few_from_many_args;

/* weights = the sum over pixels of many times few. */
typedef struct lsi_cuda_few_weights_args {
    lsi_cuda_few p;
    const void *many, *few;
    void *weights;
    float *partial; /* scratch: lsi_few_weights_scratch bytes */
    int blocks;     /* that share the sum */
} lsi_cuda_few_weights_args;

static inline size_t lsi_few_weights_scratch(const lsi_cuda_few *p, int blocks)
{
    return (size_t)blocks * (size_t)(p->kh * p->kw * p->f) * (size_t)p->m * sizeof(float);
}

#endif
