/* image.h: what the kernels over the pixels of maps are called with (module/pool.cu, module/resample.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_IMAGE_H
#define LS_BACKEND_CUDA_LAUNCH_IMAGE_H

#include "ops/ops.h"

/* Two maps of the same samples and channels: `large` has height h and width w, `small` oh and ow. */
typedef struct lsi_cuda_images {
    ls_dtype dtype;
    int64_t n, c, h, w, oh, ow;
    bool channels_last;
} lsi_cuda_images;

/* x (h, w) -> y (oh, ow) and the position of each maximum in its window. */
typedef struct lsi_cuda_maxpool_args {
    lsi_cuda_images map;
    ls_pool_attr attr;
    const void *x;
    void *y;
    uint8_t *index;
} lsi_cuda_maxpool_args;

/* dy (oh, ow) -> dx (h, w); y only where a ReLU is fused. */
typedef struct lsi_cuda_maxpool_grad_args {
    lsi_cuda_images map;
    ls_pool_attr attr;
    const void *dy, *y;
    const uint8_t *index;
    void *dx;
} lsi_cuda_maxpool_grad_args;

/* x (h, w) -> y (oh, ow), or with `backward` dy (oh, ow) -> dx (h, w). */
typedef struct lsi_cuda_avgpool_args {
    lsi_cuda_images map;
    ls_pool_attr attr;
    bool backward;
    const void *in;
    void *out;
} lsi_cuda_avgpool_args;

/* (oh, ow) to blocks of factor x factor, or with `backward` the sums of the blocks. */
typedef struct lsi_cuda_upsample_args {
    lsi_cuda_images map;
    int factor;
    bool backward;
    const void *in;
    void *out;
} lsi_cuda_upsample_args;

#endif
