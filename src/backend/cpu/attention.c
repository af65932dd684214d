/* attention.c: softmax(scale * q k^T) v and its gradient, a block of queries at a time.
 *
 * The scores of one block of queries stand in scratch, per thread; nothing of size T x T is kept, and the
 * gradient computes the scores again from the log-sum-exp.  The products are those of gemm.h.  Forward cuts
 * blocks of queries among threads; backward cuts batch entries, because all blocks of an entry add to the
 * same dk and dv.  Of bf16 tensors scores and those sums are f32, and products of bf16 numbers serve both. */
#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/move.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/pointwise.h"
#include "backend/cpu/rows.h"

#define QUERIES 64 /* of a block */

typedef struct attention_state {
    const lsi_row_table *rows;
    const lsi_pw_table *pw;
    int64_t batch, t, d;
    double scale;
    int threads;
    ls_dtype type; /* of all tensors but the log-sum-exp: f32 or bf16 */
    const lsi_move_table *move;
    size_t scores_bytes, gemm_bytes; /* of one thread: one block of scores; scratch of the products */
    size_t sums_bytes; /* likewise: dk or dv of an entry in f32, where they are stored otherwise */
} attention_state;

typedef struct attention_call {
    const attention_state *s;
    const ls_call *call;
    bool backward;
} attention_call;

/* c (m, n) = [c +] a b, where a is (m, k) or stored (k, m), b is (k, n) or stored (n, k); all dense. */
static lsi_gemm_problem product(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool accumulate,
                                ls_dtype a, ls_dtype b, ls_dtype c)
{
    return (lsi_gemm_problem){.a_type = a,
                              .b_type = b,
                              .c_type = c,
                              .m = m,
                              .n = n,
                              .k = k,
                              .lda = trans_a ? m : k,
                              .ldb = trans_b ? k : n,
                              .ldc = n,
                              .trans_a = trans_a,
                              .trans_b = trans_b,
                              .batch = 1,
                              .accumulate = accumulate,
                              .act = LSI_ACT_NONE,
                              .threads = 1};
}

/* The products: scores of queries or of dout, what scores give of values or keys, and what they give back. */
static lsi_gemm_problem to_scores(const attention_state *s, int64_t n)
{
    return product(n, s->t, s->d, false, true, false, s->type, s->type, LS_F32);
}
static lsi_gemm_problem to_queries(const attention_state *s, int64_t n)
{
    return product(n, s->d, s->t, false, false, false, LS_F32, s->type, s->type);
}
static lsi_gemm_problem to_keys(const attention_state *s, int64_t n, bool more)
{
    return product(s->t, s->d, n, true, false, more, LS_F32, s->type, LS_F32);
}

