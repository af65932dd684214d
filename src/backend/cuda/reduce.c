/* reduce.c: sums, maxima along one dimension and their gradient, bias_act_grad: f32, bf16 and f16; in every
 * layout, maxima where the rest is in the same order as in a plain tensor. */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* -- sums ------------------------------------------------------------------------------------------------ */

typedef struct sum_state {
    const lsi_cuda_device *dev;
    lsi_cuda_sum_args args;
} sum_state;

static void run_sum(void *state, const ls_call *call)
{
    const sum_state *s = state;
    lsi_cuda_sum_args a = s->args;

    if (a.groups.splits > 1) a.groups.partial = call->scratch;
    a.x = call->in[0];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.sum(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy_sum(void *state)
{
    sum_state *s = state;

    lsi_cuda_tickets_free(s->dev, s->args.groups.tickets);
    ls_free(s);
}

typedef struct any_state {
    const lsi_cuda_device *dev;
    lsi_cuda_sum_any_args args;
} any_state;

static void run_any(void *state, const ls_call *call)
{
    const any_state *s = state;
    lsi_cuda_sum_any_args a = s->args;

    a.x = call->in[0];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.sum_any(lsi_cuda_stream_of(s->dev, call), &a));
}

/* The dimensions of x in memory, neighbours that are both summed or both kept as one; those of size 1 are of
 * no consequence. */
typedef struct runs {
    int n;
    int64_t size[LS_MAX_RANK];
    bool summed[LS_MAX_RANK];
} runs;

static runs runs_of(const ls_vinfo *x, unsigned axes)
{
    int order[LS_MAX_RANK];
    runs r = {0};

    lsi_cuda_memory_order(x->layout, x->shape, order);
    for (int i = 0; i < x->shape.rank; i++) {
        const bool summed = (axes & 1u << order[i]) != 0;
        const int64_t size = x->shape.dim[order[i]];
        if (size == 1) continue;
        if (r.n > 0 && r.summed[r.n - 1] == summed) {
            r.size[r.n - 1] *= size;
        } else {
            r.size[r.n] = size;
            r.summed[r.n++] = summed;
        }
    }
    return r;
}

/* As groups, if the sum is one over lines or columns.  Kept dimensions must be in the result's order. */
static bool groups_of(const runs *r, lsi_cuda_groups *g)
{
    const int64_t *s = r->size;

    *g = (lsi_cuda_groups){.outer = 1, .groups = 1, .inner = 1, .splits = 1};
    if (r->n == 0) return true;
    if (r->n == 1 && r->summed[0]) {
        g->inner = s[0];
    } else if (r->n == 1) {
        g->groups = s[0];
    } else if (r->n == 2 && !r->summed[0]) {
        g->groups = s[0];
        g->inner = s[1];
    } else if (r->n == 2) {
        g->columns = true;
        g->inner = s[0];
        g->groups = s[1];
    } else if (r->n == 3) {
        g->columns = !r->summed[0];
        g->outer = s[0];
        g->groups = g->columns ? s[2] : s[1];
        g->inner = g->columns ? s[1] : s[2];
    } else {
        return false;
    }
    return !g->columns || g->outer <= UINT16_MAX; /* blocks in the third dimension of a grid */
}

/* Whether the dimensions that stay are in the same order in x and in the plain result. */
static bool in_order(const ls_vinfo *x, unsigned axes)
{
    int order[LS_MAX_RANK], last = -1;

    lsi_cuda_memory_order(x->layout, x->shape, order);
    for (int i = 0; i < x->shape.rank; i++) {
        if (axes & 1u << order[i] || x->shape.dim[order[i]] == 1) continue;
        if (order[i] < last) return false;
        last = order[i];
    }
    return true;
}

static ls_status plan_any(const lsi_cuda_device *d, const ls_vinfo *x, unsigned axes, ls_kernel *out,
                          ls_err *err)
{
    any_state s = {.dev = d, .args = {.dtype = x->dtype, .count = 1, .terms = 1}};
    int64_t stride[LS_MAX_RANK];

    lsi_cuda_strides(x->layout, x->shape, stride);
    for (int i = 0; i < x->shape.rank; i++) {
        if (axes & 1u << i) {
            s.args.terms *= x->shape.dim[i];
            s.args.summed[s.args.n_summed] = x->shape.dim[i];
            s.args.summed_stride[s.args.n_summed++] = stride[i];
        } else {
            s.args.count *= x->shape.dim[i];
            s.args.kept[s.args.n_kept] = x->shape.dim[i];
            s.args.kept_stride[s.args.n_kept++] = stride[i];
        }
    }
    return lsi_cuda_kernel_make(out, run_any, &s, sizeof s, 0, "any", err);
}

ls_status lsi_cuda_plan_reduce_sum(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const ls_reduce_attr *attr = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    const runs r = runs_of(x, attr->axes);
    sum_state s = {.dev = lsi_cuda_of(dev), .args = {.dtype = x->dtype}};
    ls_status st = LS_OK;

    if (!lsi_cuda_computes(x->dtype) || y->layout != &ls_layout_plain || ls_shape_count(x->shape) > INT32_MAX)
        return LS_UNSUPPORTED;
    if (!in_order(x, attr->axes) || !groups_of(&r, &s.args.groups))
        return plan_any(s.dev, x, attr->axes, out, err);
    lsi_cuda_groups_split(s.dev, x->dtype, &s.args.groups);
    LS_TRY(lsi_cuda_tickets(s.dev, lsi_cuda_groups_tickets(&s.args.groups, x->dtype), &s.args.groups.tickets,
                            err));
    st = lsi_cuda_kernel_make(out, run_sum, &s, sizeof s, lsi_cuda_groups_scratch(&s.args.groups, 1),
                              s.args.groups.columns ? "columns" : "lines", err);
    if (st == LS_OK)
        out->destroy = destroy_sum;
    else
        lsi_cuda_tickets_free(s.dev, s.args.groups.tickets);
out:
    return st;
}

/* -- bias and activation --------------------------------------------------------------------------------- */

typedef struct bias_state {
    const lsi_cuda_device *dev;
    lsi_cuda_bias_act_grad_args args;
} bias_state;

static void run_bias(void *state, const ls_call *call)
{
    const bias_state *s = state;
    lsi_cuda_bias_act_grad_args a = s->args;

    if (a.groups.splits > 1) a.groups.partial = call->scratch;
    a.dy = call->in[0];
    a.y = call->in[1];
    a.dz = call->out[0];
    a.dbias = call->out[1];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.bias_act_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy_bias(void *state)
{
    bias_state *s = state;

    lsi_cuda_tickets_free(s->dev, s->args.groups.tickets);
    ls_free(s);
}

ls_status lsi_cuda_plan_bias_act_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                      ls_err *err)
{
    const ls_bias_act_attr *attr = n->attr;
    const ls_vinfo *dy = lsi_cuda_in(g, n, 0);
    const runs r = runs_of(dy, ~(1u << attr->axis));
    bias_state s = {.dev = lsi_cuda_of(dev),
                    .args = {.dtype = dy->dtype, .act = attr->act, .slope = (float)attr->slope}};
    ls_status st = LS_OK;

    if (!lsi_cuda_computes(dy->dtype) || ls_shape_count(dy->shape) > INT32_MAX ||
        lsi_cuda_in(g, n, 1)->layout != dy->layout || lsi_cuda_out(g, n, 0)->layout != dy->layout)
        return LS_UNSUPPORTED;
    if (!groups_of(&r, &s.args.groups)) return LS_UNSUPPORTED;
    lsi_cuda_groups_split(s.dev, dy->dtype, &s.args.groups);
    LS_TRY(lsi_cuda_tickets(s.dev, lsi_cuda_groups_tickets(&s.args.groups, dy->dtype), &s.args.groups.tickets,
                            err));
    st = lsi_cuda_kernel_make(out, run_bias, &s, sizeof s, lsi_cuda_groups_scratch(&s.args.groups, 1),
                              s.args.groups.columns ? "columns" : "lines", err);
    if (st == LS_OK)
        out->destroy = destroy_bias;
    else
        lsi_cuda_tickets_free(s.dev, s.args.groups.tickets);
out:
    return st;
}

/* -- maxima ---------------------------------------------------------------------------------------------- */

typedef struct max_state {
    const lsi_cuda_device *dev;
    union {
        lsi_cuda_max_args forward;
        lsi_cuda_max_grad_args backward;
    };
} max_state;

/* What lies around the axis in memory.  False where the rest is in another order there than in the plain
 * result. */
static bool split_at(const ls_vinfo *v, int axis, int64_t *outer, int64_t *length, int64_t *inner)
{
    int order[LS_MAX_RANK];
    bool behind = false;

    *outer = *inner = 1;
    *length = v->shape.dim[axis];
    lsi_cuda_memory_order(v->layout, v->shape, order);
    for (int i = 0; i < v->shape.rank; i++) {
        if (order[i] == axis)
            behind = true;
        else
            *(behind ? inner : outer) *= v->shape.dim[order[i]];
    }
    return in_order(v, 1u << axis);
}

/* Whether all but `but` is plain: only the map itself can have another layout. */
static bool others_plain(const ls_graph *g, const ls_node *n, int32_t but)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const int32_t v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (v != but && g->values[v]->layout != &ls_layout_plain) return false;
    }
    return true;
}

