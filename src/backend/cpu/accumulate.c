/* accumulate.c: sums of gradients over batches, and values that become variables. */
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/optim.h"
#include "backend/cpu/planners.h"

typedef struct accumulate_state {
    const lsi_optim_table *table;
    int64_t n;
    int threads;
} accumulate_state;

typedef struct accumulate_call {
    const accumulate_state *s;
    const ls_call *call;
} accumulate_call;

static void accumulate_thread(int thread, int n_threads, void *arg)
{
    const accumulate_call *c = arg;
    const float *g = c->call->in[1], *keep = c->call->in[2], *weight = c->call->in[3];
    float *sum = c->call->out[0]; /* the memory of in[0] */
    int64_t lo, hi;

    ls_parallel_range_grain(c->s->n, 64, thread, n_threads, &lo, &hi);
    c->s->table->accumulate(sum + lo, g + lo, *keep != 0, *weight, hi - lo);
}

static void run_accumulate(void *state, const ls_call *call)
{
    accumulate_call c = {state, call};

    ls_parallel_run(c.s->threads, accumulate_thread, &c);
}

ls_status lsi_plan_accumulate(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    accumulate_state s = {.table = LSI_PICK(lsi_optim_avx512, lsi_optim_avx2),
                          .n = ls_shape_count(*ls_node_out_shape(g, n, 0))};

    if (s.table == NULL || !lsi_plain_f32(g, n)) return LS_UNSUPPORTED;
    s.threads = lsi_threads_for(dev, s.n);
    return lsi_kernel_make(out, run_accumulate, &s, sizeof s, 0, s.table->impl, err);
}

static void run_assign(void *state, const ls_call *call)
{
    const size_t bytes = *(const size_t *)state;

    if (bytes > 0) memcpy(call->out[0], call->in[1], bytes);
}

ls_status lsi_plan_assign(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_vinfo *v = lsi_out(g, n, 0);
    const size_t bytes = ls_layout_bytes(v->layout, v->dtype, v->shape);

    (void)dev;
    if (lsi_in(g, n, 1)->layout != &ls_layout_plain) return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_assign, &bytes, sizeof bytes, 0, "copy", err);
}
