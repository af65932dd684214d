/* attention.c: softmax(scale * q k^T) v and its gradient, a block of queries at a time.
 *
 * The scores of one block of queries stand in scratch, per thread; nothing of size T x T is kept, and the
 * gradient computes the scores again from the log-sum-exp.  The products are those of gemm.h.  Forward deals
 * blocks of queries to threads; backward deals batch entries, because all blocks of an entry add to the
 * same dk and dv.  Of bf16 tensors scores and those sums are f32, and products of bf16 numbers serve both;
 * of short sequences of them attention_b16.c computes an entry at a time.
 * Heads are read and written where they lie: one after the other (attention), or as a product left them, all
 * three in one tensor (self_attention). */
#include "backend/cpu/attention_b16.h"
#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/move.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/pointwise.h"
#include "backend/cpu/rows.h"

enum { QUERIES = 64 }; /* of a block */

enum { Q, K, V, OUT, DOUT }; /* the tensors whose rows are heads of tokens; of gradients the first three */

typedef struct attention_state {
    const lsi_row_table *rows;
    const lsi_pw_table *pw;
    int64_t batch, t, d;            /* batch: entries, of `heads` to a sample */
    int64_t heads, row_in, row_out; /* numbers from a token to the next in q, k and v, and in out */
    bool packed;                    /* q, k and v are one tensor */
    int64_t queries;
    double scale;
    int threads;
    ls_dtype type; /* of all tensors but the log-sum-exp: f32 or bf16 */
    const lsi_move_table *move;
    size_t scores_bytes, gemm_bytes; /* of one thread: one block of scores; scratch of the products */
    size_t sums_bytes; /* likewise: dk or dv of an entry in f32, where they are stored otherwise */
    bool whole;        /* an entry at a time, by attention_b16.c */
} attention_state;

typedef struct attention_call {
    const attention_state *s;
    const ls_call *call;
    bool backward;
    ls_parallel_pieces pieces; /* blocks of queries, or entries */
} attention_call;

/* The products, each of n queries: scores of queries or of dout (rows `row` apart), what scores give of
 * values or keys, and what they give back of queries or dout. */
static lsi_gemm_problem to_scores(const attention_state *s, int64_t n, int64_t row)
{
    return (lsi_gemm_problem){.a_type = s->type,
                              .b_type = s->type,
                              .c_type = LS_F32,
                              .m = n,
                              .n = s->t,
                              .k = s->d,
                              .lda = row,
                              .ldb = s->row_in,
                              .ldc = s->t,
                              .trans_b = true,
                              .batch = 1,
                              .act = LSI_ACT_NONE,
                              .threads = 1};
}
static lsi_gemm_problem to_queries(const attention_state *s, int64_t n, int64_t row)
{
    return (lsi_gemm_problem){.a_type = LS_F32,
                              .b_type = s->type,
                              .c_type = s->type,
                              .m = n,
                              .n = s->d,
                              .k = s->t,
                              .lda = s->t,
                              .ldb = s->row_in,
                              .ldc = row,
                              .batch = 1,
                              .act = LSI_ACT_NONE,
                              .threads = 1};
}
static lsi_gemm_problem to_keys(const attention_state *s, int64_t n, int64_t row, bool more)
{
    return (lsi_gemm_problem){.a_type = LS_F32,
                              .b_type = s->type,
                              .c_type = LS_F32,
                              .m = s->t,
                              .n = s->d,
                              .k = n,
                              .lda = s->t,
                              .ldb = row,
                              .ldc = s->type == LS_F32 ? s->row_in : s->d,
                              .trans_a = true,
                              .batch = 1,
                              .accumulate = more,
                              .act = LSI_ACT_NONE,
                              .threads = 1};
}

