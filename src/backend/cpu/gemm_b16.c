/* gemm_b16.c: the matrix product of bf16 numbers (b16.h): B in blocks of 16 columns, A in place where its
 * rows are whole terms.
 *
 * A block of B takes about a mebibyte of the second-level cache; 32 rows of A are used for all of its
 * columns. Where the results are fp32, sums over a long k are kept in C; else k is not cut.  Threads that
 * share a product pack what they need first, together: each for itself would spend as long on that as on
 * multiplying. Sums do not depend on the way. */
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm_internal.h"
#include "base/parallel.h"

enum {
    B_NUMBERS = 512 << 10, /* of a packed block of B */
    COLS_MAX = 512,        /* of it */
    DEEP_MAX = 4096        /* in k, of products that can be cut there */
};

/* Sizes of what a thread works on at a time. */
typedef struct cut {
    int64_t deep, cols; /* multiples of 32 */
    size_t a_bytes, b_bytes, off_bytes, tile_bytes;
} cut;

static cut cut_of(const lsi_gemm_problem *p)
{
    const int64_t k = lsi_round_up(p->k > 0 ? p->k : 1, LSI_B16_DEEP);
    cut c = {.deep = k <= DEEP_MAX || p->c_type != LS_F32 ? k : DEEP_MAX / 2};

    c.cols = B_NUMBERS / c.deep / LSI_B16_WIDE * LSI_B16_WIDE;
    if (c.cols > COLS_MAX) c.cols = COLS_MAX;
    if (c.cols < LSI_B16_WIDE) c.cols = LSI_B16_WIDE;
    c.a_bytes = (size_t)(LSI_B16_ROWS * c.deep) * 2;
    c.b_bytes = (size_t)(c.cols * c.deep) * 2;
    c.off_bytes = lsi_align64((size_t)(c.deep / LSI_B16_DEEP) * sizeof(int64_t));
    c.tile_bytes = LSI_B16_ROWS * LSI_B16_WIDE * sizeof(float);
    return c;
}

static size_t thread_bytes(const cut *c)
{
    return c->a_bytes + c->b_bytes + c->off_bytes + c->tile_bytes;
}

/* One thread's work: rectangle g, in blocks of `c`. */
typedef struct work {
    const lsi_gemm_block *g;
    const lsi_b16_kernels *kernels;
    cut c;
    uint16_t *a, *b;               /* its own room */
    const uint16_t *all_a, *all_b; /* packed by all threads, from the first row and column on; or NULL */
    int64_t *off;
    float *tile;
} work;

/* Columns [n, n_end) and depths [l, l + k). */
static void pack_columns(const work *w, int64_t n, int64_t n_end, int64_t l, int64_t k)
{
    const lsi_gemm_problem *p = w->g->p;
    const int64_t block = lsi_round_up(k, LSI_B16_DEEP) * LSI_B16_COLS;
    uint16_t *to = w->b;

    for (int64_t j = n; j < n_end; j += LSI_B16_COLS, to += block)
        lsi_b16_pack_b(lsi_b16_at(w->g->b, p->b_type, p->trans_b ? j * p->ldb + l : l * p->ldb + j),
                       p->b_type, p->ldb, p->trans_b, n_end - j < LSI_B16_COLS ? n_end - j : LSI_B16_COLS, k,
                       to);
}

static bool in_place(const lsi_gemm_problem *p, int64_t k)
{
    return p->a_type == LS_BF16 && !p->trans_a && k % LSI_B16_DEEP == 0;
}

