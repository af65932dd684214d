/* random.c: dropout (f32, bf16, f16, both layouts), random numbers (f32), replay (f32, bf16, f16, plain). */
#include <math.h>

#include "backend/cuda/kernel_util.h"
#include "backend/cuda/places.h"
#include "backend/cuda/planners.h"

typedef struct dropout_state {
    const lsi_cuda_device *dev;
    lsi_cuda_dropout_args args;
} dropout_state;

static void run_dropout(void *state, const ls_call *call)
{
    const dropout_state *s = state;
    lsi_cuda_dropout_args a = s->args;

    a.x = call->in[0];
    a.key = call->in[1];
    a.y = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.dropout(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_dropout(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const ls_random_attr *attr = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    const lsi_cuda_map m = lsi_cuda_map_of(x);
    dropout_state s = {lsi_cuda_of(dev),
                       {.dtype = x->dtype,
                        .samples = m.n,
                        .channels = m.c,
                        .inner = m.s,
                        .channels_last = m.channels_last,
                        .per_channel = attr->per_channel,
                        .stream = attr->stream,
                        /* u < p for u = k * 2^-24 is k < p * 2^24 in real numbers */
                        .dropped = (uint32_t)ceil(attr->p * 0x1p24),
                        .scale = (float)(1 / (1 - attr->p))}};

    if (!lsi_cuda_computes(x->dtype) || x->layout != lsi_cuda_out(g, n, 0)->layout ||
        ls_shape_count(x->shape) > INT32_MAX)
        return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_dropout, &s, sizeof s, 0, "drawn", err);
}

typedef struct random_state {
    const lsi_cuda_device *dev;
    lsi_cuda_random_args args;
} random_state;

static void run_random(void *state, const ls_call *call)
{
    const random_state *s = state;
    lsi_cuda_random_args a = s->args;

    a.key = call->in[0];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.random(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_random(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const ls_random_attr *attr = n->attr;
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);
    const int64_t count = ls_shape_count(y->shape), samples = y->shape.dim[0];
    const random_state s = {lsi_cuda_of(dev),
                            {.samples = samples,
                             .per_sample = samples > 0 ? count / samples : 0,
                             .normal = n->op == &ls_op_random_normal,
                             .deviation = attr->p,
                             .stream = attr->stream}};

    if (!lsi_cuda_plain(g, n) || y->dtype != LS_F32 || count > INT32_MAX) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_random, &s, sizeof s, 0, "drawn", err);
}

typedef struct replay_state {
    const lsi_cuda_device *dev;
    lsi_cuda_replay_args args;
} replay_state;

static void run_replay(void *state, const ls_call *call)
{
    const replay_state *s = state;
    lsi_cuda_replay_args a = s->args;

    a.pool = call->in[0];
    a.filled = call->in[1];
    a.x = call->in[2];
    a.key = call->in[3];
    a.shown = call->out[0];
    a.slot = call->out[1];
    a.place = call->out[2];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.replay(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_replay(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const ls_replay_attr *attr = n->attr;
    const ls_vinfo *pool = lsi_cuda_in(g, n, 0), *x = lsi_cuda_in(g, n, 2);
    const replay_state s = {lsi_cuda_of(dev),
                            {.dtype = x->dtype,
                             .capacity = pool->shape.dim[0],
                             .images = x->shape.dim[0],
                             .width = x->shape.dim[1],
                             .stream = attr->stream}};

    if (!lsi_cuda_plain(g, n) || !lsi_cuda_computes(x->dtype) || lsi_cuda_in(g, n, 1)->dtype != LS_F32 ||
        s.args.images > UINT16_MAX)
        return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_replay, &s, sizeof s, 0, "drawn", err);
}
