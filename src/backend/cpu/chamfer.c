/* chamfer.c: distances between clouds of points, and their gradient.
 *
 * No matrix of distances is made: a few vectors of points of one cloud stay in registers while the other
 * cloud passes by.  The gradient is a sum of few terms per point. */
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/search.h"
#include "ops/index_rules.h"

typedef struct chamfer_state {
    const lsi_search_table *table;
    int64_t batch, p, q;
    int threads;
} chamfer_state;

typedef struct chamfer_call {
    const chamfer_state *s;
    const ls_call *call;
} chamfer_call;

/* One block of points of p or of q against the other cloud; blocks of p come first. */
static double one_block(const chamfer_call *c, int64_t entry, int64_t block)
{
    const chamfer_state *s = c->s;
    int64_t step = s->table->points, blocks_p = (s->p + step - 1) / step;
    bool first = block < blocks_p;
    int64_t mine = first ? s->p : s->q, other = first ? s->q : s->p;
    int64_t lo = (first ? block : block - blocks_p) * step, n = mine - lo < step ? mine - lo : step;
    const float *a = (const float *)c->call->in[first ? 0 : 1] + entry * 3 * mine + lo;
    const float *b = (const float *)c->call->in[first ? 1 : 0] + entry * 3 * other;
    int32_t *index = (int32_t *)c->call->out[first ? 1 : 2] + entry * mine + lo;

    return s->table->nearest(a, mine, n, b, other, index);
}

static void chamfer_thread(int thread, int n_threads, void *arg)
{
    const chamfer_call *c = arg;
    int64_t step = c->s->table->points;
    int64_t blocks = (c->s->p + step - 1) / step + (c->s->q + step - 1) / step, i, end;
    double sum = 0;

    ls_parallel_range(c->s->batch * blocks, thread, n_threads, &i, &end);
    for (; i < end; i++) sum += one_block(c, i / blocks, i % blocks);
    ((double *)c->call->scratch)[thread] = sum;
}

static void run(void *state, const ls_call *call)
{
    chamfer_call c = {state, call};
    double sum = 0;

    ls_parallel_run(c.s->threads, chamfer_thread, &c);
    for (int t = 0; t < c.s->threads; t++) sum += ((const double *)call->scratch)[t];
    *(float *)call->out[0] = (float)sum;
}

static chamfer_state chamfer_of(const ls_device *dev, ls_shape p, ls_shape q)
{
    chamfer_state s = {.table = LSI_PICK(lsi_search_avx512, lsi_search_avx2),
                       .batch = p.dim[0],
                       .p = p.dim[2],
                       .q = q.dim[2]};

    s.threads = lsi_threads_for(dev, s.batch * s.p * s.q);
    return s;
}

ls_status lsi_plan_chamfer(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    chamfer_state s = chamfer_of(dev, lsi_in(g, n, 0)->shape, lsi_in(g, n, 1)->shape);

    if (s.table == NULL || !lsi_ins_are(g, n, 0, 2, LS_F32, &ls_layout_plain) || s.p == 0 || s.q == 0 ||
        s.p > LSI_SEARCH_MAX || s.q > LSI_SEARCH_MAX)
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run, &s, sizeof s, sizeof(double) * (size_t)s.threads, s.table->impl, err);
}

/* dp_i += 2 * dloss * (p_i - q_j) */
static void pull(float twice, const float *p, int64_t P, int64_t i, const float *q, int64_t Q, int64_t j,
                 float *dp)
{
    for (int64_t k = 0; k < 3; k++) dp[k * P + i] += twice * (p[k * P + i] - q[k * Q + j]);
}

static void grad_thread(int thread, int n_threads, void *arg)
{
    const chamfer_call *c = arg;
    int64_t P = c->s->p, Q = c->s->q, b, end;
    float twice = 2 * *(const float *)c->call->in[0];

    ls_parallel_range(c->s->batch, thread, n_threads, &b, &end);
    for (; b < end; b++) {
        const float *p = (const float *)c->call->in[1] + b * 3 * P;
        const float *q = (const float *)c->call->in[2] + b * 3 * Q;
        const int32_t *ip = (const int32_t *)c->call->in[3] + b * P;
        const int32_t *iq = (const int32_t *)c->call->in[4] + b * Q;
        float *dp = (float *)c->call->out[0] + b * 3 * P;
        memset(dp, 0, sizeof(float) * 3 * (size_t)P);
        for (int64_t i = 0; i < P; i++)
            if (lsi_index_ok((double)ip[i], Q)) pull(twice, p, P, i, q, Q, ip[i], dp);
        for (int64_t j = 0; j < Q; j++)
            if (lsi_index_ok((double)iq[j], P)) pull(twice, p, P, iq[j], q, Q, j, dp);
    }
}

static void run_grad(void *state, const ls_call *call)
{
    chamfer_call c = {state, call};

    ls_parallel_run(c.s->threads, grad_thread, &c);
}

ls_status lsi_plan_chamfer_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    chamfer_state s = chamfer_of(dev, lsi_in(g, n, 1)->shape, lsi_in(g, n, 2)->shape);

    if (!lsi_ins_are(g, n, 0, 3, LS_F32, &ls_layout_plain) ||
        !lsi_outs_are(g, n, 0, 1, LS_F32, &ls_layout_plain))
        return LS_UNSUPPORTED;
    s.threads = lsi_threads_for(dev, s.batch * (s.p + s.q) * 3);
    return lsi_kernel_make(out, run_grad, &s, sizeof s, 0, "loop", err);
}
