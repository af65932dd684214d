/* attention_b16.c: the products of attention_b16.h, made of the tiles of b16.h. */
#include "backend/cpu/attention_b16.h"

#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"

/* A matrix as the right side of products: blocks of 16 columns, `terms` of 32 numbers deep. */
typedef struct columns {
    uint16_t *at;
    int64_t terms, n;
} columns;

/* What is scratch; those of the gradient alone are last. */
typedef struct room {
    int64_t tokens, width; /* t and d, rounded up to whole terms */
    int64_t *off;
    float *tile, *scores;
    uint16_t *rows;         /* 32 queries, or of dout */
    columns keys, values;   /* forward: k as columns of tokens, v as columns of d */
    uint16_t *p;            /* weights: of 32 queries; with gradients of all */
    uint16_t *ds, *turned;  /* gradients of scores; weights or those with queries along the rows */
    columns k_down, q_down; /* as columns of d */
    columns dout_down;
    float *dscores;
} room;

/* Scratch memory, or NULL to count bytes only. */
typedef struct stock {
    char *base;
    size_t used;
} stock;

static void *take(stock *from, int64_t count, size_t size)
{
    void *p = from->base != NULL ? from->base + from->used : NULL;

    from->used += lsi_align64((size_t)count * size);
    return p;
}

static columns take_columns(stock *from, int64_t n, int64_t deep)
{
    return (columns){take(from, lsi_round_up(n, LSI_B16_WIDE) * deep, sizeof(uint16_t)), deep / LSI_B16_DEEP,
                     n};
}

/* The place of everything; returns the bytes. */
static size_t lay_out(room *r, const lsi_attention_b16 *s, bool backward, void *scratch)
{
    stock at = {.base = scratch};

    r->tokens = lsi_round_up(s->t, LSI_B16_WIDE);
    r->width = lsi_round_up(s->d, LSI_B16_WIDE);
    r->off = take(&at, (r->tokens > r->width ? r->tokens : r->width) / LSI_B16_DEEP, sizeof *r->off);
    r->tile = take(&at, LSI_B16_ROWS * LSI_B16_WIDE, sizeof(float));
    r->scores = take(&at, LSI_B16_ROWS * r->tokens, sizeof(float));
    r->rows = take(&at, LSI_B16_ROWS * r->width, sizeof(uint16_t));
    r->keys = take_columns(&at, s->t, r->width);
    r->values = backward ? take_columns(&at, s->t, r->width) : take_columns(&at, s->d, r->tokens);
    r->p = take(&at, (backward ? r->tokens : LSI_B16_ROWS) * r->tokens, sizeof(uint16_t));
    if (!backward) return at.used;
    r->ds = take(&at, r->tokens * r->tokens, sizeof(uint16_t));
    r->turned = take(&at, r->tokens * r->tokens, sizeof(uint16_t));
    r->k_down = take_columns(&at, s->d, r->tokens);
    r->q_down = take_columns(&at, s->d, r->tokens);
    r->dout_down = take_columns(&at, s->d, r->tokens);
    r->dscores = take(&at, LSI_B16_ROWS * r->tokens, sizeof(float));
    return at.used;
}

size_t lsi_attention_b16_scratch(const lsi_attention_b16 *s, bool backward)
{
    room r;

    return lay_out(&r, s, backward, NULL);
}

/* Tokens as columns, or (`down`) along the depth of columns of d. */
static void pack(columns *c, const uint16_t *from, int64_t row, int64_t tokens, int64_t d, bool down)
{
    for (int64_t j = 0; j < lsi_round_up(c->n, LSI_B16_WIDE); j += LSI_B16_COLS) {
        const int64_t left = c->n - j, n = left < 0 ? 0 : left < LSI_B16_COLS ? left : LSI_B16_COLS;
        lsi_b16_pack_b(from + (down ? j : j * row), LS_BF16, row, !down, n, down ? tokens : d,
                       c->at + j * c->terms * LSI_B16_DEEP);
    }
}

/* 32 rows times all columns, to rows of fp32 that are `row` apart. */
static void to_scores(const lsi_b16_kernels *kernels, const room *r, const uint16_t *rows, int64_t n,
                      const columns *c, float *to, int64_t row)
{
    lsi_b16_product q = {.a = rows,
                         .a_off = r->off,
                         .a_row = c->terms * LSI_B16_DEEP,
                         .b_block = c->terms * LSI_B16_BLOCK,
                         .n_terms = c->terms,
                         .c_row = row};

    for (int64_t j = 0; j < c->n; j += LSI_B16_WIDE) {
        q.b = c->at + j * c->terms * LSI_B16_DEEP;
        q.c = to + j;
        kernels->multiply((int)n, LSI_B16_BLOCKS, &q);
    }
}

