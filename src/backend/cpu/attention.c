/* attention.c: softmax(scale * q k^T) v and its gradient, a block of queries at a time.
 *
 * The scores of one block of queries stand in scratch, per thread; nothing of size T x T is kept, and the
 * gradient computes the scores again from the log-sum-exp.  The products are those of gemm.h.  Forward cuts
 * blocks of queries among threads; backward cuts batch entries, because all blocks of an entry add to the
 * same dk and dv. */
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/kernel_util.h"
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
    size_t scores_bytes, gemm_bytes; /* of one thread: one block of scores; scratch of the products */
} attention_state;

typedef struct attention_call {
    const attention_state *s;
    const ls_call *call;
    bool backward;
} attention_call;

/* c (m, n) = [c +] a b, where a is (m, k) or stored (k, m), b is (k, n) or stored (n, k); all dense. */
static lsi_gemm_problem product(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool accumulate)
{
    return (lsi_gemm_problem){.m = m,
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

static const float *input(const attention_call *c, int i, int64_t row)
{
    return (const float *)c->call->in[i] + row * c->s->d;
}
static float *output(const attention_call *c, int k, int64_t row)
{
    return (float *)c->call->out[k] + row * c->s->d;
}

static void multiply(const attention_call *c, const lsi_gemm_problem *p, const float *a, const float *b,
                     float *to, void *scratch)
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
    lsi_gemm_problem qk = product(n, s->t, s->d, false, true, false);
    lsi_gemm_problem pv = product(n, s->d, s->t, false, false, false);

    multiply(c, &qk, input(c, 0, row), input(c, 1, entry), scores, gemm_scratch);
    for (int64_t i = 0; i < n; i++) {
        float *line = scores + i * s->t;
        s->pw->fn[LS_PW_AFFINE](line, line, line, 1, 1, s->t, (float)s->scale, 0);
        lse[row + i] = (float)s->rows->softmax(line, line, s->t);
    }
    multiply(c, &pv, scores, input(c, 2, entry), output(c, 0, row), gemm_scratch);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
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
    void *gemm_scratch = scratch + 2 * s->scores_bytes;
    bool more = row > entry; /* later blocks of an entry add to dk and dv */
    lsi_gemm_problem to_scores = product(n, s->t, s->d, false, true, false);
    lsi_gemm_problem to_queries = product(n, s->d, s->t, false, false, false);
    lsi_gemm_problem to_keys = product(s->t, s->d, n, true, false, more);

    multiply(c, &to_scores, input(c, 0, row), input(c, 1, entry), p, gemm_scratch);
    multiply(c, &to_scores, input(c, 5, row), input(c, 2, entry), dp, gemm_scratch);
    for (int64_t i = 0; i < n; i++) {
        double delta = dot(input(c, 5, row + i), input(c, 3, row + i), s->d);
        backward_line(s, p + i * s->t, dp + i * s->t, lse[row + i], (float)delta);
    }
    multiply(c, &to_queries, dp, input(c, 1, entry), output(c, 0, row), gemm_scratch);
    multiply(c, &to_keys, dp, input(c, 0, row), output(c, 1, entry), gemm_scratch);
    multiply(c, &to_keys, p, input(c, 5, row), output(c, 2, entry), gemm_scratch);
}

static size_t thread_bytes(const attention_state *s, bool backward)
{
    return (backward ? 2 : 1) * s->scores_bytes + s->gemm_bytes;
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
        lsi_gemm_problem p[] = {
            product(n, s->t, s->d, false, true, false), product(n, s->d, s->t, false, false, false),
            product(s->t, s->d, n, true, false, false), product(s->t, s->d, n, true, false, true)};
        for (int i = 0; i < 4 && n > 0; i++) {
            size_t bytes = lsi_gemm_scratch(&p[i]);
            if (bytes > most) most = bytes;
        }
    }
    return lsi_align64(most);
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

    if (s.rows == NULL || !lsi_plain_f32(g, n) || s.t == 0 || s.d == 0) return LS_UNSUPPORTED;
    s.threads = lsi_threads_for(dev, s.batch * s.t * s.t);
    s.scores_bytes = lsi_align64((size_t)(QUERIES * s.t) * sizeof(float));
    s.gemm_bytes = products_scratch(&s);
    return lsi_kernel_make(out, backward ? run_backward : run_forward, &s, sizeof s,
                           (size_t)s.threads * thread_bytes(&s, backward), "blocks", err);
}
