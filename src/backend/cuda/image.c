/* image.c: pools and upsampling, both ways: f32, bf16 and f16, both layouts. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/places.h"
#include "backend/cuda/planners.h"

typedef struct state {
    const lsi_cuda_device *dev;
    union {
        lsi_cuda_maxpool_args maxpool;
        lsi_cuda_maxpool_grad_args maxpool_grad;
        lsi_cuda_avgpool_args avgpool;
        lsi_cuda_upsample_args upsample;
    };
} state;

/* The maps `large` (h, w) and `small` (oh, ow) of a node whose tensors all lie alike; false when they do not,
 * or have another type or too many elements.  Dimensions before the last two count as samples and channels.
 */
static bool maps(const ls_graph *g, const ls_node *n, const ls_vinfo *large, const ls_vinfo *small,
                 lsi_cuda_images *m)
{
    const int rank = large->shape.rank;

    for (int i = 0; i < n->n_in; i++)
        if (lsi_cuda_in(g, n, i)->layout != large->layout) return false;
    for (int k = 0; k < n->n_out; k++)
        if (lsi_cuda_out(g, n, k)->layout != large->layout) return false;
    if (!lsi_cuda_computes(large->dtype) || ls_shape_count(large->shape) > INT32_MAX ||
        ls_shape_count(small->shape) > INT32_MAX)
        return false;
    *m = (lsi_cuda_images){
        .dtype = large->dtype, .n = 1, .c = 1, .channels_last = lsi_cuda_channels_last(large)};
    if (m->channels_last && rank != 4) return false;
    if (m->channels_last) m->c = large->shape.dim[1];
    for (int i = 0; i < rank - 2 - (m->channels_last ? 1 : 0); i++) m->n *= large->shape.dim[i];
    m->h = large->shape.dim[rank - 2];
    m->w = large->shape.dim[rank - 1];
    m->oh = small->shape.dim[rank - 2];
    m->ow = small->shape.dim[rank - 1];
    return true;
}

static const char *name_of(const lsi_cuda_images *m)
{
    return m->channels_last ? "channels-last" : "plain";
}

/* -- max pools --------------------------------------------------------------------------------------------
 */

static void run_maxpool(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_maxpool_args a = s->maxpool;

    a.x = call->in[0];
    a.y = call->out[0];
    a.index = call->out[1];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.maxpool(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_maxpool2d(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    state s = {.dev = lsi_cuda_of(dev)};

    s.maxpool = (lsi_cuda_maxpool_args){.attr = *(const ls_pool_attr *)n->attr};
    if (!maps(g, n, lsi_cuda_in(g, n, 0), lsi_cuda_out(g, n, 0), &s.maxpool.map)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_maxpool, &s, sizeof s, 0, name_of(&s.maxpool.map), err);
}

static void run_maxpool_grad(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_maxpool_grad_args a = s->maxpool_grad;

    a.dy = call->in[0];
    a.index = call->in[1];
    if (a.attr.relu) a.y = call->in[2];
    a.dx = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.maxpool_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_maxpool2d_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                       ls_err *err)
{
    state s = {.dev = lsi_cuda_of(dev)};

    s.maxpool_grad = (lsi_cuda_maxpool_grad_args){.attr = *(const ls_pool_attr *)n->attr};
    if (!maps(g, n, lsi_cuda_out(g, n, 0), lsi_cuda_in(g, n, 0), &s.maxpool_grad.map)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_maxpool_grad, &s, sizeof s, 0, name_of(&s.maxpool_grad.map), err);
}

/* -- one input, one output: the gradient is the same with the maps exchanged -------------------------------
 */

static void run_avgpool(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_avgpool_args a = s->avgpool;

    a.in = call->in[0];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.avgpool(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_avgpool2d(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    const bool backward = n->op == &ls_op_avgpool2d_grad;
    const ls_vinfo *in = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    state s = {.dev = lsi_cuda_of(dev)};

    s.avgpool = (lsi_cuda_avgpool_args){.attr = *(const ls_pool_attr *)n->attr, .backward = backward};
    if (!maps(g, n, backward ? y : in, backward ? in : y, &s.avgpool.map)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_avgpool, &s, sizeof s, 0, name_of(&s.avgpool.map), err);
}

static void run_upsample(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_upsample_args a = s->upsample;

    a.in = call->in[0];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.upsample(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_upsample2d(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const bool backward = n->op == &ls_op_upsample2d_grad;
    const ls_vinfo *in = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    state s = {.dev = lsi_cuda_of(dev)};

    s.upsample =
        (lsi_cuda_upsample_args){.factor = ((const ls_upsample_attr *)n->attr)->factor, .backward = backward};
    if (!maps(g, n, backward ? in : y, backward ? y : in, &s.upsample.map)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_upsample, &s, sizeof s, 0, name_of(&s.upsample.map), err);
}
