/* region.h: what kernels of regions are called with (module/region_launch.c). */
#ifndef LS_BACKEND_CUDA_LAUNCH_REGION_H
#define LS_BACKEND_CUDA_LAUNCH_REGION_H

#include <stddef.h>

enum { LSI_REGION_POINTERS = 256 }; /* 2 KB of the 4 that any kernel can be given */

/* As generated kernels see them: inputs, then outputs. */
typedef struct lsi_cuda_region_pointers {
    void *at[LSI_REGION_POINTERS];
    float *parts;  /* of sums, one of each block */
    float *spills; /* what the second kernel reads of samples */
    int samples, blocks;
} lsi_cuda_region_pointers;

typedef struct lsi_cuda_region_args {
    void *first, *second; /* kernels; the second may be NULL: nothing is summed */
    lsi_cuda_region_pointers pointers;
    int blocks, threads, finish_blocks, finish_threads;
    size_t shared; /* bytes of a block of the first */
} lsi_cuda_region_args;

#endif