static void run_max(void *state, const ls_call *call)
{
    const max_state *s = state;
    lsi_cuda_max_args a = s->forward;

    a.x = call->in[0];
    a.out = call->out[0];
    a.index = call->out[1];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.max(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_reduce_max(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const ls_axis_attr *attr = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    max_state s = {.dev = lsi_cuda_of(dev)};

    s.forward = (lsi_cuda_max_args){.dtype = x->dtype};
    if (!split_at(x, attr->axis, &s.forward.outer, &s.forward.length, &s.forward.inner) ||
        !others_plain(g, n, n->in[0]) || !lsi_cuda_computes(x->dtype) ||
        ls_shape_count(x->shape) > INT32_MAX || (s.forward.inner > 1 && s.forward.outer > UINT16_MAX))
        return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_max, &s, sizeof s, 0, s.forward.inner == 1 ? "lines" : "columns",
                                err);
}

static void run_max_grad(void *state, const ls_call *call)
{
    const max_state *s = state;
    lsi_cuda_max_grad_args a = s->backward;

    a.dy = call->in[0];
    a.index = call->in[1];
    a.dx = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.max_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_reduce_max_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                        ls_err *err)
{
    const ls_reduce_max_grad_attr *attr = n->attr;
    const ls_vinfo *dx = lsi_cuda_out(g, n, 0);
    max_state s = {.dev = lsi_cuda_of(dev)};

    s.backward = (lsi_cuda_max_grad_args){.dtype = dx->dtype};
    if (!split_at(dx, attr->axis, &s.backward.outer, &s.backward.length, &s.backward.inner) ||
        !others_plain(g, n, n->out[0]) || !lsi_cuda_computes(dx->dtype) ||
        ls_shape_count(dx->shape) > INT32_MAX)
        return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_max_grad, &s, sizeof s, 0, "gather", err);
}
