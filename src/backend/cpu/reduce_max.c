/* reduce_max.c: the maximum along an axis with its position, and the gradient, which puts dy there. */
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/search.h"
#include "ops/shape_rules.h"

#define COLUMNS 256 /* done at a time, so that few columns still make work for several threads */

typedef struct max_state {
    const lsi_search_table *table;
    lsi_split x;
    int threads;
} max_state;

typedef struct max_call {
    const max_state *s;
    const float *x;
    float *y;
    int32_t *index;
} max_call;

static void max_thread(int thread, int n_threads, void *arg)
{
    const max_call *c = arg;
    const lsi_split *x = &c->s->x;
    int64_t strips = (x->inner + COLUMNS - 1) / COLUMNS, i, end;

    ls_parallel_range(x->outer * strips, thread, n_threads, &i, &end);
    for (; i < end; i++) {
        int64_t outer = i / strips, lo = i % strips * COLUMNS, at = outer * x->inner + lo;
        const float *from = c->x + outer * x->length * x->inner + lo;
        if (x->inner == 1)
            c->y[at] = c->s->table->row_max(from, x->length, c->index + at);
        else
            c->s->table->column_max(from, x->length, x->inner,
                                    x->inner - lo < COLUMNS ? x->inner - lo : COLUMNS, c->y + at,
                                    c->index + at);
    }
}

static void run_max(void *state, const ls_call *call)
{
    max_call c = {state, call->in[0], call->out[0], call->out[1]};

    ls_parallel_run(c.s->threads, max_thread, &c);
}

ls_status lsi_plan_reduce_max(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    const ls_vinfo *x = lsi_in(g, n, 0);
    max_state s = {.table = LSI_PICK(lsi_search_avx512, lsi_search_avx2),
                   .x = lsi_split_at(x->shape, ((const ls_axis_attr *)n->attr)->axis),
                   .threads = lsi_threads_for(dev, ls_shape_count(x->shape))};

    if (s.table == NULL || !lsi_ins_are(g, n, 0, 1, LS_F32, &ls_layout_plain) ||
        lsi_out(g, n, 0)->layout != &ls_layout_plain || s.x.length > LSI_SEARCH_MAX)
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_max, &s, sizeof s, 0, s.table->impl, err);
}

static void grad_thread(int thread, int n_threads, void *arg)
{
    const max_call *c = arg; /* x is dy here, y is dx */
    const lsi_split *x = &c->s->x;
    int64_t size = x->length * x->inner, o, end;

    ls_parallel_range(x->outer, thread, n_threads, &o, &end);
    for (; o < end; o++) {
        float *dx = c->y + o * size;
        memset(dx, 0, (size_t)size * sizeof(float));
        for (int64_t i = 0; i < x->inner; i++) {
            int64_t at = o * x->inner + i, k = c->index[at];
            if (k >= 0 && k < x->length) dx[k * x->inner + i] = c->x[at];
        }
    }
}

static void run_grad(void *state, const ls_call *call)
{
    max_call c = {state, call->in[0], call->out[0], call->in[1]};

    ls_parallel_run(c.s->threads, grad_thread, &c);
}

ls_status lsi_plan_reduce_max_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const ls_vinfo *dx = lsi_out(g, n, 0);
    max_state s = {.x = lsi_split_at(dx->shape, ((const ls_reduce_max_grad_attr *)n->attr)->axis),
                   .threads = lsi_threads_for(dev, ls_shape_count(dx->shape))};

    if (!lsi_ins_are(g, n, 0, 1, LS_F32, &ls_layout_plain) || dx->layout != &ls_layout_plain)
        return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_grad, &s, sizeof s, 0, "rows", err);
}
