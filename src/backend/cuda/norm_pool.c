/* norm_pool.c: a max pool behind a batch norm, both ways: f32, bf16 and f16, channels last. */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef struct norm_pool_state {
    const lsi_cuda_device *dev;
    bool tracks;       /* forward: running statistics are moved on */
    size_t partial_at; /* in the scratch; the gradient's factors are before it */
    unsigned *tickets;
    union {
        lsi_cuda_norm_pool_args forward;
        lsi_cuda_norm_pool_grad_args backward;
    };
} norm_pool_state;

bool lsi_cuda_wants_norm_pool(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    const ls_vinfo *x = lsi_cuda_in(g, f->inner, 0);

    return !lsi_cuda_of(dev)->plain && !lsi_cuda_of(dev)->no_norm_pool && lsi_cuda_computes(x->dtype) &&
           ls_shape_count(x->shape) <= INT32_MAX;
}

static lsi_cuda_groups with_scratch(const norm_pool_state *s, lsi_cuda_groups g, const ls_call *call)
{
    if (g.splits > 1) g.partial = (float *)((char *)call->scratch + s->partial_at);
    return g;
}

static void run_forward(void *state, const ls_call *call)
{
    const norm_pool_state *s = state;
    const int winners = s->tracks ? 5 : 3; /* where they begin among the outputs */
    lsi_cuda_norm_pool_args a = s->forward;

    a.norm.groups = with_scratch(s, a.norm.groups, call);
    a.norm.x = call->in[0];
    a.norm.gamma = call->in[1];
    a.norm.beta = call->in[2];
    a.norm.y = call->out[0];
    a.norm.mean = call->out[1];
    a.norm.invstd = call->out[2];
    if (s->tracks) {
        a.norm.running_mean = call->in[3];
        a.norm.running_var = call->in[4];
        a.norm.new_mean = call->out[3];
        a.norm.new_var = call->out[4];
    }
    a.index = call->out[winners];
    a.best = call->out[winners + 1];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.norm_pool(lsi_cuda_stream_of(s->dev, call), &a));
}

static void run_backward(void *state, const ls_call *call)
{
    const norm_pool_state *s = state;
    lsi_cuda_norm_pool_grad_args a = s->backward;

    a.norm.groups = with_scratch(s, a.norm.groups, call);
    a.norm.factors = call->scratch;
    a.norm.dy = call->in[0];
    a.x = call->in[1];
    a.norm.gamma = call->in[2];
    a.norm.beta = call->in[3];
    a.norm.mean = call->in[4];
    a.norm.invstd = call->in[5];
    a.index = call->in[6];
    a.norm.x = call->in[7];
    if (a.norm.attr.sums) a.norm.more = call->in[8];
    a.norm.dx = call->out[0];
    a.norm.dgamma = call->out[1];
    a.norm.dbeta = call->out[2];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.norm_pool_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy(void *state)
{
    norm_pool_state *s = state;

    lsi_cuda_tickets_free(s->dev, s->tickets);
    ls_free(s);
}

/* Whether all maps lie channels last and have the type of x or, as positions do, one byte; all else is plain
 * f32. */
static bool fits(const ls_graph *g, const ls_node *n, const ls_vinfo *x)
{
    if (!lsi_cuda_computes(x->dtype) || !lsi_cuda_channels_last(x) || ls_shape_count(x->shape) > INT32_MAX)
        return false;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        if (v->shape.rank == 4 && (v->layout != x->layout || (v->dtype != x->dtype && v->dtype != LS_U8)))
            return false;
        if (v->shape.rank != 4 && (v->dtype != LS_F32 || v->layout != &ls_layout_plain)) return false;
    }
    return true;
}

static lsi_cuda_images images(const ls_vinfo *large, const ls_vinfo *small)
{
    return (lsi_cuda_images){.dtype = large->dtype,
                             .n = large->shape.dim[0],
                             .c = large->shape.dim[1],
                             .h = large->shape.dim[2],
                             .w = large->shape.dim[3],
                             .oh = small->shape.dim[2],
                             .ow = small->shape.dim[3],
                             .channels_last = true};
}

/* Sums run over x, and backward over what comes to the windows. */
static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, bool backward, ls_kernel *out,
                      ls_err *err)
{
    const ls_norm_pool_attr *attr = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, backward ? 1 : 0);
    const ls_vinfo *small = backward ? lsi_cuda_in(g, n, 0) : lsi_cuda_out(g, n, 0);
    norm_pool_state s = {.dev = lsi_cuda_of(dev), .tracks = !backward && n->n_in > 3};
    lsi_cuda_groups groups;
    ls_status st = LS_OK;

    if (!fits(g, n, x)) return LS_UNSUPPORTED;
    groups = lsi_cuda_groups_of_map(lsi_cuda_map_of(backward ? small : x), false);
    lsi_cuda_groups_split(s.dev, x->dtype, &groups);
    LS_TRY(lsi_cuda_tickets(s.dev, lsi_cuda_groups_tickets(&groups, x->dtype), &s.tickets, err));
    groups.tickets = s.tickets;
    if (backward) {
        s.partial_at = ((size_t)lsi_cuda_groups_count(&groups) * 3 * sizeof(float) + 63) / 64 * 64;
        s.backward =
            (lsi_cuda_norm_pool_grad_args){.norm = {.dtype = x->dtype, .groups = groups, .attr = attr->norm},
                                           .map = images(x, small),
                                           .pool = attr->pool};
        s.backward.norm.by_x = attr->norm.act != LS_ACT_NONE;
    } else {
        s.forward =
            (lsi_cuda_norm_pool_args){.norm = {.dtype = x->dtype, .groups = groups, .attr = attr->norm},
                                      .map = images(x, small),
                                      .pool = attr->pool};
    }
    st = lsi_cuda_kernel_make(out, backward ? run_backward : run_forward, &s, sizeof s,
                              s.partial_at + lsi_cuda_groups_scratch(&groups, 2), "windows", err);
    if (st == LS_OK)
        out->destroy = destroy;
    else
        lsi_cuda_tickets_free(s.dev, s.tickets);
out:
    return st;
}

ls_status lsi_cuda_plan_batch_norm_pool(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                        ls_err *err)
{
    return plan(dev, g, n, false, out, err);
}

ls_status lsi_cuda_plan_batch_norm_pool_grad(ls_device *dev, const ls_graph *g, const ls_node *n,
                                             ls_kernel *out, ls_err *err)
{
    return plan(dev, g, n, true, out, err);
}
