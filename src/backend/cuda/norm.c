/* norm.c: batch, instance and layer norm, both ways: f32, bf16 and f16; batch and instance norm in both
 * layouts with every fused form.  Layer norm's gradient has a kernel for rows of up to LSI_LAYER_NORM_WIDTH.
 */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* -- batch and instance norm ------------------------------------------------------------------------------
 */

typedef struct norm_state {
    const lsi_cuda_device *dev;
    bool batch;  /* batch norm; else instance norm */
    bool tracks; /* batch norm that moves running statistics on: all but those computed again */
    bool by_x;   /* backward: what the activation let through shows in x, and y need not be read */
    size_t partial_at;
    union {
        lsi_cuda_norm_args forward;
        lsi_cuda_norm_grad_args backward;
    };
} norm_state;

static lsi_cuda_groups with_scratch(lsi_cuda_groups g, const ls_call *call, size_t at)
{
    if (g.splits > 1) g.partial = (float *)((char *)call->scratch + at);
    return g;
}

static void run_norm(void *state, const ls_call *call)
{
    const norm_state *s = state;
    lsi_cuda_norm_args a = s->forward;

    a.groups = with_scratch(a.groups, call, 0);
    a.x = call->in[0];
    a.y = call->out[0];
    a.mean = call->out[1];
    a.invstd = call->out[2];
    if (s->batch) {
        a.gamma = call->in[1];
        a.beta = call->in[2];
    }
    if (s->tracks) {
        a.running_mean = call->in[3];
        a.running_var = call->in[4];
        a.new_mean = call->out[3];
        a.new_var = call->out[4];
    }
    if (a.attr.residual) a.residual = call->in[s->tracks ? 5 : s->batch ? 3 : 1];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.norm(lsi_cuda_stream_of(s->dev, call), &a));
}

static void run_norm_grad(void *state, const ls_call *call)
{
    const norm_state *s = state;
    const int stats = s->batch ? 3 : 2; /* where mean and invstd begin among the inputs */
    lsi_cuda_norm_grad_args a = s->backward;

    a.groups = with_scratch(a.groups, call, s->partial_at);
    a.factors = call->scratch;
    a.dy = call->in[0];
    a.x = call->in[1];
    a.mean = call->in[stats];
    a.invstd = call->in[stats + 1];
    if (a.attr.act != LS_ACT_NONE && !s->by_x) a.y = call->in[stats + 2];
    a.by_x = s->by_x;
    a.dx = call->out[0];
    if (s->batch) {
        if (s->by_x) a.beta = call->in[stats + 2];
        a.gamma = call->in[2];
        a.dgamma = call->out[1];
        a.dbeta = call->out[2];
    }
    if (a.attr.residual) a.dresidual = call->out[s->batch ? 3 : 1];
    if (a.attr.sums) a.more = call->in[stats + (a.attr.act != LS_ACT_NONE ? 3 : 2)];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.norm_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy_norm(void *state)
{
    norm_state *s = state;

    lsi_cuda_tickets_free(s->dev, s->forward.groups.tickets); /* at the same place in both arguments */
    ls_free(s);
}
_Static_assert(offsetof(lsi_cuda_norm_args, groups) == offsetof(lsi_cuda_norm_grad_args, groups),
               "destroy_norm reads the one as the other");

/* Whether every tensor of x's shape has its type and layout; all others are plain f32. */
static bool fits(const ls_graph *g, const ls_node *n, const ls_vinfo *x)
{
    if (!lsi_cuda_computes(x->dtype) || ls_shape_count(x->shape) > INT32_MAX) return false;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        const bool map = ls_shape_equal(v->shape, x->shape);
        if (map && (v->dtype != x->dtype || v->layout != x->layout)) return false;
        if (!map && (v->dtype != LS_F32 || v->layout != &ls_layout_plain)) return false;
    }
    return true;
}

