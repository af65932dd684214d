/* gemm_b16_rows.c: rows times columns, with results and what comes next beside it. */
#include "backend/cpu/gemm_b16.h"

#include <string.h>

enum {
    UNIT = 8, /* lines that are fetched or copied at a time */
    UNITS = LSI_B16_ROWS / UNIT,
    LAG = 16 /* units from fetching to copying */
};

/* -- work beside products: results, and what comes next ---------------------------------------------------
 */

static uint16_t *side_of_a(const lsi_b16_work *w, int side)
{
    return w->a + side * LSI_B16_ROWS * w->c.deep;
}

/* Lines [8 * (unit % 4), + 8) of term unit / 4. */
static const char *unit_at(const lsi_b16_coming *c, int64_t unit)
{
    return c->from + unit / UNITS * c->term + unit % UNITS * UNIT * c->row;
}
static int64_t lines_of_unit(const lsi_b16_coming *c, int64_t unit)
{
    return lsi_b16_at_most(c->lines - unit % UNITS * UNIT, UNIT);
}

static void fetch_unit(const lsi_b16_coming *c, int64_t unit)
{
    const char *at = unit_at(c, unit);

    if (lsi_b16_try[TRY_FETCH] == 1)
        for (int64_t i = 0; i < lines_of_unit(c, unit); i++) __builtin_prefetch(at + i * c->row, 0, 2);
    else if (lsi_b16_try[TRY_FETCH] == 2)
        for (int64_t i = 0; i < lines_of_unit(c, unit); i++) __builtin_prefetch(at + i * c->row, 0, 3);
}

static void copy_unit(const lsi_b16_coming *c, int64_t unit)
{
    const int64_t n = lines_of_unit(c, unit);

    if (n > 0)
        lsi_b16_copy_rows((const uint16_t *)(const void *)unit_at(c, unit), c->row / 2, n,
                          c->to + unit * UNIT * LSI_B16_DEEP);
}

/* The next eight lines. */
static void next_unit(lsi_b16_coming *c)
{
    if (c->done < c->units) fetch_unit(c, c->done);
    if (c->to != NULL && c->done >= LAG) copy_unit(c, c->done - LAG);
    c->done++;
}

static int64_t all_units(const lsi_b16_coming *c)
{
    return c->units + (c->to != NULL ? LAG : 0);
}

static void write_rows(const lsi_b16_work *w, const lsi_b16_results *r, int64_t from, int64_t rows)
{
    const lsi_gemm_problem *p = w->g->p;
    const float *sums = r->sums + from * LSI_B16_WIDE;
    char *to = (char *)(uintptr_t)lsi_b16_at(w->g->c, p->c_type, (r->m + from) * p->ldc + r->n);
    lsi_b16_end e = {.type = p->c_type, .bias_type = p->bias_type};

    if (r->last) {
        e.act = p->act;
        e.slope = p->slope;
    }
    e.bias = r->last && w->g->bias != NULL ? lsi_b16_at(w->g->bias, p->bias_type, r->n) : NULL;
    if (r->cols == LSI_B16_WIDE) {
        const int past = lsi_b16_try[TRY_PAST];
        lsi_b16_store_wide(&e, sums, LSI_B16_WIDE, rows, to, p->ldc,
                           (past > 1 || (past && p->c_type == LS_F32)) &&
                               ((uintptr_t)to | (size_t)p->ldc * ls_dtype_size(p->c_type)) % 64 == 0);
        return;
    }
    for (int64_t j = 0; j < r->cols; j += LSI_B16_COLS) {
        lsi_b16_store(&e, sums + j, LSI_B16_WIDE, rows, lsi_b16_at_most(r->cols - j, LSI_B16_COLS),
                      (void *)(uintptr_t)lsi_b16_at(to, p->c_type, j), p->ldc);
        if (e.bias != NULL) e.bias = lsi_b16_at(e.bias, p->bias_type, LSI_B16_COLS);
    }
}

