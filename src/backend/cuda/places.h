/* places.h: where elements lie in the layouts that the kernels know. */
#ifndef LS_BACKEND_CUDA_PLACES_H
#define LS_BACKEND_CUDA_PLACES_H

#include "backend/cuda/cuda.h"

/* Whether its channels are neighbours in memory: (N, H, W, C) or (N, L, C). */
bool lsi_cuda_channels_last(const ls_vinfo *v);
/* The dimensions of a tensor from the outermost to the innermost in memory. */
void lsi_cuda_memory_order(const ls_layout *l, ls_shape s, int *order);
/* How many elements apart neighbours along each dimension lie. */
void lsi_cuda_strides(const ls_layout *l, ls_shape s, int64_t *stride);

/* A map (N, C, H, W), or a tensor of another rank as one: rank 2 is (N, C, 1, 1).  In memory (n, c, s) with
 * s = H * W, or (n, s, c). */
typedef struct lsi_cuda_map {
    int64_t n, c, s;
    bool channels_last;
} lsi_cuda_map;
lsi_cuda_map lsi_cuda_map_of(const ls_vinfo *v);

#endif
