/* gemm_b16.c: the matrix product of bf16 numbers (b16.h): who packs and who multiplies which part of it.
 *
 * B is packed in blocks of 16 columns; A is read where it lies if its rows are whole terms.  A block of B
 * takes about a mebibyte of the second-level cache; 32 rows of A are used for all of its columns
 * (gemm_b16_rows.c). Where the results are fp32, sums over a long k are kept in C; else k is not cut.  Sums
 * depend neither on the number of threads nor on who makes them.  Other ways that were measured and not
 * taken: decision 27. */
#include "backend/cpu/gemm_b16.h"

#include "backend/cpu/conv_util.h"
#include "base/parallel.h"

enum {
    B_NUMBERS = 512 << 10, /* of a packed block of B */
    COLS_MAX = 512,        /* of it */
    DEEP_MAX = 4096        /* in k, of products that can be cut there */
};

static lsi_b16_cut cut_of(const lsi_gemm_problem *p)
{
    const int64_t k = lsi_round_up(p->k > 0 ? p->k : 1, LSI_B16_DEEP);
    lsi_b16_cut c = {.deep = k <= DEEP_MAX || p->c_type != LS_F32 ? k : DEEP_MAX / 2};

    c.cols = B_NUMBERS / c.deep / LSI_B16_WIDE * LSI_B16_WIDE;
    if (c.cols > COLS_MAX) c.cols = COLS_MAX;
    if (c.cols < LSI_B16_WIDE) c.cols = LSI_B16_WIDE;
    c.a_bytes = (size_t)(LSI_B16_ROWS * c.deep) * 2;
    c.b_bytes = (size_t)(c.cols * c.deep) * 2;
    c.off_bytes = lsi_align64((size_t)(c.deep / LSI_B16_DEEP) * sizeof(int64_t));
    c.tile_bytes = LSI_B16_ROWS * LSI_B16_WIDE * sizeof(float);
    return c;
}

static size_t thread_bytes(const lsi_b16_cut *c)
{
    return c->a_bytes + c->b_bytes + c->off_bytes + c->tile_bytes;
}

/* Columns [n, n_end) and depths [l, l + k). */
static void pack_columns(const lsi_b16_work *w, int64_t n, int64_t n_end, int64_t l, int64_t k)
{
    const lsi_gemm_problem *p = w->g->p;
    const int64_t block = lsi_round_up(k, LSI_B16_DEEP) * LSI_B16_COLS;
    uint16_t *to = w->b;

    for (int64_t j = n; j < n_end; j += LSI_B16_COLS, to += block)
        lsi_b16_pack_b(lsi_b16_at(w->g->b, p->b_type, p->trans_b ? j * p->ldb + l : l * p->ldb + j),
                       p->b_type, p->ldb, p->trans_b, n_end - j < LSI_B16_COLS ? n_end - j : LSI_B16_COLS, k,
                       to);
}

static void block(const lsi_gemm_block *g)
{
    const lsi_gemm_problem *p = g->p;
    lsi_b16_work w = {.g = g, .kernels = lsi_b16_kernels_here(), .c = cut_of(p)};
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
            lsi_b16_rows_times_columns(&w, n, n_end, l, k);
            l += w.c.deep;
        } while (l < p->k);
    }
    w.kernels->end();
}

/* -- threads that share a product
 * --------------------------------------------------------------------------------
 * What one core writes after many have read it is slow: all of them must give it up (on 16 cores of a virtual
 * machine, 120 GB/s where one other has read it, 15 where all have).  So threads own columns of the results,
 * or rows where A must be packed and is the larger matrix, and pack what belongs to them for themselves;
 * several may own the same, where there is too little to be cut, and then each packs it.  Only the other
 * matrix, if it must be packed, is packed by all for all.  Whoever has done his own goes on with what others
 * have left of theirs, reading what they have packed. */

typedef struct together {
    const lsi_gemm_problem *p;
    const void *a, *b, *bias;
    void *c;
    lsi_b16_cut cut;
    bool by_rows;                             /* rows are owned, not columns */
    int parts;                                /* of what is owned; thread i owns part i % parts */
    int64_t l, k, deep;                       /* the depths of now, and k in whole terms */
    int64_t part_size;                        /* most rows or columns of a part */
    uint16_t *shared;                         /* the other matrix, packed, if it must be */
    char *own;                                /* of each thread: its packed part, then room */
    ls_parallel_pieces to_pack, *to_multiply; /* the latter: of each part */
    lsi_b16_packed *done;                     /* of each thread */
} together;

