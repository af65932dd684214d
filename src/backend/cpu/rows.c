/* rows.c: softmax, log softmax, layer norm, cross entropy and accuracy: every thread takes whole rows; what
 * is summed over rows meets in scratch in the order of threads. */
#include "backend/cpu/rows.h"

#include <math.h>

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "ops/index_rules.h"

typedef struct row_state {
    const lsi_row_table *table;
    ls_dtype type; /* of the rows */
    ls_dtype made; /* of cross_entropy_grad's result */
    int64_t rows, n;
    double eps;
    int threads;
} row_state;

typedef struct row_call {
    const row_state *s;
    const ls_call *call;
    void (*rows)(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi);
} row_call;

static void row_thread(int thread, int n_threads, void *arg)
{
    const row_call *c = arg;
    int64_t lo, hi;

    ls_parallel_range(c->s->rows, thread, n_threads, &lo, &hi);
    c->rows(c->s, c->call, thread, lo, hi);
}

static void run_rows(const row_state *s, const ls_call *call,
                     void (*rows)(const row_state *, const ls_call *, int, int64_t, int64_t))
{
    row_call c = {s, call, rows};

    ls_parallel_run(s->threads, row_thread, &c);
}

static row_state rows_of(const ls_device *dev, const ls_vinfo *v)
{
    const ls_shape x = v->shape;
    row_state s = {.table = LSI_PICK_STORED(v->dtype, lsi_rows), .type = v->dtype, .n = x.dim[x.rank - 1]};

    s.rows = s.n > 0 ? ls_shape_count(x) / s.n : 0;
    s.threads = lsi_threads_for(dev, ls_shape_count(x) * 4); /* a few operations per element */
    return s;
}

static const void *row_in(const row_state *s, const ls_call *call, int i, int64_t row)
{
    return (const char *)call->in[i] + (size_t)(row * s->n) * ls_dtype_size(s->type);
}
static void *row_out(const row_state *s, const ls_call *call, int k, int64_t row)
{
    return (char *)call->out[k] + (size_t)(row * s->n) * ls_dtype_size(s->type);
}

/* Of inputs, then outputs, those with a bit in `rows` are of the rows' type, the others f32; all plain. */
static bool rows_fit(const ls_graph *g, const ls_node *n, const row_state *s, unsigned rows)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        if (v->dtype != (rows & 1u << i ? s->type : LS_F32) || v->layout != &ls_layout_plain) return false;
    }
    return true;
}

/* -- softmax -------------------------------------------------------------------------------------------- */

static void softmax_rows(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi)
{
    (void)thread;
    for (; lo < hi; lo++)
        s->table->softmax((const float *)call->in[0] + lo * s->n, (float *)call->out[0] + lo * s->n, s->n);
}

static void log_softmax_rows(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi)
{
    (void)thread;
    for (; lo < hi; lo++)
        s->table->log_softmax((const float *)call->in[0] + lo * s->n, (float *)call->out[0] + lo * s->n,
                              s->n);
}

static void run_softmax(void *state, const ls_call *call)
{
    run_rows(state, call, softmax_rows);
}
static void run_log_softmax(void *state, const ls_call *call)
{
    run_rows(state, call, log_softmax_rows);
}

ls_status lsi_plan_softmax(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    row_state s = rows_of(dev, lsi_in(g, n, 0));
    bool logs = n->op == &ls_op_log_softmax;

    if (s.table == NULL || !lsi_plain_f32(g, n)) return LS_UNSUPPORTED;
    return lsi_kernel_make(out, logs ? run_log_softmax : run_softmax, &s, sizeof s, 0, s.table->impl, err);
}

/* -- layer norm -------------------------------------------------------------------------------------------
 */

static void norm_rows(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi)
{
    (void)thread;
    for (; lo < hi; lo++)
        s->table->norm(row_in(s, call, 0, lo), call->in[1], call->in[2], s->eps, row_out(s, call, 0, lo),
                       (float *)call->out[1] + lo, (float *)call->out[2] + lo, s->n);
}

static void run_norm(void *state, const ls_call *call)
{
    run_rows(state, call, norm_rows);
}

ls_status lsi_plan_layer_norm(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    row_state s = rows_of(dev, lsi_in(g, n, 0));

    if (s.table == NULL || !rows_fit(g, n, &s, 1u << 0 | 1u << 3) || s.n == 0) return LS_UNSUPPORTED;
    s.eps = ((const ls_norm_attr *)n->attr)->eps;
    return lsi_kernel_make(out, run_norm, &s, sizeof s, 0, s.table->impl, err);
}

static void norm_back_rows(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi)
{
    double *dgamma = (double *)call->scratch + 2 * thread * s->n, *dbeta = dgamma + s->n;

    memset(dgamma, 0, 2 * sizeof(double) * (size_t)s->n);
    for (; lo < hi; lo++)
        s->table->norm_back(row_in(s, call, 0, lo), row_in(s, call, 1, lo), call->in[2],
                            ((const float *)call->in[3])[lo], ((const float *)call->in[4])[lo],
                            row_out(s, call, 0, lo), dgamma, dbeta, s->n);
}

