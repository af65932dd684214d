/* pool.h: pooling of one plane, per instruction set.
 *
 * A plane is one channel of one image in plain layout, or 16 channels of it in C16 (`lanes`), where every
 * pixel is 16 floats. */
#ifndef LS_BACKEND_CPU_POOL_H
#define LS_BACKEND_CPU_POOL_H

#include "ops/ops.h"

typedef struct lsi_pool {
    int64_t h, w, ho, wo; /* image, pooled image */
    int kh, kw, sh, sw, pt, pl;
    bool lanes, relu;
    float weight; /* averages: of every window's elements, or 0: one over those inside the image */
} lsi_pool;

/* Maps are of the type that the table is for. */
typedef struct lsi_pool_table {
    const char *impl;
    /* Rows lo..hi-1 of the pooled image. */
    void (*max)(const lsi_pool *p, const void *x, void *y, uint8_t *index, int64_t lo, int64_t hi);
    void (*average)(const lsi_pool *p, const void *x, void *y, int64_t lo, int64_t hi);
    /* Rows lo..hi-1 of the image, each written once; y may be NULL without relu. */
    void (*max_back)(const lsi_pool *p, const void *dy, const uint8_t *index, const void *y, void *dx,
                     int64_t lo, int64_t hi);
    void (*average_back)(const lsi_pool *p, const void *dy, void *dx, int64_t lo, int64_t hi);
} lsi_pool_table;
extern const lsi_pool_table lsi_pool_avx512, lsi_pool_avx2;
extern const lsi_pool_table lsi_pool_bf16_avx512, lsi_pool_bf16_avx2;
extern const lsi_pool_table lsi_pool_f16_avx512, lsi_pool_f16_avx2;

#endif
