/* flash.c: see flash.h.  Heads are read and written where they lie: one after the other (attention), or as a
 * product left them (self_attention). */
#include "backend/cuda/flash.h"

#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef struct flash_state {
    const lsi_cuda_device *dev;
    size_t third; /* bytes from queries to keys to values in one tensor; 0: each has its own */
    union {
        lsi_cuda_flash_args forward;
        lsi_cuda_flash_grad_args backward;
    };
} flash_state;

static void run_forward(void *state, const ls_call *call)
{
    const flash_state *s = state;
    lsi_cuda_flash_args a = s->forward;
    const char *all = call->in[0];

    a.q = all;
    a.k = s->third > 0 ? all + s->third : call->in[1];
    a.v = s->third > 0 ? all + 2 * s->third : call->in[2];
    a.out = call->out[0];
    a.lse = call->out[1];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.flash(lsi_cuda_stream_of(s->dev, call), &a));
}

static void run_backward(void *state, const ls_call *call)
{
    const flash_state *s = state;
    const int more = s->third > 0 ? 1 : 3; /* where the inputs behind queries, keys and values begin */
    lsi_cuda_flash_grad_args a = s->backward;
    const char *all = call->in[0];
    char *dall = call->out[0];

    a.q = all;
    a.k = s->third > 0 ? all + s->third : call->in[1];
    a.v = s->third > 0 ? all + 2 * s->third : call->in[2];
    a.out = call->in[more];
    a.lse = call->in[more + 1];
    a.dout = call->in[more + 2];
    a.dq = dall;
    a.dk = s->third > 0 ? dall + s->third : call->out[1];
    a.dv = s->third > 0 ? dall + 2 * s->third : call->out[2];
    a.dots = call->scratch;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.flash_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

static bool of_one_tensor(const ls_node *n)
{
    return n->op == &ls_op_self_attention || n->op == &ls_op_self_attention_grad;
}

/* Heads and samples are one dimension of the grid. */
bool lsi_cuda_can_flash(const ls_graph *g, const ls_node *n)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    const ls_shape s = x->shape;
    const int64_t entries = of_one_tensor(n) ? s.dim[0] * s.dim[3] : s.dim[0];

    return (x->dtype == LS_BF16 || x->dtype == LS_F16) && lsi_cuda_plain(g, n) && ls_shape_count(s) > 0 &&
           lsi_flash_width(s.dim[s.rank - 1]) && entries <= UINT16_MAX && s.dim[1] <= INT32_MAX / 2 &&
           ((const ls_attention_attr *)n->attr)->scale > 0;
}

ls_status lsi_cuda_plan_flash(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    const bool packed = of_one_tensor(n);
    const int64_t samples = x->shape.dim[0], t = x->shape.dim[1], heads = packed ? x->shape.dim[3] : 1;
    const int64_t d = x->shape.dim[x->shape.rank - 1], width = heads * d, wide = packed ? 3 * width : width;
    const lsi_cuda_rows q_rows = {t * wide, d, wide}, out_rows = {t * width, d, width};
    const float scale = (float)((const ls_attention_attr *)n->attr)->scale;
    flash_state s = {.dev = lsi_cuda_of(dev), .third = packed ? (size_t)width * ls_dtype_size(x->dtype) : 0};

    if (n->op == &ls_op_attention || n->op == &ls_op_self_attention) {
        s.forward = (lsi_cuda_flash_args){.dtype = x->dtype,
                                          .samples = samples,
                                          .heads = heads,
                                          .t = t,
                                          .d = d,
                                          .scale = scale,
                                          .q_rows = q_rows,
                                          .out_rows = out_rows};
        return lsi_cuda_kernel_make(out, run_forward, &s, sizeof s, 0, "flash", err);
    }
    s.backward = (lsi_cuda_flash_grad_args){.dtype = x->dtype,
                                            .samples = samples,
                                            .heads = heads,
                                            .t = t,
                                            .d = d,
                                            .scale = scale,
                                            .q_rows = q_rows,
                                            .out_rows = out_rows};
    return lsi_cuda_kernel_make(out, run_backward, &s, sizeof s,
                                (size_t)(samples * heads * t) * sizeof(float), "flash", err);
}

ls_status lsi_cuda_plan_self_attention(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                       ls_err *err)
{
    return lsi_cuda_can_flash(g, n) ? lsi_cuda_plan_flash(dev, g, n, out, err) : LS_UNSUPPORTED;
}