/* Rows m.. of A as terms: where they lie, or packed. */
static void set_rows(const work *w, int64_t m, int64_t rows, int64_t l, int64_t k, lsi_b16_product *q)
{
    const lsi_gemm_problem *p = w->g->p;

    if (w->all_a != NULL) {
        q->a_row = lsi_round_up(k, LSI_B16_DEEP);
        q->a = w->all_a + m * q->a_row;
        return;
    }
    if (in_place(p, k) && lsi_round_up(rows, 16) <= p->m - m) {
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
static void load_tile(const work *w, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const lsi_gemm_problem *p = w->g->p;

    for (int64_t i = 0; i < rows; i++)
        memcpy(w->tile + i * LSI_B16_WIDE, w->g->c + (m + i) * p->ldc + n, (size_t)cols * sizeof(float));
}

static void store_tile(const work *w, int64_t m, int64_t rows, int64_t n, int64_t cols, bool last)
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
static void fetch_results(const work *w, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const lsi_gemm_problem *p = w->g->p;
    const int64_t bytes = cols * (int64_t)ls_dtype_size(p->c_type);

    for (int64_t i = 0; i < rows; i++) {
        const char *row = lsi_b16_at(w->g->c, p->c_type, (m + i) * p->ldc + n);
        for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch(row + k, 1);
    }
}

static void rows_times_columns(const work *w, int64_t n, int64_t n_end, int64_t l, int64_t k)
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
            q.b = w->all_b != NULL ? w->all_b + j / LSI_B16_COLS * q.b_block
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

static void block(const lsi_gemm_block *g)
{
    const lsi_gemm_problem *p = g->p;
    work w = {.g = g, .kernels = lsi_b16_kernels_here(), .c = cut_of(p)};
    char *at = g->scratch;

    w.a = (uint16_t *)(void *)at;
    w.b = (uint16_t *)(void *)(at += w.c.a_bytes);
    w.off = (int64_t *)(void *)(at += w.c.b_bytes);
    w.tile = (float *)(void *)(at + w.c.off_bytes);
    for (int64_t t = 0; t < w.c.deep / LSI_B16_DEEP; t++) w.off[t] = t * LSI_B16_DEEP;
    w.kernels->begin();
    for (int64_t n = g->n_lo; n < g->n_hi; n += w.c.cols) {
        const int64_t n_end = g->n_hi - n < w.c.cols ? g->n_hi : n + w.c.cols;
        int64_t l = 0;
        do { /* once even for k == 0, which must still write C */
            const int64_t k = p->k - l < w.c.deep ? p->k - l : w.c.deep;
            pack_columns(&w, n, n_end, l, k);
            rows_times_columns(&w, n, n_end, l, k);
            l += w.c.deep;
        } while (l < p->k);
    }
    w.kernels->end();
}

/* -- threads that share a product
 * -------------------------------------------------------------------------------- */

typedef struct together {
    const lsi_gemm_problem *p;
    const void *a, *b, *bias;
    void *c;
    cut cut;
    int grid_m, grid_n;
    int64_t l, k;      /* the depths of now */
    uint16_t *pa, *pb; /* [row][k]; [block of 16 columns][term][512] */
    char *own;
    ls_parallel_pieces to_pack, *to_multiply; /* the latter: of each of the grid's parts of the columns */
} together;

/* A is packed, unless it can be read where it lies in every part of k. */
static bool packs_a(const lsi_gemm_problem *p)
{
    return !in_place(p, p->k);
}

static size_t all_a_bytes(const lsi_gemm_problem *p, const cut *c)
{
    return packs_a(p) ? (size_t)(lsi_round_up(p->m, LSI_B16_ROWS) * c->deep) * 2 : 0;
}
static size_t all_b_bytes(const lsi_gemm_problem *p, const cut *c)
{
    return (size_t)(lsi_round_up(p->n, LSI_B16_WIDE) * c->deep) * 2;
}
static size_t own_bytes(const cut *c)
{
    return c->a_bytes + c->off_bytes + c->tile_bytes;
}

static void pack_thread(int thread, int n_threads, void *arg)
{
    together *t = arg;
    const lsi_gemm_problem *p = t->p;
    const int64_t deep = lsi_round_up(t->k, LSI_B16_DEEP);
    const int64_t blocks = (p->n + LSI_B16_COLS - 1) / LSI_B16_COLS;
    const int64_t groups = packs_a(p) ? (p->m + LSI_B16_ROWS - 1) / LSI_B16_ROWS : 0;

    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&t->to_pack)) < blocks + groups;) {
        const int64_t n = i * LSI_B16_COLS, m = (i - blocks) * LSI_B16_ROWS;
        if (i < blocks)
            lsi_b16_pack_b(lsi_b16_at(t->b, p->b_type, p->trans_b ? n * p->ldb + t->l : t->l * p->ldb + n),
                           p->b_type, p->ldb, p->trans_b, p->n - n < LSI_B16_COLS ? p->n - n : LSI_B16_COLS,
                           t->k, t->pb + n * deep);
        else
            lsi_b16_pack_a(lsi_b16_at(t->a, p->a_type, p->trans_a ? t->l * p->lda + m : m * p->lda + t->l),
                           p->a_type, p->lda, p->trans_a, p->m - m < LSI_B16_ROWS ? p->m - m : LSI_B16_ROWS,
                           t->k, t->pa + m * deep, deep);
    }
}