/* The same to rows of bf16 numbers. */
static void to_tokens(const lsi_b16_kernels *kernels, const room *r, const uint16_t *rows, int64_t n,
                      const columns *c, uint16_t *to, int64_t row)
{
    const lsi_b16_end end = {.type = LS_BF16, .act = LSI_ACT_NONE};
    lsi_b16_product q = {.a = rows,
                         .a_off = r->off,
                         .a_row = c->terms * LSI_B16_DEEP,
                         .b_block = c->terms * LSI_B16_BLOCK,
                         .n_terms = c->terms,
                         .c = r->tile,
                         .c_row = LSI_B16_WIDE};

    for (int64_t j = 0; j < c->n; j += LSI_B16_WIDE) {
        q.b = c->at + j * c->terms * LSI_B16_DEEP;
        kernels->multiply((int)n, LSI_B16_BLOCKS, &q);
        for (int64_t i = j; i < c->n && i < j + LSI_B16_WIDE; i += LSI_B16_COLS)
            lsi_b16_store(&end, r->tile + i - j, LSI_B16_WIDE, n,
                          c->n - i < LSI_B16_COLS ? c->n - i : LSI_B16_COLS, to + i, row);
    }
}

static int64_t rows_at(const lsi_attention_b16 *s, int64_t m)
{
    return s->t - m < LSI_B16_ROWS ? s->t - m : LSI_B16_ROWS;
}

static void begin(const lsi_b16_kernels *kernels, const lsi_attention_b16 *s, bool backward, void *scratch,
                  room *r)
{
    lay_out(r, s, backward, scratch);
    for (int64_t i = 0; i < (r->tokens > r->width ? r->tokens : r->width) / LSI_B16_DEEP; i++)
        r->off[i] = i * LSI_B16_DEEP;
    kernels->begin();
}

void lsi_attention_b16_forward(const lsi_attention_b16 *s, const uint16_t *q, const uint16_t *k,
                               const uint16_t *v, uint16_t *out, float *lse, void *scratch)
{
    const lsi_b16_kernels *kernels = lsi_b16_kernels_here();
    room r;

    begin(kernels, s, false, scratch, &r);
    pack(&r.keys, k, s->row_in, s->t, s->d, false);
    pack(&r.values, v, s->row_in, s->t, s->d, true);
    for (int64_t m = 0; m < s->t; m += LSI_B16_ROWS) {
        const int64_t n = rows_at(s, m);
        lsi_b16_pack_a(q + m * s->row_in, LS_BF16, s->row_in, false, n, s->d, r.rows, r.width);
        to_scores(kernels, &r, r.rows, n, &r.keys, r.scores, r.tokens);
        for (int64_t i = 0; i < n; i++)
            lse[m + i] = lsi_attention_softmax_row(r.scores + i * r.tokens, s->scale, s->t, r.tokens,
                                                   r.p + i * r.tokens);
        to_tokens(kernels, &r, r.p, n, &r.values, out + m * s->row_out, s->row_out);
    }
    kernels->end();
}

/* Weights and gradients of scores of all queries, and dq. */
static void back_scores(const lsi_b16_kernels *kernels, const lsi_attention_b16 *s,
                        const lsi_attention_b16_grads *g, const room *r)
{
    for (int64_t m = 0; m < s->t; m += LSI_B16_ROWS) {
        const int64_t n = rows_at(s, m);
        uint16_t *p = r->p + m * r->tokens, *ds = r->ds + m * r->tokens;
        lsi_b16_pack_a(g->q + m * s->row_in, LS_BF16, s->row_in, false, n, s->d, r->rows, r->width);
        to_scores(kernels, r, r->rows, n, &r->keys, r->scores, r->tokens);
        lsi_b16_pack_a(g->dout + m * s->row_out, LS_BF16, s->row_out, false, n, s->d, r->rows, r->width);
        to_scores(kernels, r, r->rows, n, &r->values, r->dscores, r->tokens);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = (m + i) * s->row_out;
            lsi_attention_back_row(r->scores + i * r->tokens, r->dscores + i * r->tokens, s->scale,
                                   g->lse[m + i], lsi_attention_dot(g->dout + at, g->out + at, s->d), s->t,
                                   r->tokens, p + i * r->tokens, ds + i * r->tokens);
        }
        to_tokens(kernels, r, ds, n, &r->k_down, g->dq + m * s->row_in, s->row_in);
    }
}

/* What the weights of all queries, or gradients of their scores, give to each key. */
static void back_keys(const lsi_b16_kernels *kernels, const lsi_attention_b16 *s, const room *r,
                      const uint16_t *weights, const columns *c, uint16_t *to)
{
    lsi_b16_pack_a(weights, LS_BF16, r->tokens, true, s->t, s->t, r->turned, r->tokens);
    for (int64_t m = 0; m < s->t; m += LSI_B16_ROWS)
        to_tokens(kernels, r, r->turned + m * r->tokens, rows_at(s, m), c, to + m * s->row_in, s->row_in);
}

void lsi_attention_b16_backward(const lsi_attention_b16 *s, const lsi_attention_b16_grads *g, void *scratch)
{
    const lsi_b16_kernels *kernels = lsi_b16_kernels_here();
    room r;

    begin(kernels, s, true, scratch, &r);
    pack(&r.keys, g->k, s->row_in, s->t, s->d, false);
    pack(&r.values, g->v, s->row_in, s->t, s->d, false);
    pack(&r.k_down, g->k, s->row_in, s->t, s->d, true);
    pack(&r.q_down, g->q, s->row_in, s->t, s->d, true);
    pack(&r.dout_down, g->dout, s->row_out, s->t, s->d, true);
    back_scores(kernels, s, g, &r);
    back_keys(kernels, s, &r, r.ds, &r.q_down, g->dk);
    back_keys(kernels, s, &r, r.p, &r.dout_down, g->dv);
    kernels->end();
}