/* Bytes from the beginning of a tensor, or of its third, to token `row` of all entries. */
static size_t place(const attention_state *s, int which, int64_t row)
{
    const int64_t entry = row / s->t, token = row % s->t, step = which <= V ? s->row_in : s->row_out;
    const int64_t third = s->packed && which <= V ? which * s->heads * s->d : 0;
    const int64_t at = (entry / s->heads * s->t + token) * step + entry % s->heads * s->d + third;

    return (size_t)at * ls_dtype_size(s->type);
}
static const void *input(const attention_call *c, int which, int64_t row)
{
    static const int apart[] = {0, 1, 2, 3, 5}, packed[] = {0, 0, 0, 1, 3};

    return (const char *)c->call->in[(c->s->packed ? packed : apart)[which]] + place(c->s, which, row);
}
/* Of q, k and v, or OUT. */
static void *output(const attention_call *c, int which, int64_t row)
{
    return (char *)c->call->out[c->s->packed || which == OUT ? 0 : which] + place(c->s, which, row);
}

static void multiply(const attention_call *c, const lsi_gemm_problem *p, const void *a, const void *b,
                     void *to, void *scratch)
{
    if (lsi_gemm(p, a, b, to, NULL, scratch) != LS_OK)
        ls_stream_fail(c->call->stream, LS_DEVICE, "a product of matrices failed");
}

/* Queries of rows row..row+n-1, whose batch entry begins at row `entry`. */
static void forward_block(const attention_call *c, int64_t entry, int64_t row, int64_t n, char *scratch)
{
    const attention_state *s = c->s;
    float *scores = (float *)scratch, *lse = (float *)c->call->out[1];
    void *gemm_scratch = scratch + s->scores_bytes;
    const lsi_gemm_problem qk = to_scores(s, n, s->row_in), pv = to_queries(s, n, s->row_out);

    multiply(c, &qk, input(c, Q, row), input(c, K, entry), scores, gemm_scratch);
    for (int64_t i = 0; i < n; i++) {
        float *line = scores + i * s->t;
        s->pw->fn[LS_PW_AFFINE](line, line, line, 1, 1, s->t, (float)s->scale, 0);
        lse[row + i] = (float)s->rows->softmax(line, line, s->t);
    }
    multiply(c, &pv, scores, input(c, V, entry), output(c, OUT, row), gemm_scratch);
}

static double dot(const attention_state *s, const void *a, const void *b)
{
    enum { PIECE = 128 };
    float wide[2][PIECE];
    double sum = 0;

    for (int64_t at = 0; at < s->d; at += PIECE) {
        const int64_t n = s->d - at < PIECE ? s->d - at : PIECE;
        const float *x = (const float *)a + at, *y = (const float *)b + at;
        if (s->type != LS_F32) {
            s->move->bf16_to_f32(wide[0], (const uint16_t *)a + at, n);
            s->move->bf16_to_f32(wide[1], (const uint16_t *)b + at, n);
            x = wide[0];
            y = wide[1];
        }
        for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    }
    return sum;
}

/* From scores and dp = dout v^T of one query: p = exp(scale * score - lse), dscore = scale * p * (dp -
 * delta).
 */
static void backward_line(const attention_state *s, float *p, float *dp, float lse, float delta)
{
    const lsi_pw_fn *fn = s->pw->fn;

    fn[LS_PW_AFFINE](p, p, p, 1, 1, s->t, (float)s->scale, -lse);
    fn[LS_PW_EXP](p, p, p, 1, 1, s->t, 0, 0);
    fn[LS_PW_AFFINE](dp, dp, dp, 1, 1, s->t, (float)s->scale, -(float)s->scale * delta);
    fn[LS_PW_MUL](dp, dp, p, 1, 1, s->t, 0, 0);
}

/* What was summed up of keys or values of an entry, to its place. */
static void give_sums(const attention_call *c, int which, int64_t entry, const float *sums)
{
    const attention_state *s = c->s;

    for (int64_t i = 0; i < s->t; i++)
        s->move->bf16_from_f32(output(c, which, entry + i), sums + i * s->d, s->d);
}

