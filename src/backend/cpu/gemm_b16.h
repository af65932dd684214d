/* gemm_b16.h: one thread's work in the product of gemm_b16.c: 32 rows of A at a time by columns of B.
 *
 * Beside its products a thread writes the results of the tile before, and fetches or copies the rows that
 * come next: a load or store that has to wait does not hold up tiles then. */
#ifndef LS_BACKEND_CPU_GEMM_B16_H
#define LS_BACKEND_CPU_GEMM_B16_H

#include "backend/cpu/b16.h"
#include "backend/cpu/gemm_internal.h"

enum { LSI_B16_TILE = LSI_B16_ROWS * LSI_B16_WIDE };

/* Sizes of what a thread works on at a time. */
typedef struct lsi_b16_cut {
    int64_t deep, cols; /* multiples of 32 */
    size_t a_bytes, b_bytes, off_bytes, tile_bytes;
} lsi_b16_cut;

/* Results of one tile: `at` of its rows are written, or fetched. */
typedef struct lsi_b16_results {
    const float *sums;
    int64_t m, rows, n, cols, at;
    bool last; /* no more sums will be added */
} lsi_b16_results;

/* What a thread reads next: 32 rows of A, or columns of B, of which each term is 32 lines of the cache.  They
 * are fetched into the second-level cache 8 lines at a time, and some time later copied to `to`, term by
 * term, if that is not NULL. */
typedef struct lsi_b16_coming {
    const char *from;
    int64_t term, row; /* bytes from term to term, and from line to line of a term */
    int64_t lines;     /* of a term that exist */
    int64_t units, done;
    int64_t steps, due; /* of the products meanwhile */
    uint16_t *to;
    int64_t m, l; /* what is copied */
} lsi_b16_coming;

/* One thread's work: rectangle g, in blocks of `c`. */
typedef struct lsi_b16_work {
    lsi_b16_beside beside;
    const lsi_gemm_block *g;
    const lsi_b16_kernels *kernels;
    lsi_b16_cut c;
    uint16_t *a, *b;               /* its own room; `a` twice 32 rows */
    const uint16_t *all_a, *all_b; /* packed already, from row first_a and column first_b on; or NULL */
    int64_t first_a, first_b;
    int64_t *off;
    float *tiles; /* two: sums that are made, and those that are written meanwhile */
    int turn;     /* of them */
    lsi_b16_results ready, expected;
    int64_t rows_a_step;
    lsi_b16_coming coming;
    int side;                   /* of `a` */
    int64_t copied_m, copied_l; /* what it holds; -1 is nothing */
} lsi_b16_work;

static inline int64_t lsi_b16_at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}
static inline int64_t lsi_b16_pieces_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

static inline bool lsi_b16_in_place(const lsi_gemm_problem *p, int64_t k)
{
    return p->a_type == LS_BF16 && !p->trans_a && k % LSI_B16_DEEP == 0;
}

/* Whether rows of A are copied term by term. */
static inline bool lsi_b16_copies(const lsi_b16_work *w)
{
    return lsi_b16_try[TRY_COPY] > 0 && w->all_a == NULL && lsi_b16_in_place(w->g->p, w->g->p->k);
}

/* Steps of lsi_b16_rows_times_columns. */
static inline int64_t lsi_b16_steps_of(int64_t rows, int64_t cols, int64_t k)
{
    return lsi_b16_pieces_of(rows, LSI_B16_ROWS) * lsi_b16_pieces_of(cols, LSI_B16_WIDE) *
           lsi_b16_pieces_of(k, LSI_B16_DEEP);
}

/* What comes next, in the `steps` steps of the products until then: rows m.. of A, if they are to be copied
 * or are worth fetching, or 32 packed columns of B. */
void lsi_b16_expect_rows(lsi_b16_work *w, int64_t m, int64_t rows, int64_t l, int64_t k, int64_t steps);
void lsi_b16_expect_columns(lsi_b16_work *w, int64_t n, int64_t k, int64_t steps);
void lsi_b16_expect_nothing(lsi_b16_work *w);

/* Rows of the rectangle times columns [n, n_end), depths [l, l + k).  The last results are in the thread's
 * room until the next call, or lsi_b16_write_rest. */
void lsi_b16_rows_times_columns(lsi_b16_work *w, int64_t n, int64_t n_end, int64_t l, int64_t k);
void lsi_b16_write_rest(lsi_b16_work *w);

#endif