static void fetch_rows(const lsi_b16_work *w, const lsi_b16_results *r, int64_t from, int64_t rows)
{
    const lsi_gemm_problem *p = w->g->p;
    const int64_t bytes = r->cols * (int64_t)ls_dtype_size(p->c_type);

    for (int64_t i = from; i < from + rows; i++) {
        const char *row = lsi_b16_at(w->g->c, p->c_type, (r->m + i) * p->ldc + r->n);
        for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch(row + k, 1);
    }
}

void lsi_b16_write_rest(lsi_b16_work *w)
{
    if (w->ready.at < w->ready.rows) write_rows(w, &w->ready, w->ready.at, w->ready.rows - w->ready.at);
    w->ready.at = w->ready.rows = 0;
}

static void step(lsi_b16_beside *b)
{
    lsi_b16_work *w = (lsi_b16_work *)(void *)b;
    lsi_b16_results *ready = &w->ready, *expected = &w->expected;
    lsi_b16_coming *c = &w->coming;

    if (ready->at < ready->rows) {
        const int64_t n = lsi_b16_at_most(ready->rows - ready->at, w->rows_a_step);
        write_rows(w, ready, ready->at, n);
        ready->at += n;
    }
    if (expected->at < expected->rows) {
        const int64_t n = lsi_b16_at_most(expected->rows - expected->at, w->rows_a_step);
        fetch_rows(w, expected, expected->at, n);
        expected->at += n;
    }
    if (c->done >= all_units(c)) return;
    for (c->due += all_units(c); c->due >= c->steps; c->due -= c->steps) next_unit(c);
}

/* Rows m.. of A in `steps` steps, if they are to be copied or are worth fetching. */
void lsi_b16_expect_rows(lsi_b16_work *w, int64_t m, int64_t rows, int64_t l, int64_t k, int64_t steps)
{
    const lsi_gemm_problem *p = w->g->p;
    const int64_t deep = lsi_round_up(k, LSI_B16_DEEP);

    w->coming = (lsi_b16_coming){.lines = rows, .units = deep / LSI_B16_DEEP * UNITS, .steps = steps};
    if (w->all_a != NULL) {
        w->coming.from = (const char *)(w->all_a + (m - w->first_a) * deep);
        w->coming.row = 64;
        w->coming.term = 64 * LSI_B16_ROWS;
    } else if (lsi_b16_in_place(p, k)) {
        w->coming.from = (const char *)((const uint16_t *)(const void *)w->g->a + m * p->lda + l);
        w->coming.row = p->lda * 2;
        w->coming.term = 64;
        if (lsi_b16_copies(w) && lsi_b16_try[TRY_COPY] == 2) {
            w->coming.to = w->a; /* the side that is not in use by then */
            w->coming.m = m;
            w->coming.l = l;
        }
    } else {
        w->coming.units = 0;
    }
    if (!lsi_b16_try[TRY_FETCH] && w->coming.to == NULL) w->coming.units = 0;
}

/* The same of 32 packed columns of B. */
void lsi_b16_expect_columns(lsi_b16_work *w, int64_t n, int64_t k, int64_t steps)
{
    const int64_t deep = lsi_round_up(k, LSI_B16_DEEP);

    w->coming = (lsi_b16_coming){.from = (const char *)(w->all_b + (n - w->first_b) * deep),
                                 .row = 64,
                                 .term = 64 * LSI_B16_WIDE,
                                 .lines = LSI_B16_WIDE,
                                 .units = lsi_b16_try[TRY_FETCH] ? deep / LSI_B16_DEEP * UNITS : 0,
                                 .steps = steps};
}

void lsi_b16_expect_nothing(lsi_b16_work *w)
{
    w->coming = (lsi_b16_coming){0};
}

