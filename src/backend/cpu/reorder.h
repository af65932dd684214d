/* reorder.h: the kernels behind the reorder op. */
#ifndef LS_BACKEND_CPU_REORDER_H
#define LS_BACKEND_CPU_REORDER_H

#include <stdint.h>

typedef struct lsi_reorder_kernels {
    void (*block)(const float *x, float *y, int64_t pixels);   /* (16, pixels) -> (pixels, 16) */
    void (*unblock)(const float *x, float *y, int64_t pixels); /* (pixels, 16) -> (16, pixels) */
} lsi_reorder_kernels;

extern const lsi_reorder_kernels lsi_reorder_avx512, lsi_reorder_avx2;

#endif