static void run_norm_back(void *state, const ls_call *call)
{
    const row_state *s = state;
    double *sums = call->scratch; /* of the first thread, to which the others' are added in their order */

    run_rows(s, call, norm_back_rows);
    for (int t = 1; t < s->threads; t++)
        for (int64_t i = 0; i < 2 * s->n; i++) sums[i] += sums[2 * t * s->n + i];
    for (int64_t i = 0; i < s->n; i++) {
        ((float *)call->out[1])[i] = (float)sums[i];
        ((float *)call->out[2])[i] = (float)sums[s->n + i];
    }
}

ls_status lsi_plan_layer_norm_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    row_state s = rows_of(dev, lsi_in(g, n, 1));

    if (n->n_in > 5 || s.table == NULL || !rows_fit(g, n, &s, 1u << 0 | 1u << 1 | 1u << 5) || s.n == 0)
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_norm_back, &s, sizeof s, 2 * sizeof(double) * (size_t)(s.threads * s.n),
                           s.table->impl, err);
}

/* -- cross entropy and accuracy ---------------------------------------------------------------------------
 */

static void entropy_rows(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi)
{
    const int32_t *labels = call->in[1];
    double *sum = (double *)call->scratch + thread;

    for (*sum = 0; lo < hi; lo++) {
        const void *x = row_in(s, call, 0, lo);
        double lse = s->table->softmax(x, (float *)call->out[1] + lo * s->n, s->n);
        *sum += lsi_index_ok((double)labels[lo], s->n) ? lse - (double)lsi_get_float(x, s->type, labels[lo])
                                                       : (double)NAN;
    }
}

static void run_entropy(void *state, const ls_call *call)
{
    const row_state *s = state;
    double sum = 0;

    run_rows(s, call, entropy_rows);
    for (int t = 0; t < s->threads; t++) sum += ((const double *)call->scratch)[t];
    *(float *)call->out[0] = (float)(sum / (double)s->rows);
}

static void entropy_back_rows(const row_state *s, const ls_call *call, int thread, int64_t lo, int64_t hi)
{
    const float scale = *(const float *)call->in[0] / (float)s->rows;
    const int32_t *labels = call->in[2];

    (void)thread;
    for (; lo < hi; lo++) {
        const float *p = (const float *)call->in[1] + lo * s->n;
        const int64_t at = lo * s->n;
        bool ok = lsi_index_ok((double)labels[lo], s->n);
        for (int64_t i = 0; i < s->n; i++)
            lsi_put_float(call->out[0], s->made, at + i, ok ? scale * p[i] : NAN);
        if (ok) lsi_put_float(call->out[0], s->made, at + labels[lo], scale * (p[labels[lo]] - 1));
    }
}

static void run_entropy_back(void *state, const ls_call *call)
{
    run_rows(state, call, entropy_back_rows);
}

ls_status lsi_plan_cross_entropy(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    row_state s = rows_of(dev, lsi_in(g, n, 0));

    if (s.table == NULL || s.rows == 0 || !lsi_ins_are(g, n, 0, 1, s.type, &ls_layout_plain) ||
        !lsi_outs_are(g, n, 0, 2, LS_F32, &ls_layout_plain))
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_entropy, &s, sizeof s, sizeof(double) * (size_t)s.threads, s.table->impl,
                           err);
}

ls_status lsi_plan_cross_entropy_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                      ls_err *err)
{
    row_state s = rows_of(dev, lsi_in(g, n, 1));

    s.made = lsi_out(g, n, 0)->dtype;
    if (s.table == NULL || s.rows == 0 || !lsi_ins_are(g, n, 0, 2, LS_F32, &ls_layout_plain) ||
        !(s.made == LS_F32 || s.made == LS_BF16 || s.made == LS_F16))
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_entropy_back, &s, sizeof s, 0, s.table->impl, err);
}

/* Whether x[label] is larger than everything before and no smaller than everything after it. */
static bool is_first_maximum(const row_state *s, const void *x, int64_t label)
{
    const float top = lsi_get_float(x, s->type, label);
    bool first = true;

    for (int64_t i = 0; i < label; i++) first &= lsi_get_float(x, s->type, i) < top;
    for (int64_t i = label; i < s->n; i++) first &= lsi_get_float(x, s->type, i) <= top;
    return first;
}

static void run_accuracy(void *state, const ls_call *call)
{
    const row_state *s = state;
    const int32_t *labels = call->in[1];
    int64_t right = 0;

    for (int64_t i = 0; i < s->rows; i++)
        if (lsi_index_ok((double)labels[i], s->n))
            right += is_first_maximum(s, row_in(s, call, 0, i), labels[i]);
    *(float *)call->out[0] = (float)right;
}

ls_status lsi_plan_accuracy(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    row_state s = rows_of(dev, lsi_in(g, n, 0));

    if (!(s.type == LS_F32 || s.type == LS_BF16 || s.type == LS_F16) ||
        !lsi_ins_are(g, n, 0, 1, s.type, &ls_layout_plain) ||
        !lsi_outs_are(g, n, 0, 1, LS_F32, &ls_layout_plain))
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_accuracy, &s, sizeof s, 0, "loop", err);
}