static const void *input(const attention_call *c, int i, int64_t row)
{
    return (const char *)c->call->in[i] + (size_t)(row * c->s->d) * ls_dtype_size(c->s->type);
}
static void *output(const attention_call *c, int k, int64_t row)
{
    return (char *)c->call->out[k] + (size_t)(row * c->s->d) * ls_dtype_size(c->s->type);
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
    const lsi_gemm_problem qk = to_scores(s, n), pv = to_queries(s, n);

    multiply(c, &qk, input(c, 0, row), input(c, 1, entry), scores, gemm_scratch);
    for (int64_t i = 0; i < n; i++) {
        float *line = scores + i * s->t;
        s->pw->fn[LS_PW_AFFINE](line, line, line, 1, 1, s->t, (float)s->scale, 0);
        lse[row + i] = (float)s->rows->softmax(line, line, s->t);
    }
    multiply(c, &pv, scores, input(c, 2, entry), output(c, 0, row), gemm_scratch);
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

static void backward_block(const attention_call *c, int64_t entry, int64_t row, int64_t n, char *scratch)
{
    const attention_state *s = c->s;
    const float *lse = c->call->in[4];
    float *p = (float *)scratch, *dp = (float *)(scratch + s->scores_bytes);
    char *sums = scratch + 2 * s->scores_bytes;
    void *gemm_scratch = sums + 2 * s->sums_bytes;
    const bool more = row > entry; /* later blocks of an entry add to dk and dv */
    const lsi_gemm_problem scores = to_scores(s, n), queries = to_queries(s, n), keys = to_keys(s, n, more);
    void *dk = s->type == LS_F32 ? output(c, 1, entry) : (void *)sums;
    void *dv = s->type == LS_F32 ? output(c, 2, entry) : (void *)(sums + s->sums_bytes);

    multiply(c, &scores, input(c, 0, row), input(c, 1, entry), p, gemm_scratch);
    multiply(c, &scores, input(c, 5, row), input(c, 2, entry), dp, gemm_scratch);
    for (int64_t i = 0; i < n; i++) {
        double delta = dot(s, input(c, 5, row + i), input(c, 3, row + i));
        backward_line(s, p + i * s->t, dp + i * s->t, lse[row + i], (float)delta);
    }
    multiply(c, &queries, dp, input(c, 1, entry), output(c, 0, row), gemm_scratch);
    multiply(c, &keys, dp, input(c, 0, row), dk, gemm_scratch);
    multiply(c, &keys, p, input(c, 5, row), dv, gemm_scratch);
    if (s->type != LS_F32 && row + n == entry + s->t) {
        s->move->bf16_from_f32(output(c, 1, entry), dk, s->t * s->d);
        s->move->bf16_from_f32(output(c, 2, entry), dv, s->t * s->d);
    }
}

static size_t thread_bytes(const attention_state *s, bool backward)
{
    return (backward ? 2 : 1) * s->scores_bytes + (backward ? 2 : 0) * s->sums_bytes + s->gemm_bytes;
}

static void attention_thread(int thread, int n_threads, void *arg)
{
    const attention_call *c = arg;
    const attention_state *s = c->s;
    int64_t blocks = (s->t + QUERIES - 1) / QUERIES, i, end;
    char *scratch = (char *)c->call->scratch + (size_t)thread * thread_bytes(s, c->backward);

    ls_parallel_range_grain(s->batch * blocks, c->backward ? blocks : 1, thread, n_threads, &i, &end);
    for (; i < end; i++) {
        int64_t entry = i / blocks * s->t, lo = i % blocks * QUERIES;
        int64_t n = s->t - lo < QUERIES ? s->t - lo : QUERIES;
        (c->backward ? backward_block : forward_block)(c, entry, entry + lo, n, scratch);
    }
}

static void run_forward(void *state, const ls_call *call)
{
    attention_call c = {state, call, false};

    ls_parallel_run(c.s->threads, attention_thread, &c);
}

static void run_backward(void *state, const ls_call *call)
{
    attention_call c = {state, call, true};

    ls_parallel_run(c.s->threads, attention_thread, &c);
}

/* Enough for each of the products, whole blocks and the last, shorter one. */
static size_t products_scratch(const attention_state *s)
{
    size_t most = 0;

    for (int k = 0; k < 2; k++) {
        int64_t n = k == 0 && s->t >= QUERIES ? QUERIES : s->t % QUERIES;
        lsi_gemm_problem p[] = {to_scores(s, n), to_queries(s, n), to_keys(s, n, false), to_keys(s, n, true)};
        for (int i = 0; i < 4 && n > 0; i++) {
            size_t bytes = lsi_gemm_scratch(&p[i]);
            if (bytes > most) most = bytes;
        }
    }
    return lsi_align64(most);
}

/* All plain and of one type that products can be made of, but for the log-sum-exp. */
static bool types_fit(const ls_graph *g, const ls_node *n, ls_dtype type, bool backward)
{
    if (type != LS_F32 && (type != LS_BF16 || lsi_b16_kernels_here() == NULL)) return false;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        const bool lse = backward ? i == 4 : i == n->n_in + 1;
        if (v->dtype != (lse ? LS_F32 : type) || v->layout != &ls_layout_plain) return false;
    }
    return true;
}

ls_status lsi_plan_attention(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    bool backward = n->op == &ls_op_attention_grad;
    ls_shape q = lsi_in(g, n, 0)->shape;
    attention_state s = {.rows = LSI_PICK(lsi_rows_avx512, lsi_rows_avx2),
                         .pw = LSI_PICK(lsi_pw_avx512, lsi_pw_avx2),
                         .batch = q.dim[0],
                         .t = q.dim[1],
                         .d = q.dim[2],
                         .scale = ((const ls_attention_attr *)n->attr)->scale};

    s.type = lsi_in(g, n, 0)->dtype;
    s.move = LSI_PICK(lsi_move_avx512, lsi_move_avx2);
    if (s.rows == NULL || !types_fit(g, n, s.type, backward) || s.t == 0 || s.d == 0) return LS_UNSUPPORTED;
    if (s.type != LS_F32) s.sums_bytes = lsi_align64((size_t)(s.t * s.d) * sizeof(float));
    s.threads = lsi_threads_for(dev, s.batch * s.t * s.t);
    s.scores_bytes = lsi_align64((size_t)(QUERIES * s.t) * sizeof(float));
    s.gemm_bytes = products_scratch(&s);
    return lsi_kernel_make(out, backward ? run_backward : run_forward, &s, sizeof s,
                           (size_t)s.threads * thread_bytes(&s, backward), "blocks", err);
}
