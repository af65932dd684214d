/* strides.c: whatever moves elements without changing them, as strides: transposing, slicing, joining,
 * repeating, other layouts.  Every type; layouts without blocks. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* One piece of work: a move, or the turning of matrices. */
typedef struct piece {
    int input;            /* of the node */
    size_t in_at, out_at; /* bytes from where the tensors begin */
    bool turns;
    union {
        lsi_cuda_move_args move;
        lsi_cuda_turn_args turn;
    };
} piece;

typedef struct strides_state {
    const lsi_cuda_device *dev;
    int n;
    piece piece[];
} strides_state;

static void run(void *state, const ls_call *call)
{
    const strides_state *s = state;
    lsi_cuda_stream stream = lsi_cuda_stream_of(s->dev, call);
    int code = 0;

    for (int i = 0; i < s->n && code == 0; i++) {
        const piece *p = &s->piece[i];
        const char *in = (const char *)call->in[p->input] + p->in_at;
        char *out = (char *)call->out[0] + p->out_at;
        if (p->turns) {
            lsi_cuda_turn_args a = p->turn;
            a.in = in;
            a.out = out;
            code = s->dev->api->launch.turn(stream, &a);
        } else {
            lsi_cuda_move_args a = p->move;
            a.in = in;
            a.out = out;
            code = s->dev->api->launch.move(stream, &a);
        }
    }
    lsi_cuda_launched(s->dev, call, code);
}

/* -- simpler forms of the same move ------------------------------------------------------------------------
 */

/* Dimensions in the order of the output's memory, those of size 1 left out, neighbours that follow each other
 * on both sides made one. */
static void simplify(lsi_cuda_move_args *m)
{
    int n = 0;

    for (int i = 0; i < m->rank; i++) { /* sorted by the output's strides, which all differ */
        int k = n;
        const int64_t dim = m->dim[i], from = m->from[i], to = m->to[i];
        if (dim == 1) continue;
        for (; k > 0 && m->to[k - 1] < to; k--) {
            m->dim[k] = m->dim[k - 1];
            m->from[k] = m->from[k - 1];
            m->to[k] = m->to[k - 1];
        }
        m->dim[k] = dim;
        m->from[k] = from;
        m->to[k] = to;
        n++;
    }
    m->rank = n > 0 ? 1 : 0;
    for (int i = 1; i < n; i++) {
        const int last = m->rank - 1;
        if (m->from[last] == m->from[i] * m->dim[i] && m->to[last] == m->to[i] * m->dim[i]) {
            m->dim[last] *= m->dim[i];
        } else {
            m->dim[m->rank] = m->dim[i];
            m->rank++;
        }
        m->from[m->rank - 1] = m->from[i];
        m->to[m->rank - 1] = m->to[i];
    }
    if (n == 0) {
        m->rank = 1;
        m->dim[0] = m->from[0] = m->to[0] = 1;
    }
}

/* Several elements at once, where rows lie together on both sides. */
static void widen(piece *p)
{
    lsi_cuda_move_args *m = &p->move;
    const int last = m->rank - 1;

    while (m->size < 16 && m->from[last] == 1 && m->to[last] == 1 && m->dim[last] % 2 == 0) {
        const size_t wide = 2 * (size_t)m->size;
        if (p->in_at % wide != 0 || p->out_at % wide != 0) return;
        for (int i = 0; i < last; i++)
            if (m->from[i] % 2 != 0 || m->to[i] % 2 != 0) return;
        for (int i = 0; i < last; i++) {
            m->from[i] /= 2;
            m->to[i] /= 2;
        }
        m->dim[last] /= 2;
        m->size *= 2;
    }
}

/* Matrices that are turned: rows lie together in the input along one dimension, in the output along another.
 */
static void turn(piece *p)
{
    const lsi_cuda_move_args m = p->move;
    const int last = m.rank - 1, row = last - 1;

    if (m.rank < 2 || m.rank > 3 || m.size > 8 || m.to[last] != 1 || m.from[row] != 1 || m.from[last] <= 1)
        return;
    p->turns = true;
    p->turn = (lsi_cuda_turn_args){.size = m.size,
                                   .batch = m.rank == 3 ? m.dim[0] : 1,
                                   .rows = m.dim[row],
                                   .columns = m.dim[last],
                                   .out_batch = m.rank == 3 ? m.to[0] : 0,
                                   .out_row = m.to[row],
                                   .in_batch = m.rank == 3 ? m.from[0] : 0,
                                   .in_column = m.from[last]};
}

/* -- ops ---------------------------------------------------------------------------------------------------
 */