/* Part `part` of the columns, a block of B and 32 rows at a time, as far as nobody else has taken them. */
static void multiply_part(const together *t, const work *w, lsi_gemm_block *g, int part)
{
    const lsi_gemm_problem *p = t->p;
    const int64_t groups = (p->m + LSI_B16_ROWS - 1) / LSI_B16_ROWS;
    int64_t lo, hi, i;

    ls_parallel_range_grain(p->n, LSI_B16_WIDE, part, t->grid_n, &lo, &hi);
    while ((i = ls_parallel_take(&t->to_multiply[part])) <
           (hi - lo + t->cut.cols - 1) / t->cut.cols * groups) {
        const int64_t n = lo + i / groups * t->cut.cols, m = i % groups * LSI_B16_ROWS;
        g->m_lo = m;
        g->m_hi = p->m - m < LSI_B16_ROWS ? p->m : m + LSI_B16_ROWS;
        rows_times_columns(w, n, hi - n < t->cut.cols ? hi : n + t->cut.cols, t->l, t->k);
    }
}

/* A thread begins with a part of its own, which stays in its cache, and goes on with what others left. */
static void multiply_thread(int thread, int n_threads, void *arg)
{
    const together *t = arg;
    const lsi_gemm_problem *p = t->p;
    char *at = t->own + (size_t)thread * own_bytes(&t->cut);
    lsi_gemm_block g = {.p = p, .a = t->a, .b = t->b, .c = t->c, .bias = t->bias};
    work w = {.g = &g, .kernels = lsi_b16_kernels_here(), .c = t->cut, .all_b = t->pb};

    (void)n_threads;
    if (packs_a(p)) w.all_a = t->pa;
    w.a = (uint16_t *)(void *)at;
    w.off = (int64_t *)(void *)(at += t->cut.a_bytes);
    w.tile = (float *)(void *)(at + t->cut.off_bytes);
    for (int64_t i = 0; i < t->cut.deep / LSI_B16_DEEP; i++) w.off[i] = i * LSI_B16_DEEP;
    w.kernels->begin();
    for (int i = 0; i < t->grid_n; i++) multiply_part(t, &w, &g, (thread + i) % t->grid_n);
    w.kernels->end();
}

static void run_together(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                         void *scratch)
{
    static const lsi_gemm_tiling tiling = {.mr = LSI_B16_ROWS, .nr = LSI_B16_WIDE};
    together t = {.p = p, .a = a, .b = b, .c = c, .bias = p->has_bias ? bias : NULL, .cut = cut_of(p)};

    t.pa = scratch;
    t.pb = (uint16_t *)(void *)((char *)scratch + all_a_bytes(p, &t.cut));
    t.to_multiply = (ls_parallel_pieces *)(void *)((char *)t.pb + all_b_bytes(p, &t.cut));
    t.own = (char *)(t.to_multiply + p->threads);
    lsi_gemm_grid(&tiling, p, &t.grid_m, &t.grid_n);
    do { /* once even for k == 0, which must still write C */
        t.k = p->k - t.l < t.cut.deep ? p->k - t.l : t.cut.deep;
        t.to_pack = (ls_parallel_pieces){0};
        for (int i = 0; i < t.grid_n; i++) t.to_multiply[i] = (ls_parallel_pieces){0};
        ls_parallel_run(p->threads, pack_thread, &t);
        ls_parallel_run(p->threads, multiply_thread, &t);
        t.l += t.cut.deep;
    } while (t.l < p->k);
}

/* -- interface --------------------------------------------------------------------------------------------
 */

static bool shares(const lsi_gemm_problem *p)
{
    return p->threads > 1 && p->batch == 1;
}

static bool applicable(const lsi_gemm_problem *p)
{
    return !lsi_gemm_is_f32(p) && lsi_b16_type(p->a_type) && lsi_b16_type(p->b_type) &&
           lsi_b16_type(p->c_type) && lsi_b16_type(p->bias_type) && (!p->accumulate || p->c_type == LS_F32) &&
           lsi_b16_kernels_here() != NULL;
}

static size_t scratch(const lsi_gemm_problem *p)
{
    const cut c = cut_of(p);

    if (shares(p))
        return all_a_bytes(p, &c) + all_b_bytes(p, &c) +
               (size_t)p->threads * (sizeof(ls_parallel_pieces) + own_bytes(&c));
    return (size_t)p->threads * thread_bytes(&c);
}

static ls_status run(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                     void *scratch)
{
    const cut sizes = cut_of(p);
    const lsi_gemm_tiling t = {block, LSI_B16_ROWS, LSI_B16_WIDE, thread_bytes(&sizes)};

    if (shares(p))
        run_together(p, a, b, c, bias, scratch);
    else
        lsi_gemm_drive(&t, p, a, b, c, bias, scratch);
    return LS_OK;
}

const lsi_gemm_impl lsi_gemm_b16 = {.name = "b16", .applicable = applicable, .scratch = scratch, .run = run};