static void backward_block(const attention_call *c, int64_t entry, int64_t row, int64_t n, char *scratch)
{
    const attention_state *s = c->s;
    const float *lse = c->call->in[s->packed ? 2 : 4];
    float *p = (float *)scratch, *dp = (float *)(scratch + s->scores_bytes);
    char *sums = scratch + 2 * s->scores_bytes;
    void *gemm_scratch = sums + 2 * s->sums_bytes;
    const bool more = row > entry; /* later blocks of an entry add to dk and dv */
    const lsi_gemm_problem qk = to_scores(s, n, s->row_in), dov = to_scores(s, n, s->row_out);
    const lsi_gemm_problem queries = to_queries(s, n, s->row_in), keys = to_keys(s, n, s->row_in, more),
                           values = to_keys(s, n, s->row_out, more);
    void *dk = s->type == LS_F32 ? output(c, K, entry) : (void *)sums;
    void *dv = s->type == LS_F32 ? output(c, V, entry) : (void *)(sums + s->sums_bytes);

    multiply(c, &qk, input(c, Q, row), input(c, K, entry), p, gemm_scratch);
    multiply(c, &dov, input(c, DOUT, row), input(c, V, entry), dp, gemm_scratch);
    for (int64_t i = 0; i < n; i++) {
        double delta = dot(s, input(c, DOUT, row + i), input(c, OUT, row + i));
        backward_line(s, p + i * s->t, dp + i * s->t, lse[row + i], (float)delta);
    }
    multiply(c, &queries, dp, input(c, K, entry), output(c, Q, row), gemm_scratch);
    multiply(c, &keys, dp, input(c, Q, row), dk, gemm_scratch);
    multiply(c, &values, p, input(c, DOUT, row), dv, gemm_scratch);
    if (s->type != LS_F32 && row + n == entry + s->t) {
        give_sums(c, K, entry, dk);
        give_sums(c, V, entry, dv);
    }
}

static lsi_attention_b16 whole_of(const attention_state *s)
{
    return (lsi_attention_b16){s->t, s->d, s->row_in, s->row_out, (float)s->scale};
}

static void whole_entry(const attention_call *c, int64_t entry, char *scratch)
{
    const lsi_attention_b16 whole = whole_of(c->s);

    if (c->backward)
        lsi_attention_b16_backward(
            &whole,
            &(lsi_attention_b16_grads){.q = input(c, Q, entry),
                                       .k = input(c, K, entry),
                                       .v = input(c, V, entry),
                                       .out = input(c, OUT, entry),
                                       .dout = input(c, DOUT, entry),
                                       .lse = (const float *)c->call->in[c->s->packed ? 2 : 4] + entry,
                                       .dq = output(c, Q, entry),
                                       .dk = output(c, K, entry),
                                       .dv = output(c, V, entry)},
            scratch);
    else
        lsi_attention_b16_forward(&whole, input(c, Q, entry), input(c, K, entry), input(c, V, entry),
                                  output(c, OUT, entry), (float *)c->call->out[1] + entry, scratch);
}

static size_t thread_bytes(const attention_state *s, bool backward)
{
    const lsi_attention_b16 whole = whole_of(s);

    if (s->whole) return lsi_attention_b16_scratch(&whole, backward);
    return (backward ? 2 : 1) * s->scores_bytes + (backward ? 2 : 0) * s->sums_bytes + s->gemm_bytes;
}

static void attention_thread(int thread, int n_threads, void *arg)
{
    attention_call *c = arg;
    const attention_state *s = c->s;
    const int64_t blocks = (s->t + s->queries - 1) / s->queries, grain = c->backward ? blocks : 1;
    char *scratch = (char *)c->call->scratch + (size_t)thread * thread_bytes(s, c->backward);

    (void)n_threads;
    for (int64_t i; s->whole && (i = ls_parallel_take(&c->pieces)) < s->batch;)
        whole_entry(c, i * s->t, scratch);
    for (int64_t i; !s->whole && (i = ls_parallel_take(&c->pieces) * grain) < s->batch * blocks;)
        for (int64_t k = i; k < i + grain; k++) {
            const int64_t entry = k / blocks * s->t, lo = k % blocks * s->queries;
            const int64_t n = s->t - lo < s->queries ? s->t - lo : s->queries;
            (c->backward ? backward_block : forward_block)(c, entry, entry + lo, n, scratch);
        }
}