static ls_status begin(strides_state **out, const ls_device *dev, const ls_graph *g, const ls_node *n,
                       int pieces, ls_err *err)
{
    if (lsi_cuda_out(g, n, 0)->layout->block != 0) return LS_UNSUPPORTED;
    for (int i = 0; i < n->n_in; i++)
        if (lsi_cuda_in(g, n, i)->layout->block != 0) return LS_UNSUPPORTED;
    *out = ls_alloc(LS_MEM_PLAN, sizeof **out + sizeof(*out)->piece[0] * (size_t)pieces);
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    (*out)->dev = lsi_cuda_of(dev);
    return LS_OK;
}

/* Adds the move of a block of `shape` whose axis i goes in steps of from[i] and to[i], from element in_at to
 * out_at. */
static void add(strides_state *s, int input, ls_dtype t, ls_shape shape, const int64_t *from,
                const int64_t *to, int64_t in_at, int64_t out_at)
{
    piece *p = &s->piece[s->n];

    if (ls_shape_count(shape) == 0) return;
    *p = (piece){.input = input,
                 .in_at = (size_t)in_at * ls_dtype_size(t),
                 .out_at = (size_t)out_at * ls_dtype_size(t),
                 .move = {.size = (int)ls_dtype_size(t), .rank = shape.rank}};
    for (int i = 0; i < shape.rank; i++) {
        p->move.dim[i] = shape.dim[i];
        p->move.from[i] = from[i];
        p->move.to[i] = to[i];
    }
    simplify(&p->move);
    widen(p);
    turn(p);
    s->n++;
}

static void end(strides_state *s, ls_kernel *out, const char *impl)
{
    *out = (ls_kernel){run, ls_free, s, 0, impl};
}

ls_status lsi_cuda_plan_transpose(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    const ls_transpose_attr *a = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    const ls_strides xs = ls_layout_strides(x->layout, x->shape), ys = ls_layout_strides(y->layout, y->shape);
    int64_t from[LS_MAX_RANK];
    strides_state *s;
    ls_status st = begin(&s, dev, g, n, 1, err);

    if (st != LS_OK) return st;
    for (int i = 0; i < y->shape.rank; i++) from[i] = xs.of[a->perm[i]];
    add(s, 0, y->dtype, y->shape, from, ys.of, 0, 0);
    end(s, out, "transpose");
    return LS_OK;
}

ls_status lsi_cuda_plan_slice(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    const ls_slice_attr *a = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    const ls_strides xs = ls_layout_strides(x->layout, x->shape), ys = ls_layout_strides(y->layout, y->shape);
    strides_state *s;
    ls_status st = begin(&s, dev, g, n, 1, err);

    if (st != LS_OK) return st;
    add(s, 0, y->dtype, y->shape, xs.of, ys.of, a->start * xs.of[a->axis], 0);
    end(s, out, "slice");
    return LS_OK;
}

ls_status lsi_cuda_plan_concat(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const ls_axis_attr *a = n->attr;
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);
    const ls_strides ys = ls_layout_strides(y->layout, y->shape);
    int64_t at = 0;
    strides_state *s;
    ls_status st = begin(&s, dev, g, n, n->n_in, err);

    if (st != LS_OK) return st;
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *x = lsi_cuda_in(g, n, i);
        const ls_strides xs = ls_layout_strides(x->layout, x->shape);
        add(s, i, y->dtype, x->shape, xs.of, ys.of, 0, at * ys.of[a->axis]);
        at += x->shape.dim[a->axis];
    }
    end(s, out, "concat");
    return LS_OK;
}

ls_status lsi_cuda_plan_broadcast_to(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                     ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    const ls_strides xs = ls_layout_strides(x->layout, x->shape), ys = ls_layout_strides(y->layout, y->shape);
    const int more = y->shape.rank - x->shape.rank;
    int64_t from[LS_MAX_RANK] = {0};
    strides_state *s;
    ls_status st = begin(&s, dev, g, n, 1, err);

    if (st != LS_OK) return st;
    for (int i = 0; i < x->shape.rank; i++) from[more + i] = x->shape.dim[i] == 1 ? 0 : xs.of[i];
    add(s, 0, y->dtype, y->shape, from, ys.of, 0, 0);
    end(s, out, "broadcast");
    return LS_OK;
}

/* Also copies and assignments: the same elements, in whatever layouts. */
ls_status lsi_cuda_plan_reorder(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const int input = n->op == &ls_op_assign ? 1 : 0;
    const ls_vinfo *x = lsi_cuda_in(g, n, input), *y = lsi_cuda_out(g, n, 0);
    const ls_strides xs = ls_layout_strides(x->layout, x->shape), ys = ls_layout_strides(y->layout, y->shape);
    strides_state *s;
    ls_status st = begin(&s, dev, g, n, 1, err);

    if (st != LS_OK) return st;
    add(s, input, y->dtype, y->shape, xs.of, ys.of, 0, 0);
    end(s, out, n->op->name);
    return LS_OK;
}
