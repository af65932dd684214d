/* replay.c: images that are shown from a pool, and rows that are stored in it: copies, cut among threads by
 * columns, so that each row is written in the order of the list. */
#include "ops/replay_rules.h"

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/random.h"

typedef struct rows_state {
    uint32_t stream;     /* replay */
    int64_t capacity, n; /* slots, images or rows */
    int64_t width;       /* of a row, in elements */
    int threads;
} rows_state;

typedef struct rows_call {
    const rows_state *s;
    const ls_call *call;
    ls_rng_key key;
} rows_call;

static bool is_empty(const void *filled, int64_t slot)
{
    return ((const float *)filled)[slot] == 0;
}

/* The same choice on every thread; the first one writes it down. */
static void show_thread(int thread, int n_threads, void *arg)
{
    const rows_call *c = arg;
    const rows_state *s = c->s;
    const float *pool = c->call->in[0], *filled = c->call->in[1], *x = c->call->in[2];
    float *shown = c->call->out[0];
    int32_t *slots = c->call->out[1], *places = c->call->out[2];
    int64_t lo, hi;

    ls_parallel_range_grain(s->width, 16, thread, n_threads, &lo, &hi);
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t place = (int64_t)c->key.sample_base + i;
        const lsi_replay_turn t = lsi_replay_choose(&c->key, s->stream, s->capacity, filled, is_empty, place);
        const float *from = t.swap ? pool + t.slot * s->width : x + i * s->width;
        if (hi > lo) memcpy(shown + i * s->width + lo, from + lo, (size_t)(hi - lo) * sizeof *shown);
        if (thread > 0) continue;
        slots[i] = (int32_t)t.slot;
        places[i] = t.slot >= 0 ? (int32_t)place : -1;
    }
}

static void run_replay(void *state, const ls_call *call)
{
    rows_call c = {.s = state, .call = call, .key = lsi_key_of(call->in[3])};

    ls_parallel_run(c.s->threads, show_thread, &c);
}

ls_status lsi_plan_replay(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_shape x = lsi_in(g, n, 2)->shape;
    const rows_state s = {.stream = ((const ls_replay_attr *)n->attr)->stream,
                          .capacity = lsi_in(g, n, 0)->shape.dim[0],
                          .n = x.dim[0],
                          .width = x.dim[1],
                          .threads = lsi_threads_for(dev, ls_shape_count(x))};

    if (!lsi_ins_are(g, n, 0, 3, LS_F32, &ls_layout_plain)) return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_replay, &s, sizeof s, 0, "copy", err);
}

static void store_thread(int thread, int n_threads, void *arg)
{
    const rows_call *c = arg;
    const rows_state *s = c->s;
    const float *rows = c->call->in[1];
    const int32_t *index = c->call->in[2];
    float *table = c->call->out[0]; /* the memory of in[0] */
    int64_t lo, hi;

    ls_parallel_range_grain(s->width, 16, thread, n_threads, &lo, &hi);
    for (int64_t i = 0; hi > lo && i < s->n; i++)
        if (index[i] >= 0 && index[i] < s->capacity)
            memcpy(table + index[i] * s->width + lo, rows + i * s->width + lo,
                   (size_t)(hi - lo) * sizeof *rows);
}

static void run_store_rows(void *state, const ls_call *call)
{
    rows_call c = {.s = state, .call = call};

    ls_parallel_run(c.s->threads, store_thread, &c);
}

ls_status lsi_plan_store_rows(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    const ls_shape rows = lsi_in(g, n, 1)->shape;
    const rows_state s = {.capacity = lsi_in(g, n, 0)->shape.dim[0],
                          .n = rows.dim[0],
                          .width = rows.dim[1],
                          .threads = lsi_threads_for(dev, ls_shape_count(rows))};

    if (!lsi_ins_are(g, n, 0, 2, LS_F32, &ls_layout_plain)) return LS_UNSUPPORTED;
    return lsi_kernel_make(out, run_store_rows, &s, sizeof s, 0, "copy", err);
}
