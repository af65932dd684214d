/* move.c: ops that move elements without computing: slice, concat, fill, cast, rows by index. */
#include "backend/cpu/move.h"

#include <math.h>

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "ops/index_rules.h"
#include "ops/shape_rules.h"

/* -- slice and concat -------------------------------------------------------------------------------------
 */

/* `outer` runs of equal length, at different distances in source and result. */
typedef struct piece {
    int64_t run, from_step, to_step, from_start, to_start; /* bytes */
} piece;

typedef struct pieces {
    int64_t outer;
    int n, threads;
    piece piece[];
} pieces;

typedef struct pieces_call {
    const pieces *s;
    const ls_call *call;
} pieces_call;

/* Result rows are cut among threads; with few of them, the bytes of every row are. */
static void pieces_thread(int thread, int n_threads, void *arg)
{
    const pieces_call *c = arg;
    int64_t o, end, lo, hi;
    bool by_rows = c->s->outer >= 2 * n_threads;

    ls_parallel_range(c->s->outer, by_rows ? thread : 0, by_rows ? n_threads : 1, &o, &end);
    for (; o < end; o++)
        for (int i = 0; i < c->s->n; i++) {
            const piece *p = &c->s->piece[i];
            const char *from = (const char *)c->call->in[i] + p->from_start + o * p->from_step;
            char *to = (char *)c->call->out[0] + p->to_start + o * p->to_step;
            ls_parallel_range_grain(p->run, 64, by_rows ? 0 : thread, by_rows ? 1 : n_threads, &lo, &hi);
            memcpy(to + lo, from + lo, (size_t)(hi - lo));
        }
}

static void run_pieces(void *state, const ls_call *call)
{
    pieces_call c = {state, call};

    ls_parallel_run(c.s->threads, pieces_thread, &c);
}

static ls_status make_pieces(ls_device *dev, const ls_graph *g, const ls_node *n, int64_t outer, pieces **out,
                             ls_err *err)
{
    *out = ls_alloc(LS_MEM_PLAN, sizeof **out + (size_t)n->n_in * sizeof(piece));
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory for a kernel");
    (*out)->outer = outer;
    (*out)->n = n->n_in;
    (*out)->threads = lsi_threads_for(dev, ls_shape_count(lsi_out(g, n, 0)->shape));
    return LS_OK;
}

static bool all_plain(const ls_graph *g, const ls_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (lsi_in(g, n, i)->layout != &ls_layout_plain) return false;
    return lsi_out(g, n, 0)->layout == &ls_layout_plain;
}

/* The inputs, or the first n of them, are of the result's type. */
static bool same_type(const ls_graph *g, const ls_node *n, int inputs)
{
    for (int i = 0; i < inputs; i++)
        if (lsi_in(g, n, i)->dtype != lsi_out(g, n, 0)->dtype) return false;
    return true;
}

ls_status lsi_plan_slice(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_slice_attr *a = n->attr;
    lsi_split x = lsi_split_at(lsi_in(g, n, 0)->shape, a->axis);
    int64_t size = (int64_t)ls_dtype_size(lsi_in(g, n, 0)->dtype) * x.inner;
    pieces *s;
    ls_status st;

    if (!all_plain(g, n) || !same_type(g, n, 1)) return LS_UNSUPPORTED;
    st = make_pieces(dev, g, n, x.outer, &s, err);
    if (st != LS_OK) return st;
    s->piece[0] = (piece){a->length * size, x.length * size, a->length * size, a->start * size, 0};
    *out = (ls_kernel){run_pieces, ls_free, s, 0, "memcpy"};
    return LS_OK;
}

ls_status lsi_plan_concat(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    int axis = ((const ls_axis_attr *)n->attr)->axis;
    lsi_split y = lsi_split_at(lsi_out(g, n, 0)->shape, axis);
    int64_t size = (int64_t)ls_dtype_size(lsi_out(g, n, 0)->dtype) * y.inner, start = 0;
    pieces *s;
    ls_status st;

    if (!all_plain(g, n) || !same_type(g, n, n->n_in)) return LS_UNSUPPORTED;
    st = make_pieces(dev, g, n, y.outer, &s, err);
    if (st != LS_OK) return st;
    for (int i = 0; i < n->n_in; i++) {
        int64_t run = lsi_in(g, n, i)->shape.dim[axis] * size;
        s->piece[i] = (piece){run, run, y.length * size, 0, start};
        start += run;
    }
    *out = (ls_kernel){run_pieces, ls_free, s, 0, "memcpy"};
    return LS_OK;
}

/* -- runs of elements: fill, cast -------------------------------------------------------------------------
 */

typedef struct elements {
    const lsi_move_table *table;
    int64_t count;
    ls_dtype from, to;
    float value;
    uint16_t bits; /* of the value, in 16 bits */
    int threads;
} elements;

typedef struct elements_call {
    const elements *s;
    const void *x;
    void *y;
} elements_call;

static bool is_16_bit(ls_dtype t)
{
    return t == LS_BF16 || t == LS_F16;
}

static void fill_thread(int thread, int n_threads, void *arg)
{
    const elements_call *c = arg;
    float *y = c->y;
    int64_t lo, hi;

    ls_parallel_range_grain(c->s->count, 64, thread, n_threads, &lo, &hi);
    if (c->s->to == LS_F32)
        for (; lo < hi; lo++) y[lo] = c->s->value;
    else
        for (; lo < hi; lo++) ((uint16_t *)c->y)[lo] = c->s->bits;
}