static ls_status plan_norm(ls_device *dev, const ls_graph *g, const ls_node *n, bool batch, bool backward,
                           ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, backward ? 1 : 0);
    norm_state s = {.dev = lsi_cuda_of(dev), .batch = batch, .tracks = batch && !backward && n->n_out > 3};
    lsi_cuda_cluster cluster;
    lsi_cuda_groups groups;
    ls_status st = LS_OK;
    size_t scratch;

    if (!fits(g, n, x)) return LS_UNSUPPORTED;
    groups = lsi_cuda_groups_of_map(lsi_cuda_map_of(x), !batch);
    cluster = lsi_cuda_cluster_of(s.dev, x->dtype, &groups, ls_dtype_size(x->dtype) * (backward ? 2 : 1));
    if (cluster.blocks == 0) lsi_cuda_groups_split(s.dev, x->dtype, &groups);
    LS_TRY(lsi_cuda_tickets(s.dev, lsi_cuda_groups_tickets(&groups, x->dtype), &groups.tickets, err));
    scratch = lsi_cuda_groups_scratch(&groups, 2);
    if (backward) {
        s.by_x = ((const ls_norm_attr *)n->attr)->by_beta;
        s.partial_at = ((size_t)lsi_cuda_groups_count(&groups) * 3 * sizeof(float) + 63) / 64 * 64;
        s.backward = (lsi_cuda_norm_grad_args){
            .dtype = x->dtype, .groups = groups, .cluster = cluster, .attr = *(const ls_norm_attr *)n->attr};
    } else {
        s.forward = (lsi_cuda_norm_args){
            .dtype = x->dtype, .groups = groups, .cluster = cluster, .attr = *(const ls_norm_attr *)n->attr};
    }
    st = lsi_cuda_kernel_make(out, backward ? run_norm_grad : run_norm, &s, sizeof s, s.partial_at + scratch,
                              cluster.blocks > 0 ? "clusters"
                              : groups.columns   ? "columns"
                                                 : "lines",
                              err);
    if (st == LS_OK)
        out->destroy = destroy_norm;
    else
        lsi_cuda_tickets_free(s.dev, groups.tickets);
out:
    return st;
}

ls_status lsi_cuda_plan_batch_norm(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    return plan_norm(dev, g, n, true, false, out, err);
}

ls_status lsi_cuda_plan_batch_norm_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                        ls_err *err)
{
    return plan_norm(dev, g, n, true, true, out, err);
}

ls_status lsi_cuda_plan_instance_norm(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                      ls_err *err)
{
    return plan_norm(dev, g, n, false, false, out, err);
}

ls_status lsi_cuda_plan_instance_norm_grad(ls_device *dev, const ls_graph *g, const ls_node *n,
                                           ls_kernel *out, ls_err *err)
{
    return plan_norm(dev, g, n, false, true, out, err);
}

/* -- layer norm -------------------------------------------------------------------------------------------
 */

typedef struct layer_state {
    const lsi_cuda_device *dev;
    bool adds; /* backward: something to dx */
    union {
        lsi_cuda_layer_norm_args forward;
        lsi_cuda_layer_norm_grad_args backward;
    };
} layer_state;

static void run_layer_norm(void *state, const ls_call *call)
{
    const layer_state *s = state;
    lsi_cuda_layer_norm_args a = s->forward;

    a.x = call->in[0];
    a.gamma = call->in[1];
    a.beta = call->in[2];
    a.y = call->out[0];
    a.mean = call->out[1];
    a.invstd = call->out[2];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.layer_norm(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_layer_norm(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    const ls_norm_attr *attr = n->attr;
    const int64_t width = x->shape.dim[x->shape.rank - 1];
    layer_state s = {.dev = lsi_cuda_of(dev)};

    if (!lsi_cuda_plain(g, n) || !lsi_cuda_computes(x->dtype) || width == 0 ||
        ls_shape_count(x->shape) > INT32_MAX)
        return LS_UNSUPPORTED;
    s.forward = (lsi_cuda_layer_norm_args){
        .dtype = x->dtype, .rows = ls_shape_count(x->shape) / width, .width = width, .eps = attr->eps};
    return lsi_cuda_kernel_make(out, run_layer_norm, &s, sizeof s, 0, "rows", err);
}

static void run_layer_norm_grad(void *state, const ls_call *call)
{
    const layer_state *s = state;
    lsi_cuda_layer_norm_grad_args a = s->backward;

    a.dy = call->in[0];
    a.x = call->in[1];
    a.gamma = call->in[2];
    a.mean = call->in[3];
    a.invstd = call->in[4];
    a.residual = s->adds ? call->in[5] : NULL;
    a.dx = call->out[0];
    a.dgamma = call->out[1];
    a.dbeta = call->out[2];
    a.partial = call->scratch;
    lsi_cuda_launched(s->dev, call,
                      s->dev->api->launch.layer_norm_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_layer_norm_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                        ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 1);
    const int64_t width = x->shape.dim[x->shape.rank - 1];
    layer_state s = {.dev = lsi_cuda_of(dev), .adds = n->n_in > 5};
    int64_t rows, blocks;

    if (!lsi_cuda_plain(g, n) || !lsi_cuda_computes(x->dtype) || width == 0 || width > LSI_LAYER_NORM_WIDTH ||
        ls_shape_count(x->shape) > INT32_MAX)
        return LS_UNSUPPORTED;
    rows = ls_shape_count(x->shape) / width;
    blocks = 2 * s.dev->about.processors; /* what is resident at a time; each leaves a share to be summed */
    if (blocks > rows) blocks = rows > 0 ? rows : 1;
    s.backward = (lsi_cuda_layer_norm_grad_args){
        .dtype = x->dtype, .rows = rows, .width = width, .blocks = (int)blocks};
    return lsi_cuda_kernel_make(out, run_layer_norm_grad, &s, sizeof s,
                                (size_t)blocks * 2 * (size_t)width * sizeof(float), "rows", err);
}
