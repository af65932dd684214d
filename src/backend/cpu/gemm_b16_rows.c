/* gemm_b16_rows.c: one thread's rows times columns: a tile of 32 x 32 results at a time, with all of its
 * depth behind one another, then its bias, activation and rounding. */
#include "backend/cpu/gemm_b16.h"

#include <string.h>

/* Rows m.. of A as terms: where they lie, or packed. */
static void set_rows(const lsi_b16_work *w, int64_t m, int64_t rows, int64_t l, int64_t k, lsi_b16_product *q)
{
    const lsi_gemm_problem *p = w->g->p;

    if (w->all_a != NULL) {
        q->a_row = p->trans_a ? LSI_B16_DEEP : lsi_round_up(k, LSI_B16_DEEP);
        q->a = w->all_a + (m - w->first_a) * lsi_round_up(k, LSI_B16_DEEP);
        return;
    }
    if (lsi_b16_in_place(p, k) && lsi_round_up(rows, 16) <= p->m - m) {
        q->a = (const uint16_t *)w->g->a + m * p->lda + l;
        q->a_row = p->lda;
        return;
    }
    q->a = w->a;
    q->a_row = lsi_round_up(k, LSI_B16_DEEP);
    lsi_b16_pack_a(lsi_b16_at(w->g->a, p->a_type, p->trans_a ? l * p->lda + m : m * p->lda + l), p->a_type,
                   p->lda, p->trans_a, rows, k, w->a, q->a_row);
}

/* C as it is, where the tile is to be added to it. */
static void load_tile(const lsi_b16_work *w, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const lsi_gemm_problem *p = w->g->p;

    for (int64_t i = 0; i < rows; i++)
        memcpy(w->tile + i * LSI_B16_WIDE, w->g->c + (m + i) * p->ldc + n, (size_t)cols * sizeof(float));
}

static void store_tile(const lsi_b16_work *w, int64_t m, int64_t rows, int64_t n, int64_t cols, bool last)
{
    const lsi_gemm_problem *p = w->g->p;
    lsi_b16_end e = {.type = p->c_type, .bias_type = p->bias_type};

    if (last) {
        e.act = p->act;
        e.slope = p->slope;
    }
    for (int64_t j = 0; j < cols; j += LSI_B16_COLS) {
        e.bias = last && w->g->bias != NULL ? lsi_b16_at(w->g->bias, p->bias_type, n + j) : NULL;
        lsi_b16_store(&e, w->tile + j, LSI_B16_WIDE, rows, cols - j < LSI_B16_COLS ? cols - j : LSI_B16_COLS,
                      (void *)(uintptr_t)lsi_b16_at(w->g->c, p->c_type, m * p->ldc + n + j), p->ldc);
    }
}

/* What will be written, early enough to be there when the product is. */
static void fetch_results(const lsi_b16_work *w, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const lsi_gemm_problem *p = w->g->p;
    const int64_t bytes = cols * (int64_t)ls_dtype_size(p->c_type);

    for (int64_t i = 0; i < rows; i++) {
        const char *row = lsi_b16_at(w->g->c, p->c_type, (m + i) * p->ldc + n);
        for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch(row + k, 1);
    }
}

void lsi_b16_rows_times_columns(const lsi_b16_work *w, int64_t n, int64_t n_end, int64_t l, int64_t k)
{
    const lsi_gemm_block *g = w->g;
    const bool add = l > 0 || g->p->accumulate, last = l + k >= g->p->k;
    lsi_b16_product q = {.a_off = w->off,
                         .b_block = lsi_round_up(k, LSI_B16_DEEP) * LSI_B16_COLS,
                         .n_terms = (k + LSI_B16_DEEP - 1) / LSI_B16_DEEP,
                         .c = w->tile,
                         .c_row = LSI_B16_WIDE,
                         .add = add};

    for (int64_t m = g->m_lo; m < g->m_hi; m += LSI_B16_ROWS) {
        const int64_t rows = g->m_hi - m < LSI_B16_ROWS ? g->m_hi - m : LSI_B16_ROWS;
        set_rows(w, m, rows, l, k, &q);
        for (int64_t j = n; j < n_end; j += LSI_B16_WIDE) {
            const int64_t cols = n_end - j < LSI_B16_WIDE ? n_end - j : LSI_B16_WIDE;
            q.b = w->all_b != NULL ? w->all_b + (j - w->first_b) / LSI_B16_COLS * q.b_block
                                   : w->b + (j - n) / LSI_B16_COLS * q.b_block;
            if (add)
                load_tile(w, m, rows, j, cols);
            else
                fetch_results(w, m, rows, j, cols);
            w->kernels->multiply((int)rows, cols > LSI_B16_COLS ? 2 : 1, &q);
            store_tile(w, m, rows, j, cols, last);
        }
    }
}
