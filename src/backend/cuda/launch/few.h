/* few.h: convolutions between maps of few and of many channels (few_tiles.c, source/few*.cuh), and what the
 * last kernel of their weight gradients is called with (module/few_total.cu).
 *
 * All of them are one geometry: pixel (y, x) of the map with many channels meets pixel (y * stride + ky -
 * top, x * stride + kx - left) of the map with few, with the weight (m, f, ky, kx) between channel m of the
 * one and f of the other.  Which of the three is the result makes the pass; weights have strides of their
 * own, negative ones where the filter is turned around.  Maps are channels last. */
#ifndef LS_BACKEND_CUDA_LAUNCH_FEW_H
#define LS_BACKEND_CUDA_LAUNCH_FEW_H

#include "ops/ops.h"

typedef struct lsi_cuda_few {
    int n;              /* samples */
    int h, w, f;        /* the map with few channels */
    int mh, mw, m;      /* the map with many: m is a multiple of 64 */
    int kh, kw, stride; /* f * kw <= 32, kh <= 16, stride 1..4 */
    int top, left;
    int64_t w_first, w_m, w_f, w_ky, w_kx; /* weight (m, f, ky, kx) is at w_first + m * w_m + ... */
} lsi_cuda_few;

/* weights = the sums of `blocks` rows of (tap, many channel). */
typedef struct lsi_cuda_few_total_args {
    lsi_cuda_few p;
    ls_dtype dtype; /* of the weights */
    const float *partial;
    void *weights;
    int blocks;
} lsi_cuda_few_total_args;

#endif
