/* conv_max.h: what the gradients of a convolution of 1 x 1 under a maximum over points are called with
 * (module/conv_max.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_CONV_MAX_H
#define LS_BACKEND_CUDA_LAUNCH_CONV_MAX_H

#include "lockstep/tensor.h"

/* Samples, channels above and below the convolution, points; maps are (n, length, c), or plain. */
typedef struct lsi_cuda_conv_max {
    ls_dtype dtype;
    bool channels_last;
    int n, o, c, length;
} lsi_cuda_conv_max;

/* dx[n][p] = the sum of dy[n][o] w[o] over those o whose index is p. */
typedef struct lsi_cuda_conv_max_dx_args {
    lsi_cuda_conv_max of;
    const void *dy, *w;
    const int32_t *index;
    void *dx;
} lsi_cuda_conv_max_dx_args;

/* dw[o] = the sum over n of dy[n][o] times x[n] at the index. */
typedef struct lsi_cuda_conv_max_dw_args {
    lsi_cuda_conv_max of;
    const void *x, *dy;
    const int32_t *index;
    void *dw;
} lsi_cuda_conv_max_dw_args;

enum { LSI_CONV_MAX_CHANNELS = 2048 }; /* above: a block keeps a list of them */

#endif
