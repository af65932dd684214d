/* all_finite.c: whether gradients are finite: one region over all tensors as if they lay behind one another.
 *
 * An infinity or a NaN is a number whose exponent has all bits set, so integers are compared, in a form that
 * compilers make vectors of. */
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

enum { BLOCK = 4096 };

typedef struct finite_state {
    int n, first, threads;
    int64_t total;
    int64_t begin[]; /* n + 1: where each tensor begins among all elements */
} finite_state;

typedef struct finite_call {
    const finite_state *s;
    const ls_call *call;
    int *found; /* per thread: the first tensor that is not finite; n: none */
} finite_call;

static bool is_finite(const uint32_t *x, int64_t n)
{
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t end = n - at < BLOCK ? n : at + BLOCK;
        uint32_t bad = 0;
        for (int64_t i = at; i < end; i++) bad |= (x[i] & 0x7f800000u) == 0x7f800000u;
        if (bad != 0) return false;
    }
    return true;
}

static void look(int thread, int n_threads, void *arg)
{
    const finite_call *c = arg;
    const finite_state *s = c->s;
    int64_t lo, hi;
    int i = 0;

    ls_parallel_range_grain(s->total, 64, thread, n_threads, &lo, &hi);
    for (; i < s->n; i++) {
        const int64_t from = lo > s->begin[i] ? lo : s->begin[i],
                      to = hi < s->begin[i + 1] ? hi : s->begin[i + 1];
        if (from < to && !is_finite((const uint32_t *)c->call->in[i] + (from - s->begin[i]), to - from))
            break;
    }
    c->found[thread] = i;
}

static void run(void *state, const ls_call *call)
{
    const finite_state *s = state;
    finite_call c = {s, call, call->scratch};
    int found = s->n;

    ls_parallel_run(s->threads, look, &c);
    for (int t = 0; t < s->threads; t++)
        if (c.found[t] < found) found = c.found[t];
    *(float *)call->out[0] = found < s->n ? (float)(s->first + found + 1) : 0;
}

ls_status lsi_plan_all_finite(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    const ls_all_finite_attr *a = n->attr;
    finite_state *s;

    if (!lsi_plain_f32(g, n)) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s + sizeof s->begin[0] * (size_t)(n->n_in + 1));
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory for a kernel");
    *s = (finite_state){.n = n->n_in, .first = a->first};
    for (int i = 0; i < n->n_in; i++) {
        s->begin[i] = s->total;
        s->total += ls_shape_count(lsi_in(g, n, i)->shape);
    }
    s->begin[n->n_in] = s->total;
    s->threads = lsi_threads_for(dev, s->total);
    *out = (ls_kernel){run, ls_free, s, sizeof(int) * (size_t)s->threads, "bits"};
    return LS_OK;
}
