/* random.h: what the kernels that draw random numbers are called with (module/random.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_RANDOM_H
#define LS_BACKEND_CUDA_LAUNCH_RANDOM_H

#include "lockstep/tensor.h"

/* x / (1 - p) where a draw is kept, else 0.  x is (samples, channels, inner), or (samples, inner, channels)
 * in memory; draws are numbered by channel and position, or by channel alone. */
typedef struct lsi_cuda_dropout_args {
    ls_dtype dtype;
    int64_t samples, channels, inner;
    bool channels_last, per_channel;
    uint32_t stream;
    uint32_t dropped; /* a draw is dropped when its upper 24 bits are less */
    float scale;
    const void *x;
    const int32_t *key;
    void *y;
} lsi_cuda_dropout_args;

/* per_sample draws for each sample, f32. */
typedef struct lsi_cuda_random_args {
    int64_t samples, per_sample;
    bool normal; /* with standard deviation `deviation`; else uniform in [0, 1) */
    double deviation;
    uint32_t stream;
    const int32_t *key;
    float *out;
} lsi_cuda_random_args;

/* Images of earlier steps in the place of new ones (ops/replay.c). */
typedef struct lsi_cuda_replay_args {
    ls_dtype dtype;
    int64_t capacity, images, width;
    uint32_t stream;
    const void *pool, *x;
    const float *filled;
    const int32_t *key;
    void *shown;
    int32_t *slot, *place;
} lsi_cuda_replay_args;

#endif