static void run_fill(void *state, const ls_call *call)
{
    elements_call c = {state, NULL, call->out[0]};

    ls_parallel_run(c.s->threads, fill_thread, &c);
}

ls_status lsi_plan_fill(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_fill_attr *a = n->attr;
    elements s = {.count = ls_shape_count(a->shape), .to = lsi_out(g, n, 0)->dtype, .value = (float)a->value};

    if (!(s.to == LS_F32 || is_16_bit(s.to)) || lsi_out(g, n, 0)->layout != &ls_layout_plain)
        return LS_UNSUPPORTED;
    if (s.to != LS_F32) lsi_put_float(&s.bits, s.to, 0, s.value);
    s.threads = lsi_threads_for(dev, s.count);
    return lsi_kernel_make(out, run_fill, &s, sizeof s, 0, "loop", err);
}

static void cast_thread(int thread, int n_threads, void *arg)
{
    const elements_call *c = arg;
    const elements *s = c->s;
    int64_t lo, hi;

    ls_parallel_range_grain(s->count, 64, thread, n_threads, &lo, &hi);
    if (s->from == LS_BF16)
        s->table->bf16_to_f32((float *)c->y + lo, (const uint16_t *)c->x + lo, hi - lo);
    else if (s->from == LS_F16)
        s->table->f16_to_f32((float *)c->y + lo, (const uint16_t *)c->x + lo, hi - lo);
    else if (s->to == LS_BF16)
        s->table->bf16_from_f32((uint16_t *)c->y + lo, (const float *)c->x + lo, hi - lo);
    else
        s->table->f16_from_f32((uint16_t *)c->y + lo, (const float *)c->x + lo, hi - lo);
}

static void run_cast(void *state, const ls_call *call)
{
    elements_call c = {state, call->in[0], call->out[0]};

    ls_parallel_run(c.s->threads, cast_thread, &c);
}

ls_status lsi_plan_cast(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_in(g, n, 0), *y = lsi_out(g, n, 0);
    elements s = {.table = LSI_PICK(lsi_move_avx512, lsi_move_avx2),
                  .count = ls_shape_count(x->shape),
                  .from = x->dtype,
                  .to = y->dtype};

    if (s.table == NULL || x->layout != y->layout ||
        !((s.from == LS_F32 && is_16_bit(s.to)) || (is_16_bit(s.from) && s.to == LS_F32)))
        return LS_UNSUPPORTED;
    s.threads = lsi_threads_for(dev, s.count);
    return lsi_kernel_make(out, run_cast, &s, sizeof s, 0, s.table->impl, err);
}

/* -- rows by index ----------------------------------------------------------------------------------------
 */

typedef struct indexed {
    int64_t n, rows, width; /* indices; rows of the table; floats of a row */
    int threads;
} indexed;

typedef struct indexed_call {
    const indexed *s;
    const float *x;
    const int32_t *index;
    float *y;
} indexed_call;

static void gather_thread(int thread, int n_threads, void *arg)
{
    const indexed_call *c = arg;
    int64_t D = c->s->width, i, end;

    ls_parallel_range(c->s->n, thread, n_threads, &i, &end);
    for (; i < end; i++) {
        float *y = c->y + i * D;
        if (lsi_index_ok((double)c->index[i], c->s->rows))
            memcpy(y, c->x + c->index[i] * D, (size_t)D * sizeof(float));
        else
            for (int64_t k = 0; k < D; k++) y[k] = NAN;
    }
}

/* Threads share the columns, so that each row's terms are added in the order of the indices. */
static void scatter_thread(int thread, int n_threads, void *arg)
{
    const indexed_call *c = arg;
    int64_t D = c->s->width, lo, hi;

    ls_parallel_range_grain(D, 16, thread, n_threads, &lo, &hi);
    if (lo >= hi) return;
    for (int64_t r = 0; r < c->s->rows; r++) memset(c->y + r * D + lo, 0, (size_t)(hi - lo) * sizeof(float));
    for (int64_t i = 0; i < c->s->n; i++) {
        if (!lsi_index_ok((double)c->index[i], c->s->rows)) continue;
        for (int64_t k = lo; k < hi; k++) c->y[c->index[i] * D + k] += c->x[i * D + k];
    }
}

static void run_gather(void *state, const ls_call *call)
{
    indexed_call c = {state, call->in[0], call->in[1], call->out[0]};

    ls_parallel_run(c.s->threads, gather_thread, &c);
}
static void run_scatter(void *state, const ls_call *call)
{
    indexed_call c = {state, call->in[0], call->in[1], call->out[0]};

    ls_parallel_run(c.s->threads, scatter_thread, &c);
}

ls_status lsi_plan_indexed_rows(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    bool gather = n->op == &ls_op_gather_rows;
    ls_shape x = lsi_in(g, n, 0)->shape, y = lsi_out(g, n, 0)->shape;
    indexed s = {.n = lsi_in(g, n, 1)->shape.dim[0],
                 .rows = gather ? x.dim[0] : y.dim[0],
                 .width = x.dim[1],
                 .threads = lsi_threads_for(dev, ls_shape_count(x) + ls_shape_count(y))};

    if (!all_plain(g, n) || lsi_in(g, n, 0)->dtype != LS_F32 || !same_type(g, n, 1)) return LS_UNSUPPORTED;
    return lsi_kernel_make(out, gather ? run_gather : run_scatter, &s, sizeof s, 0, "rows", err);
}
