/* transpose.c: permutations of dimensions.
 *
 * Dimensions that stay neighbours are merged.  What is left either keeps its last dimension, and rows are
 * copied, or has a last dimension of the input and another one of the result, between which small squares are
 * turned in registers; all other dimensions are counted through. */
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/move.h"
#include "backend/cpu/planners.h"

typedef struct axis {
    int64_t n, from, to; /* size; elements from one entry to the next in the input and in the result */
} axis;

typedef struct transpose_state {
    const lsi_move_table *table;
    int rank; /* axes that are counted through */
    axis outer[LS_MAX_RANK];
    axis a, b; /* a is last in the result, b in the input; equal when rows are copied (b.n == 1) */
    int64_t count_outer;
    size_t size; /* bytes of an element: 4 or 2 */
    int threads;
} transpose_state;

typedef struct transpose_call {
    const transpose_state *s;
    const char *x;
    char *y;
} transpose_call;

/* y[b * to + a] = x[a * from + b] of elements of 2 bytes. */
static void turn_halves(uint16_t *y, int64_t to, const uint16_t *x, int64_t from, int64_t na, int64_t nb)
{
    for (int64_t first = 0; first < na; first += 32) {
        const int64_t end = na - first < 32 ? na : first + 32;
        for (int64_t b = 0; b < nb; b++)
            for (int64_t a = first; a < end; a++) y[b * to + a] = x[a * from + b];
    }
}

static void transpose_thread(int thread, int n_threads, void *arg)
{
    const transpose_call *c = arg;
    const transpose_state *s = c->s;
    int64_t strips = (s->b.n + 63) / 64, i, end; /* 64 entries of b at a time */

    ls_parallel_range(s->count_outer * strips, thread, n_threads, &i, &end);
    for (; i < end; i++) {
        int64_t lo = i % strips * 64, n = s->b.n - lo < 64 ? s->b.n - lo : 64, rest = i / strips;
        int64_t from = lo * s->b.from, to = lo * s->b.to;
        for (int k = s->rank - 1; k >= 0; k--) {
            from += rest % s->outer[k].n * s->outer[k].from;
            to += rest % s->outer[k].n * s->outer[k].to;
            rest /= s->outer[k].n;
        }
        char *y = c->y + to * (int64_t)s->size;
        const char *x = c->x + from * (int64_t)s->size;
        if (s->a.from == 1)
            memcpy(y, x, (size_t)s->a.n * s->size);
        else if (s->size == 2)
            turn_halves((uint16_t *)(void *)y, s->b.to, (const uint16_t *)(const void *)x, s->a.from, s->a.n,
                        n);
        else
            s->table->transpose((float *)(void *)y, s->b.to, (const float *)(const void *)x, s->a.from,
                                s->a.n, n);
    }
}

static void run(void *state, const ls_call *call)
{
    transpose_call c = {state, call->in[0], call->out[0]};

    if (c.s->count_outer * c.s->a.n * c.s->b.n > 0) ls_parallel_run(c.s->threads, transpose_thread, &c);
}

/* The axes in the order of the result, merged; returns how many. */
static int merged_axes(ls_shape x, const int *perm, axis *out)
{
    int64_t stride[LS_MAX_RANK], step = 1;
    int n = 0;

    for (int i = x.rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x.dim[i];
    }
    for (int i = 0; i < x.rank; i++) {
        axis a = {x.dim[perm[i]], stride[perm[i]], 0};
        if (a.n == 1) continue;
        if (n > 0 && out[n - 1].from == a.from * a.n) {
            out[n - 1].n *= a.n;
            out[n - 1].from = a.from;
        } else {
            out[n++] = a;
        }
    }
    step = 1;
    for (int i = n - 1; i >= 0; i--) {
        out[i].to = step;
        step *= out[i].n;
    }
    return n;
}

ls_status lsi_plan_transpose(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_transpose_attr *attr = n->attr;
    const ls_vinfo *x = lsi_in(g, n, 0);
    transpose_state s = {.table = LSI_PICK(lsi_move_avx512, lsi_move_avx2),
                         .b = {1, 0, 0},
                         .count_outer = 1,
                         .size = ls_dtype_size(x->dtype),
                         .threads = lsi_threads_for(dev, ls_shape_count(x->shape))};
    axis axes[LS_MAX_RANK];
    int n_axes = merged_axes(x->shape, attr->perm, axes);

    if (s.table == NULL || (s.size != 4 && s.size != 2) || x->layout != &ls_layout_plain || n_axes == 0 ||
        lsi_out(g, n, 0)->layout != &ls_layout_plain)
        return LS_UNSUPPORTED;
    s.a = axes[n_axes - 1];
    for (int i = 0; i < n_axes - 1; i++) {
        if (axes[i].from == 1 && s.a.from != 1) {
            s.b = axes[i];
        } else {
            s.outer[s.rank++] = axes[i];
            s.count_outer *= axes[i].n;
        }
    }
    return lsi_kernel_make(out, run, &s, sizeof s, 0, s.table->impl, err);
}
