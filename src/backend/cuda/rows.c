/* rows.c: padding, and rows by index. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* -- padding ----------------------------------------------------------------------------------------------
 */

typedef struct pad_state {
    const lsi_cuda_device *dev;
    lsi_cuda_pad_args args;
} pad_state;

static void run_pad(void *state, const ls_call *call)
{
    const pad_state *s = state;
    lsi_cuda_pad_args a = s->args;

    a.in = call->in[0];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.pad(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_pad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_pad_attr *attr = n->attr;
    const bool adjoint = n->op == &ls_op_pad_adjoint;
    const ls_vinfo *x = adjoint ? lsi_cuda_out(g, n, 0) : lsi_cuda_in(g, n, 0);
    const ls_vinfo *padded = adjoint ? lsi_cuda_in(g, n, 0) : lsi_cuda_out(g, n, 0);
    const ls_shape shape = x->shape;
    const bool last = x->layout == &ls_layout_nhwc;
    pad_state s = {lsi_cuda_of(dev), {.dtype = x->dtype, .outer = 1, .inner = 1, .adjoint = adjoint}};

    if (!lsi_cuda_computes(x->dtype) || x->layout != padded->layout ||
        (!last && x->layout != &ls_layout_plain))
        return LS_UNSUPPORTED;
    for (int i = 0; i < shape.rank - 2; i++) s.args.outer *= shape.dim[i];
    s.args.h = shape.dim[shape.rank - 2];
    s.args.w = shape.dim[shape.rank - 1];
    if (last) {
        s.args.outer = shape.dim[0];
        s.args.inner = shape.dim[1];
    }
    for (int i = 0; i < 4; i++) s.args.pad[i] = attr->pad[i];
    s.args.reflect = attr->mode == LS_PAD_REFLECT;
    if (ls_shape_count(padded->shape) >= (int64_t)1 << 31) return LS_UNSUPPORTED; /* counted with 32 bits */
    return lsi_cuda_kernel_make(out, run_pad, &s, sizeof s, 0, adjoint ? "unpad" : "pad", err);
}

/* -- rows by index ----------------------------------------------------------------------------------------
 */

/* Of the three ops: the table (or the number of its rows), the rows, the index. */
typedef struct rows_state {
    const lsi_cuda_device *dev;
    ls_dtype dtype;
    int64_t n, v, d;
} rows_state;

static void run_gather(void *state, const ls_call *call)
{
    const rows_state *s = state;
    const lsi_cuda_gather_rows_args a = {call->out[0], call->in[0], call->in[1], s->dtype, s->n, s->v, s->d};

    lsi_cuda_launched(s->dev, call, s->dev->api->launch.gather_rows(lsi_cuda_stream_of(s->dev, call), &a));
}

static void run_scatter(void *state, const ls_call *call)
{
    const rows_state *s = state;
    const lsi_cuda_scatter_rows_args a = {call->out[0], call->in[0], call->in[1], s->dtype, s->n, s->v, s->d};

    lsi_cuda_launched(s->dev, call, s->dev->api->launch.scatter_rows(lsi_cuda_stream_of(s->dev, call), &a));
}

static void run_store(void *state, const ls_call *call)
{
    const rows_state *s = state;
    const lsi_cuda_store_rows_args a = {call->out[0], call->in[1], call->in[2], (int)ls_dtype_size(s->dtype),
                                        s->n,         s->v,        s->d};

    lsi_cuda_launched(s->dev, call, s->dev->api->launch.store_rows(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_rows(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const bool gathers = n->op == &ls_op_gather_rows, stores = n->op == &ls_op_store_rows;
    const ls_vinfo *table = gathers ? lsi_cuda_in(g, n, 0) : lsi_cuda_out(g, n, 0);
    const ls_vinfo *rows = gathers ? lsi_cuda_out(g, n, 0) : lsi_cuda_in(g, n, stores ? 1 : 0);
    const rows_state s = {lsi_cuda_of(dev), table->dtype, rows->shape.dim[0], table->shape.dim[0],
                          table->shape.dim[1]};

    if (!lsi_cuda_plain(g, n) || (!stores && !lsi_cuda_computes(s.dtype))) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out,
                                gathers  ? run_gather
                                : stores ? run_store
                                         : run_scatter,
                                &s, sizeof s, 0, n->op->name, err);
}