static void run_forward(void *state, const ls_call *call)
{
    attention_call c = {.s = state, .call = call};

    ls_parallel_run(c.s->threads, attention_thread, &c);
}

static void run_backward(void *state, const ls_call *call)
{
    attention_call c = {.s = state, .call = call, .backward = true};

    ls_parallel_run(c.s->threads, attention_thread, &c);
}

/* Enough for each of the products, whole blocks and the last, shorter one. */
static size_t products_scratch(const attention_state *s)
{
    size_t most = 0;

    for (int k = 0; k < 2; k++) {
        int64_t n = k == 0 && s->t >= s->queries ? s->queries : s->t % s->queries;
        lsi_gemm_problem p[] = {to_scores(s, n, s->row_in), to_queries(s, n, s->row_in),
                                to_keys(s, n, s->row_in, false), to_keys(s, n, s->row_in, true)};
        for (int i = 0; i < 4 && n > 0; i++) {
            size_t bytes = lsi_gemm_scratch(&p[i]);
            if (bytes > most) most = bytes;
        }
    }
    return lsi_align64(most);
}

/* All plain and of one type that products can be made of, but for the log-sum-exp. */
static bool types_fit(const ls_graph *g, const ls_node *n, ls_dtype type, int lse)
{
    if (type != LS_F32 && (type != LS_BF16 || lsi_b16_kernels_here() == NULL)) return false;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        if (v->dtype != (i == lse ? LS_F32 : type) || v->layout != &ls_layout_plain) return false;
    }
    return true;
}

static attention_state shape_of(const ls_graph *g, const ls_node *n, bool packed)
{
    const ls_shape q = lsi_in(g, n, 0)->shape;
    const int64_t heads = packed ? q.dim[3] : 1, d = q.dim[q.rank - 1];

    return (attention_state){.batch = q.dim[0] * heads,
                             .t = q.dim[1],
                             .d = d,
                             .heads = heads,
                             .row_in = (packed ? 3 : 1) * heads * d,
                             .row_out = heads * d,
                             .packed = packed,
                             .type = lsi_in(g, n, 0)->dtype};
}

ls_status lsi_plan_attention(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const bool packed = n->op == &ls_op_self_attention || n->op == &ls_op_self_attention_grad;
    const bool backward = n->op == &ls_op_attention_grad || n->op == &ls_op_self_attention_grad;
    attention_state s = shape_of(g, n, packed);

    s.rows = LSI_PICK(lsi_rows_avx512, lsi_rows_avx2);
    s.pw = LSI_PICK(lsi_pw_avx512, lsi_pw_avx2);
    s.move = LSI_PICK(lsi_move_avx512, lsi_move_avx2);
    s.scale = ((const ls_attention_attr *)n->attr)->scale;
    if (s.rows == NULL || s.t == 0 || s.d == 0 || s.heads == 0 ||
        !types_fit(g, n, s.type, backward ? (packed ? 2 : 4) : n->n_in + 1))
        return LS_UNSUPPORTED;
    s.queries = QUERIES;
    s.whole = s.type != LS_F32 && s.t <= LSI_ATTENTION_B16_TOKENS;
    if (s.type != LS_F32) s.sums_bytes = lsi_align64((size_t)(s.t * s.d) * sizeof(float));
    s.threads = lsi_threads_for(dev, s.batch * s.t * s.t);
    s.scores_bytes = lsi_align64((size_t)(s.queries * s.t) * sizeof(float));
    s.gemm_bytes = products_scratch(&s);
    return lsi_kernel_make(out, backward ? run_backward : run_forward, &s, sizeof s,
                           (size_t)s.threads * thread_bytes(&s, backward), s.whole ? "b16" : "blocks", err);
}
