/* convert.h: many tensors at once in another type or layout (module/convert.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_CONVERT_H
#define LS_BACKEND_CUDA_LAUNCH_CONVERT_H

#include "lockstep/tensor.h"

/* One tensor, seen as (outer, channels, inner): plain in that order, channels last as (outer, inner,
 * channels).  It is worked on in tiles of `outers` times `across` channels with all of inner, of at most
 * LSI_CONVERT_TILE elements; more than one outer only where a tile has all channels.  Where inner is
 * larger than that, and channels become the last, tiles are `pixels` of inner with all channels. */
typedef struct lsi_cuda_converted {
    const void *in;
    void *out;
    int32_t outer, channels, inner;
    int32_t outers, across, pixels; /* pixels: 0 but for those */
    int32_t first;                  /* number of its first tile: tensors lie behind one another in tiles */
    int8_t in_last;                 /* channels last, as it comes ... */
    int8_t out_last;                /* ... and as it is wanted */
} lsi_cuda_converted;

enum { LSI_CONVERT_TILE = 4096 };

typedef struct lsi_cuda_convert_args {
    ls_dtype from, to;
    const lsi_cuda_converted *tensors; /* in host memory: they become arguments of the kernel */
    int n;
    int64_t tiles; /* of all of them */
} lsi_cuda_convert_args;

#endif
