/* gemm_b16.h: what gemm_b16.c hands to a thread, and what the thread makes of it: 32 rows of A at a time by
 * columns of packed B (gemm_b16_rows.c). */
#ifndef LS_BACKEND_CPU_GEMM_B16_H
#define LS_BACKEND_CPU_GEMM_B16_H

#include "backend/cpu/b16.h"
#include "backend/cpu/gemm_internal.h"

/* Sizes of what a thread works on at a time. */
typedef struct lsi_b16_cut {
    int64_t deep, cols; /* multiples of 32 */
    size_t a_bytes, b_bytes, off_bytes, tile_bytes;
} lsi_b16_cut;

/* One thread's work: rectangle g, in blocks of `c`. */
typedef struct lsi_b16_work {
    const lsi_gemm_block *g;
    const lsi_b16_kernels *kernels;
    lsi_b16_cut c;
    uint16_t *a, *b;               /* its own room */
    const uint16_t *all_a, *all_b; /* packed already, from row first_a and column first_b on; or NULL */
    int64_t first_a, first_b;
    int64_t *off;
    float *tile;
} lsi_b16_work;

/* Whether rows of A are whole terms where they lie. */
static inline bool lsi_b16_in_place(const lsi_gemm_problem *p, int64_t k)
{
    return p->a_type == LS_BF16 && !p->trans_a && k % LSI_B16_DEEP == 0;
}

/* Rows of the rectangle times columns [n, n_end), depths [l, l + k). */
void lsi_b16_rows_times_columns(const lsi_b16_work *w, int64_t n, int64_t n_end, int64_t l, int64_t k);

#endif