/* Rows m.. of A as terms: where they lie, copied, or packed. */
static void set_rows(lsi_b16_work *w, int64_t m, int64_t rows, int64_t l, int64_t k, lsi_b16_product *q)
{
    const lsi_gemm_problem *p = w->g->p;

    if (w->all_a != NULL) {
        q->a_row = p->trans_a ? LSI_B16_DEEP : lsi_round_up(k, LSI_B16_DEEP);
        q->a = w->all_a + (m - w->first_a) * lsi_round_up(k, LSI_B16_DEEP);
        return;
    }
    if (lsi_b16_copies(w)) {
        w->side = !w->side;
        q->a = side_of_a(w, w->side);
        q->a_row = LSI_B16_DEEP;
        if (w->copied_m == m && w->copied_l == l) return; /* while the rows before were multiplied */
        for (int64_t t = 0; t < k / LSI_B16_DEEP; t++)
            lsi_b16_copy_rows((const uint16_t *)(const void *)w->g->a + m * p->lda + l + t * LSI_B16_DEEP,
                              p->lda, rows, side_of_a(w, w->side) + t * LSI_B16_ROWS * LSI_B16_DEEP);
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
static void load_tile(const lsi_b16_work *w, int64_t m, int64_t rows, int64_t n, int64_t cols, float *to)
{
    const lsi_gemm_problem *p = w->g->p;

    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * LSI_B16_WIDE, w->g->c + (m + i) * p->ldc + n, (size_t)cols * sizeof(float));
}

/* One tile of results; those of the one before are written meanwhile. */
static void tile_of(lsi_b16_work *w, lsi_b16_results r, lsi_b16_product *q)
{
    float *tile = w->tiles + w->turn * LSI_B16_TILE;
    const bool past = lsi_b16_try[TRY_PAST] > (w->g->p->c_type != LS_F32);

    q->c = tile;
    r.sums = tile;
    if (q->add)
        load_tile(w, r.m, r.rows, r.n, r.cols, tile);
    else if (!lsi_b16_try[TRY_STORE] && !past)
        fetch_rows(w, &r, 0, r.rows);
    w->expected = r;
    if (q->add || !lsi_b16_try[TRY_STORE] || past) w->expected.at = r.rows;
    w->rows_a_step = q->n_terms > 0 ? lsi_b16_pieces_of(LSI_B16_ROWS, q->n_terms) : LSI_B16_ROWS;
    w->kernels->multiply((int)r.rows, r.cols > LSI_B16_COLS ? 2 : 1, q);
    lsi_b16_write_rest(w);
    w->ready = r;
    if (!lsi_b16_try[TRY_STORE]) lsi_b16_write_rest(w);
    w->turn = !w->turn;
}

void lsi_b16_rows_times_columns(lsi_b16_work *w, int64_t n, int64_t n_end, int64_t l, int64_t k)
{
    const lsi_gemm_block *g = w->g;
    const bool add = l > 0 || g->p->accumulate, last = l + k >= g->p->k;
    lsi_b16_product q = {
        .a_off = w->off,
        .b_block = lsi_round_up(k, LSI_B16_DEEP) * LSI_B16_COLS,
        .n_terms = (k + LSI_B16_DEEP - 1) / LSI_B16_DEEP,
        .c_row = LSI_B16_WIDE,
        .add = add,
        .beside = lsi_b16_try[TRY_STORE] || lsi_b16_try[TRY_FETCH] || lsi_b16_try[TRY_COPY] == 2 ? &w->beside
                                                                                                 : NULL};

    w->beside.step = step;
    for (int64_t m = g->m_lo; m < g->m_hi; m += LSI_B16_ROWS) {
        const int64_t rows = lsi_b16_at_most(g->m_hi - m, LSI_B16_ROWS);
        set_rows(w, m, rows, l, k, &q);
        if (w->coming.to != NULL) w->coming.to = side_of_a(w, !w->side);
        for (int64_t j = n; j < n_end; j += LSI_B16_WIDE) {
            const int64_t cols = lsi_b16_at_most(n_end - j, LSI_B16_WIDE);
            q.b = w->all_b != NULL ? w->all_b + (j - w->first_b) / LSI_B16_COLS * q.b_block
                                   : w->b + (j - n) / LSI_B16_COLS * q.b_block;
            q.b_next = j + LSI_B16_WIDE < n_end ? q.b + 2 * q.b_block : NULL;
            tile_of(w, (lsi_b16_results){.m = m, .rows = rows, .n = j, .cols = cols, .last = last}, &q);
        }
    }
    while (w->coming.done < all_units(&w->coming)) next_unit(&w->coming);
    w->copied_m = w->coming.to != NULL ? w->coming.m : -1;
    w->copied_l = w->coming.l;
}
