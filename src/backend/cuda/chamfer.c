/* chamfer.c: the Chamfer distance, both ways: f32, bf16 and f16; plain. */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef struct state {
    const lsi_cuda_device *dev;
    union {
        lsi_cuda_chamfer_args chamfer;
        lsi_cuda_chamfer_grad_args chamfer_grad;
    };
} state;

static void run_chamfer(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_chamfer_args a = s->chamfer;

    a.p = call->in[0];
    a.q = call->in[1];
    a.sum = call->out[0];
    a.index_p = call->out[1];
    a.index_q = call->out[2];
    a.partial = call->scratch;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.chamfer(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy_chamfer(void *opaque)
{
    state *s = opaque;

    lsi_cuda_tickets_free(s->dev, s->chamfer.ticket);
    ls_free(s);
}

/* Whether the clouds at inputs i and i + 1 can be taken. */
static bool clouds(const ls_graph *g, const ls_node *n, int i)
{
    const ls_vinfo *p = lsi_cuda_in(g, n, i), *q = lsi_cuda_in(g, n, i + 1);

    return lsi_cuda_plain(g, n) && lsi_cuda_computes(p->dtype) && p->shape.dim[0] <= UINT16_MAX &&
           ls_shape_count(p->shape) <= INT32_MAX && ls_shape_count(q->shape) <= INT32_MAX;
}

ls_status lsi_cuda_plan_chamfer(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const ls_vinfo *p = lsi_cuda_in(g, n, 0), *q = lsi_cuda_in(g, n, 1);
    state s = {.dev = lsi_cuda_of(dev)};
    int64_t blocks;
    ls_status st = LS_OK;

    if (!clouds(g, n, 0)) return LS_UNSUPPORTED;
    s.chamfer = (lsi_cuda_chamfer_args){
        .dtype = p->dtype, .batch = p->shape.dim[0], .np = p->shape.dim[2], .nq = q->shape.dim[2]};
    blocks = lsi_chamfer_blocks(s.chamfer.batch, s.chamfer.np, s.chamfer.nq);
    LS_TRY(lsi_cuda_tickets(s.dev, 1, &s.chamfer.ticket, err));
    st = lsi_cuda_kernel_make(out, run_chamfer, &s, sizeof s, (size_t)blocks * sizeof(float), "tiles", err);
    if (st == LS_OK)
        out->destroy = destroy_chamfer;
    else
        lsi_cuda_tickets_free(s.dev, s.chamfer.ticket);
out:
    return st;
}

static void run_chamfer_grad(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_chamfer_grad_args a = s->chamfer_grad;

    a.dloss = call->in[0];
    a.p = call->in[1];
    a.q = call->in[2];
    a.index_p = call->in[3];
    a.index_q = call->in[4];
    a.dp = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.chamfer_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_chamfer_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                     ls_err *err)
{
    const ls_vinfo *p = lsi_cuda_in(g, n, 1), *q = lsi_cuda_in(g, n, 2);
    state s = {.dev = lsi_cuda_of(dev)};

    if (!clouds(g, n, 1)) return LS_UNSUPPORTED;
    s.chamfer_grad = (lsi_cuda_chamfer_grad_args){
        .dtype = p->dtype, .batch = p->shape.dim[0], .np = p->shape.dim[2], .nq = q->shape.dim[2]};
    return lsi_cuda_kernel_make(out, run_chamfer_grad, &s, sizeof s, 0, "tiles", err);
}
