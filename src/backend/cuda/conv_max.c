/* conv_max.c: gradients of a convolution of 1 x 1 under a maximum over points: f32, bf16, f16; the map plain
 * or channels last. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef struct conv_max_state {
    const lsi_cuda_device *dev;
    union {
        lsi_cuda_conv_max of;
        lsi_cuda_conv_max_dx_args dx;
        lsi_cuda_conv_max_dw_args dw;
    };
} conv_max_state;
_Static_assert(offsetof(lsi_cuda_conv_max_dx_args, of) == 0 && offsetof(lsi_cuda_conv_max_dw_args, of) == 0,
               "sizes are set for both alike");

static void run_dx(void *state, const ls_call *call)
{
    const conv_max_state *s = state;
    lsi_cuda_conv_max_dx_args a = s->dx;

    a.dy = call->in[0];
    a.index = call->in[1];
    a.w = call->in[2];
    a.dx = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.conv_max_dx(lsi_cuda_stream_of(s->dev, call), &a));
}

static void run_dw(void *state, const ls_call *call)
{
    const conv_max_state *s = state;
    lsi_cuda_conv_max_dw_args a = s->dw;

    a.x = call->in[0];
    a.dy = call->in[1];
    a.index = call->in[2];
    a.dw = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.conv_max_dw(lsi_cuda_stream_of(s->dev, call), &a));
}

/* Whether the map with points, and what came from above, are of a size that the kernels know. */
static bool can_be(const ls_vinfo *map, ls_shape above)
{
    return lsi_cuda_computes(map->dtype) && above.dim[0] <= UINT16_MAX &&
           above.dim[1] <= LSI_CONV_MAX_CHANNELS && ls_shape_count(map->shape) <= INT32_MAX;
}

bool lsi_cuda_wants_max(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    const ls_node *n = f->outer;

    (void)dev;
    if (n->op != &ls_op_conv2d_dx && n->op != &ls_op_conv2d_dw) return true; /* a sum is one of any size */
    return can_be(g->values[n->op == &ls_op_conv2d_dx ? n->out[0] : n->in[0]],
                  *ls_node_out_shape(g, f->inner, 0));
}

/* `map` is the input or output that has points. */
static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, const ls_vinfo *map, int dy,
                      void (*run)(void *, const ls_call *), ls_kernel *out, ls_err *err)
{
    const ls_shape above = lsi_cuda_in(g, n, dy)->shape;
    conv_max_state s = {.dev = lsi_cuda_of(dev)};

    if (!can_be(map, above)) return LS_UNSUPPORTED;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        if (v->layout != &ls_layout_plain && (v != map || v->layout != &ls_layout_nhwc))
            return LS_UNSUPPORTED;
    }
    s.of = (lsi_cuda_conv_max){.dtype = map->dtype,
                               .channels_last = map->layout == &ls_layout_nhwc,
                               .n = (int)above.dim[0],
                               .o = (int)above.dim[1],
                               .c = (int)map->shape.dim[1],
                               .length = (int)map->shape.dim[3]};
    return lsi_cuda_kernel_make(out, run, &s, sizeof s, 0, "peaks", err);
}

ls_status lsi_cuda_plan_conv_max_dx(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                    ls_err *err)
{
    return plan(dev, g, n, lsi_cuda_out(g, n, 0), 0, run_dx, out, err);
}

ls_status lsi_cuda_plan_conv_max_dw(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                    ls_err *err)
{
    return plan(dev, g, n, lsi_cuda_in(g, n, 0), 1, run_dw, out, err);
}
