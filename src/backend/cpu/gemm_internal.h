/* gemm_internal.h: what the implementations of gemm.h share: cutting a problem among threads. */
#ifndef LS_BACKEND_CPU_GEMM_INTERNAL_H
#define LS_BACKEND_CPU_GEMM_INTERNAL_H

#include "backend/cpu/gemm.h"

extern const lsi_gemm_impl lsi_gemm_b16;    /* gemm_b16.c */
extern const lsi_gemm_impl lsi_gemm_avx512; /* gemm_avx512.c */
extern const lsi_gemm_impl lsi_gemm_avx2;   /* gemm_avx2.c */
extern const lsi_gemm_impl lsi_gemm_dnnl;   /* gemm_dnnl.c */
extern const lsi_gemm_impl lsi_gemm_naive;  /* gemm.c */

/* One rectangle [m_lo, m_hi) x [n_lo, n_hi) of one product of the batch; a, b, c are that product's matrices,
 * of whatever type the problem says. */
typedef struct lsi_gemm_block {
    const lsi_gemm_problem *p;
    const float *a, *b, *bias;
    float *c;
    int64_t m_lo, m_hi, n_lo, n_hi;
    void *scratch; /* this thread's own */
} lsi_gemm_block;

typedef struct lsi_gemm_tiling {
    void (*run)(const lsi_gemm_block *block);
    int64_t mr, nr;       /* rectangles are cut at multiples of these */
    size_t scratch_bytes; /* per thread, a multiple of 64 */
} lsi_gemm_tiling;

/* Threads along m and n, such that the largest rectangle costs least. */
void lsi_gemm_grid(const lsi_gemm_tiling *t, const lsi_gemm_problem *p, int *grid_m, int *grid_n);

/* Runs the problem with p->threads threads: products of a large batch go to threads as a whole, otherwise
 * each product is cut into a grid of rectangles, one per thread. */
void lsi_gemm_drive(const lsi_gemm_tiling *t, const lsi_gemm_problem *p, const void *a, const void *b,
                    void *c, const void *bias, void *scratch);

#endif