/* A is packed, unless it can be read where it lies in every part of k. */
static bool packs_a(const lsi_gemm_problem *p)
{
    return !lsi_b16_in_place(p, p->k);
}

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}
static int64_t pieces_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* As many parts as threads where each gets several blocks, or the blocks can be dealt out evenly; else fewer.
 */
static int parts_of(const lsi_gemm_problem *p, int64_t owned)
{
    const int64_t blocks = pieces_of(owned, LSI_B16_WIDE);
    int parts = p->threads;

    while (parts > 1 && (p->threads % parts || (blocks % parts && blocks < 4 * parts))) parts--;
    return parts;
}

static void together_init(together *t, const lsi_gemm_problem *p)
{
    int64_t owned;

    *t = (together){.p = p, .cut = cut_of(p), .by_rows = packs_a(p) && p->m > p->n};
    owned = t->by_rows ? p->m : p->n;
    t->parts = parts_of(p, owned);
    t->part_size = pieces_of(pieces_of(owned, LSI_B16_WIDE), t->parts) * LSI_B16_WIDE;
}

static size_t shared_bytes(const together *t)
{
    const int64_t other = t->by_rows ? t->p->n : packs_a(t->p) ? t->p->m : 0;

    return (size_t)(lsi_round_up(other, LSI_B16_WIDE) * t->cut.deep) * 2;
}
static size_t part_bytes(const together *t)
{
    return (size_t)(t->part_size * t->cut.deep) * 2;
}
static size_t own_bytes(const together *t)
{
    return part_bytes(t) + t->cut.a_bytes + t->cut.off_bytes + t->cut.tile_bytes;
}

/* Packing.  Whatever is large is read in long pieces of its rows, which the processor fetches ahead by
 * itself, rounded into room of this thread, and turned or paired from there. */
enum {
    ROUNDED = 32 << 10, /* bytes of that room, for 16 or 32 rows */
    LONG = ROUNDED / 2 / LSI_B16_COLS,
    HALF_LONG = ROUNDED / 2 / LSI_B16_DEEP
};

/* Columns [n, end) of B, which are rows as stored. */
static void pack_stored_rows(const together *t, int64_t n, int64_t end, uint16_t *room, uint16_t *to)
{
    const lsi_gemm_problem *p = t->p;

    for (; n < end; n += LSI_B16_COLS, to += LSI_B16_COLS * t->deep)
        for (int64_t l = 0; l < t->k; l += LONG) {
            const int64_t k = at_most(t->k - l, LONG), cols = at_most(end - n, LSI_B16_COLS);
            lsi_b16_pack_a(lsi_b16_at(t->b, p->b_type, n * p->ldb + t->l + l), p->b_type, p->ldb, false, cols,
                           k, room, LONG);
            lsi_b16_pack_b(room, LS_BF16, LONG, true, cols, k, to + l * LSI_B16_COLS);
        }
}

/* One term of columns [n, end) of B. */
static void pack_term_of_b(const together *t, int64_t term, int64_t n, int64_t end, uint16_t *room,
                           uint16_t *to)
{
    const lsi_gemm_problem *p = t->p;
    const int64_t l = term * LSI_B16_DEEP, k = at_most(t->k - l, LSI_B16_DEEP);

    for (; n < end; n += HALF_LONG, to += HALF_LONG * t->deep) {
        const int64_t cols = at_most(end - n, HALF_LONG);
        lsi_b16_pack_a(lsi_b16_at(t->b, p->b_type, (t->l + l) * p->ldb + n), p->b_type, p->ldb, false, k,
                       cols, room, HALF_LONG);
        for (int64_t j = 0; j < cols; j += LSI_B16_COLS)
            lsi_b16_pack_b(room + j, LS_BF16, HALF_LONG, false, at_most(cols - j, LSI_B16_COLS), k,
                           to + j * t->deep + l * LSI_B16_COLS);
    }
}

/* One term of rows [m, end) of A, which is stored transposed. */
static void pack_term_of_a(const together *t, int64_t term, int64_t m, int64_t end, uint16_t *room,
                           uint16_t *to)
{
    const lsi_gemm_problem *p = t->p;
    const int64_t l = term * LSI_B16_DEEP, k = at_most(t->k - l, LSI_B16_DEEP);

    for (; m < end; m += HALF_LONG, to += HALF_LONG * t->deep) {
        const int64_t rows = at_most(end - m, HALF_LONG);
        lsi_b16_pack_a(lsi_b16_at(t->a, p->a_type, (t->l + l) * p->lda + m), p->a_type, p->lda, false, k,
                       rows, room, HALF_LONG);
        for (int64_t i = 0; i < rows; i += LSI_B16_ROWS)
            lsi_b16_pack_a(room + i, LS_BF16, HALF_LONG, true, at_most(rows - i, LSI_B16_ROWS), k,
                           to + i * t->deep + l * LSI_B16_ROWS, LSI_B16_DEEP);
    }
}

