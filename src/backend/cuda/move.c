/* move.c: filling and converting. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef struct fill_state {
    const lsi_cuda_device *dev;
    lsi_cuda_fill_args args;
} fill_state;

static void run_fill(void *state, const ls_call *call)
{
    const fill_state *s = state;
    lsi_cuda_fill_args a = s->args;

    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.fill(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_fill(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_fill_attr *attr = n->attr;
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);
    const fill_state s = {lsi_cuda_of(dev),
                          {.dtype = y->dtype, .count = ls_shape_count(y->shape), .value = attr->value}};

    return lsi_cuda_kernel_make(out, run_fill, &s, sizeof s, 0, "fill", err);
}

typedef struct cast_state {
    const lsi_cuda_device *dev;
    lsi_cuda_cast_args args;
} cast_state;

static void run_cast(void *state, const ls_call *call)
{
    const cast_state *s = state;
    lsi_cuda_cast_args a = s->args;

    a.out = call->out[0];
    a.in = call->in[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.cast(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_cast(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0), *y = lsi_cuda_out(g, n, 0);
    const cast_state s = {lsi_cuda_of(dev),
                          {.to = y->dtype, .from = x->dtype, .count = ls_shape_count(y->shape)}};

    if (!lsi_cuda_computes(x->dtype) || !lsi_cuda_computes(y->dtype) || x->layout != y->layout)
        return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_cast, &s, sizeof s, 0, "cast", err);
}
