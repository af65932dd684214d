/* gelu.c: GELU and its gradient of bf16 numbers, of which there are 65,536: a table has what pointwise.c
 * would compute for each of them, so that the bits are the same.
 *
 * The gradient is dy times a factor that depends on x alone.  Computing either takes an error function and
 * an exponential, several times as long as reading and writing the tensors; activations are so close
 * together that the part of a table that is in use stays in the innermost caches.  All other types are
 * left to lsi_plan_elementwise. */
#include "backend/cpu/gelu.h"

#include <pthread.h>

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/pointwise.h"

enum { NUMBERS = 65536, PIECE = 8192 };

static float values[NUMBERS], factors[NUMBERS]; /* by the bits of x */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    static const float one = 1;
    const lsi_pw_fn *fn = lsi_pw_avx512.fn;

    for (int i = 0; i < NUMBERS; i++) values[i] = ls_bf16_to_f32((uint16_t)i);
    fn[LS_PW_GELU_GRAD](factors, &one, values, 0, 1, NUMBERS, 0, 0);
    fn[LS_PW_GELU](values, values, values, 1, 1, NUMBERS, 0, 0);
}

typedef struct gelu_state {
    bool back;
    int64_t count;
    int threads;
} gelu_state;

typedef struct gelu_call {
    const gelu_state *s;
    const ls_call *call;
    ls_parallel_pieces pieces;
} gelu_call;

static void gelu_thread(int thread, int n_threads, void *arg)
{
    gelu_call *c = arg;
    uint16_t *y = c->call->out[0];

    (void)thread;
    (void)n_threads;
    for (int64_t at; (at = ls_parallel_take(&c->pieces) * PIECE) < c->s->count;) {
        const int64_t n = c->s->count - at < PIECE ? c->s->count - at : PIECE;
        if (c->s->back)
            lsi_times_looked_up_avx512(y + at, (const uint16_t *)c->call->in[0] + at,
                                       (const uint16_t *)c->call->in[1] + at, factors, n);
        else
            lsi_look_up_avx512(y + at, (const uint16_t *)c->call->in[0] + at, values, n);
    }
}

static void run(void *state, const ls_call *call)
{
    gelu_call c = {.s = state, .call = call};

    if (c.s->count > 0) ls_parallel_run(c.s->threads, gelu_thread, &c);
}

/* All bf16, of one shape and in one layout. */
static bool fits(const ls_graph *g, const ls_node *n)
{
    const ls_vinfo *y = lsi_out(g, n, 0);

    if (!lsi_has_avx512() || y->dtype != LS_BF16) return false;
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *x = lsi_in(g, n, i);
        if (x->dtype != LS_BF16 || x->layout != y->layout ||
            ls_shape_count(x->shape) != ls_shape_count(y->shape))
            return false;
    }
    return true;
}

ls_status lsi_plan_gelu(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    gelu_state s = {.back = n->op == &ls_op_gelu_grad, .count = ls_shape_count(lsi_out(g, n, 0)->shape)};

    if (!fits(g, n)) return lsi_plan_elementwise(dev, g, n, out, err);
    pthread_once(&once, fill_tables);
    s.threads = lsi_threads_for(dev, s.count);
    return lsi_kernel_make(out, run, &s, sizeof s, 0, "table", err);
}