static void pack_rows_of_a(const together *t, int64_t m, int64_t end, uint16_t *to)
{
    const lsi_gemm_problem *p = t->p;

    lsi_b16_pack_a(lsi_b16_at(t->a, p->a_type, m * p->lda + t->l), p->a_type, p->lda, false, end - m, t->k,
                   to, t->deep);
}

/* Rows of A or columns of B [from, end), all of their depth. */
static void pack_part(const together *t, bool rows, int64_t from, int64_t end, uint16_t *to)
{
    const int64_t terms = pieces_of(t->k, LSI_B16_DEEP);
    const bool by_terms = rows ? t->p->trans_a : !t->p->trans_b;
    uint16_t room[ROUNDED / 2] __attribute__((aligned(64)));

    for (int64_t i = 0; by_terms && i < terms; i++)
        if (rows)
            pack_term_of_a(t, i, from, end, room, to);
        else
            pack_term_of_b(t, i, from, end, room, to);
    if (!by_terms && rows) pack_rows_of_a(t, from, end, to);
    if (!by_terms && !rows) pack_stored_rows(t, from, end, room, to);
}

/* The matrix that belongs to nobody: 32 rows or columns are a piece, or a term of all of them. */
static void share_thread(int thread, int n_threads, void *arg)
{
    together *t = arg;
    const bool rows = !t->by_rows, by_terms = rows ? t->p->trans_a : !t->p->trans_b;
    const int64_t size = rows ? t->p->m : t->p->n;
    const int64_t pieces = by_terms ? pieces_of(t->k, LSI_B16_DEEP) : pieces_of(size, LSI_B16_WIDE);
    uint16_t room[ROUNDED / 2] __attribute__((aligned(64)));

    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&t->to_pack)) < pieces;) {
        const int64_t from = i * LSI_B16_WIDE, end = at_most(size, from + LSI_B16_WIDE);
        if (!by_terms)
            pack_part(t, rows, from, end, t->shared + from * t->deep);
        else if (rows)
            pack_term_of_a(t, i, 0, size, room, t->shared);
        else
            pack_term_of_b(t, i, 0, size, room, t->shared);
    }
}

static uint16_t *part_at(const together *t, int thread)
{
    return (uint16_t *)(void *)(t->own + (size_t)thread * own_bytes(t));
}

/* The owned rows or columns of a part. */
static void part_range(const together *t, int part, int64_t *lo, int64_t *hi)
{
    ls_parallel_range_grain(t->by_rows ? t->p->m : t->p->n, LSI_B16_WIDE, part, t->parts, lo, hi);
}

/* How many of n rows or columns, at most `most`, are multiplied at a time: blocks of about one size. */
static int64_t even_block(int64_t n, int64_t most)
{
    const int64_t blocks = pieces_of(n, most);

    return blocks > 0 ? lsi_round_up(pieces_of(n, blocks), LSI_B16_WIDE) : LSI_B16_WIDE;
}

/* Part `part`, as `mine` has packed it, a piece at a time as far as nobody else has taken them: 32 rows by
 * a block of the part's columns, or a block of its rows by 32 columns.  A block stays in the second-level
 * cache until all of the other matrix has been multiplied by it; with few threads a part as a whole would
 * not. */
static void multiply_part(const together *t, lsi_b16_work *w, lsi_gemm_block *g, int part,
                          const uint16_t *mine)
{
    const lsi_gemm_problem *p = t->p;
    const int64_t other = t->by_rows ? p->n : p->m, others = pieces_of(other, LSI_B16_WIDE);
    int64_t lo, hi, i, block, blocks;

    part_range(t, part, &lo, &hi);
    w->all_a = t->by_rows ? mine : t->shared;
    w->all_b = t->by_rows ? t->shared : mine;
    w->first_a = t->by_rows ? lo : 0;
    w->first_b = t->by_rows ? 0 : lo;
    block = even_block(hi - lo, t->cut.cols);
    blocks = pieces_of(hi - lo, block);
    while ((i = ls_parallel_take(&t->to_multiply[part])) < blocks * others) {
        const int64_t from = lo + i / others * block, to = at_most(hi, from + block);
        const int64_t first = i % others * LSI_B16_WIDE, end = at_most(other, first + LSI_B16_WIDE);
        g->m_lo = t->by_rows ? from : first;
        g->m_hi = t->by_rows ? to : end;
        lsi_b16_rows_times_columns(w, t->by_rows ? first : from, t->by_rows ? end : to, t->l, t->k);
    }
}

static void multiply_thread(int thread, int n_threads, void *arg)
{
    const together *t = arg;
    const lsi_gemm_problem *p = t->p;
    char *at = (char *)part_at(t, thread) + part_bytes(t);
    lsi_gemm_block g = {.p = p, .a = t->a, .b = t->b, .c = t->c, .bias = t->bias};
    lsi_b16_work w = {.g = &g, .kernels = lsi_b16_kernels_here(), .c = t->cut};
    int64_t lo, hi;

    w.a = (uint16_t *)(void *)at;
    w.off = (int64_t *)(void *)(at += t->cut.a_bytes);
    w.tile = (float *)(void *)(at + t->cut.off_bytes);
    for (int64_t i = 0; i < t->cut.deep / LSI_B16_DEEP; i++)
        w.off[i] = i * LSI_B16_DEEP * (packs_a(p) && p->trans_a ? LSI_B16_ROWS : 1);
    part_range(t, thread % t->parts, &lo, &hi);
    if (lo < hi) pack_part(t, t->by_rows, lo, hi, part_at(t, thread));
    atomic_store_explicit(&t->done[thread].whole, true, memory_order_release);
    w.kernels->begin();
    /* Own ones first.  Who has not packed yet will do his part himself. */
    for (int i = 0; i < n_threads; i++) {
        const int owner = (thread + i) % n_threads;
        if (atomic_load_explicit(&t->done[owner].whole, memory_order_acquire))
            multiply_part(t, &w, &g, owner % t->parts, part_at(t, owner));
    }
    w.kernels->end();
}

static void run_together(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                         void *scratch)
{
    together t;

    together_init(&t, p);
    t.a = a;
    t.b = b;
    t.c = c;
    t.bias = p->has_bias ? bias : NULL;
    t.to_multiply = scratch;
    t.done = (lsi_b16_packed *)(void *)(t.to_multiply + p->threads);
    t.own = (char *)(t.done + p->threads);
    if (shared_bytes(&t) > 0) t.shared = (uint16_t *)(void *)(t.own + (size_t)p->threads * own_bytes(&t));
    do { /* once even for k == 0, which must still write C */
        t.k = p->k - t.l < t.cut.deep ? p->k - t.l : t.cut.deep;
        t.deep = lsi_round_up(t.k, LSI_B16_DEEP);
        t.to_pack = (ls_parallel_pieces){0};
        for (int i = 0; i < p->threads; i++) {
            t.to_multiply[i] = (ls_parallel_pieces){0};
            atomic_init(&t.done[i].whole, false);
        }
        if (t.shared != NULL) ls_parallel_run(p->threads, share_thread, &t);
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

/* A single column is a sum of numbers that are read once: of a long one most time would go into packing, in
 * many regions. */
static bool long_column(const lsi_gemm_problem *p)
{
    return p->n == 1 && p->k > DEEP_MAX;
}

static bool applicable(const lsi_gemm_problem *p)
{
    return !lsi_gemm_is_f32(p) && lsi_b16_type(p->a_type) && lsi_b16_type(p->b_type) &&
           lsi_b16_type(p->c_type) && lsi_b16_type(p->bias_type) && (!p->accumulate || p->c_type == LS_F32) &&
           !long_column(p) && lsi_b16_kernels_here() != NULL;
}

static size_t scratch(const lsi_gemm_problem *p)
{
    const lsi_b16_cut c = cut_of(p);
    together t;

    if (!shares(p)) return (size_t)p->threads * thread_bytes(&c);
    together_init(&t, p);
    return shared_bytes(&t) +
           (size_t)p->threads * (sizeof(ls_parallel_pieces) + sizeof(lsi_b16_packed) + own_bytes(&t));
}

static ls_status run(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                     void *scratch)
{
    const lsi_b16_cut sizes = cut_of(p);
    const lsi_gemm_tiling t = {block, LSI_B16_ROWS, LSI_B16_WIDE, thread_bytes(&sizes)};

    if (shares(p))
        run_together(p, a, b, c, bias, scratch);
    else
        lsi_gemm_drive(&t, p, a, b, c, bias, scratch);
    return LS_OK;
}

const lsi_gemm_impl lsi_gemm_b16 = {.name = "b16", .applicable = applicable, .scratch = scratch, .run = run};
