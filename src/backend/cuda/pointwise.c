/* pointwise.c: element-wise ops, chains of them, and bias, which is one in disguise.
 *
 * Every one is a chain over the result's elements in the order in which they lie in memory.  Where all inputs
 * lie alike, or are single elements, there is no more to it; otherwise the result is a grid of few
 * dimensions, merged where all inputs step through them as through one, and each input has strides.  Types
 * f32, bf16 and f16, all layouts. */
#include "backend/cuda/chain.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/places.h"
#include "backend/cuda/planners.h"

typedef struct state {
    const lsi_cuda_device *dev;
    lsi_cuda_chain_args args;
} state;

static void run(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_chain_args a = s->args;

    a.out = call->out[0];
    for (int i = 0; i < a.n_in; i++) a.in[i] = call->in[i];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.chain(lsi_cuda_stream_of(s->dev, call), &a));
}

/* Whether every input is read as the result is written, or is one element. */
static bool flat(const ls_graph *g, const ls_node *n, int n_in, lsi_cuda_chain_args *a)
{
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);

    for (int i = 0; i < n_in; i++) {
        const ls_vinfo *x = lsi_cuda_in(g, n, i);
        a->one[i] = ls_shape_count(x->shape) == 1;
        if (!a->one[i] && !(ls_shape_count(x->shape) == a->count && x->layout == y->layout)) return false;
    }
    return true;
}

/* The strides of input x along the dimensions of y (0 where it is repeated), as NumPy aligns them. */
static void strides_along(const ls_vinfo *x, ls_shape y, int64_t *out)
{
    int64_t own[LS_MAX_RANK];
    const int lead = y.rank - x->shape.rank;

    lsi_cuda_strides(x->layout, x->shape, own);
    for (int d = 0; d < y.rank; d++) out[d] = d < lead || x->shape.dim[d - lead] == 1 ? 0 : own[d - lead];
}

/* Puts dimension d of y, whose strides per input are along[i][d], behind those that the grid has. */
static void append(lsi_cuda_chain_args *a, int64_t size, int d, int64_t (*along)[LS_MAX_RANK])
{
    int last = a->rank - 1;
    bool merges = last >= 0;

    if (size == 1) return;
    for (int i = 0; i < a->n_in; i++) merges = merges && a->stride[i][last] == along[i][d] * size;
    if (!merges) {
        last = a->rank++;
        a->dim[last] = 1;
    }
    a->dim[last] *= size;
    for (int i = 0; i < a->n_in; i++) a->stride[i][last] = along[i][d];
}

static void make_grid(const ls_graph *g, const ls_node *n, lsi_cuda_chain_args *a,
                      int64_t (*along)[LS_MAX_RANK])
{
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);
    int order[LS_MAX_RANK];

    lsi_cuda_memory_order(y->layout, y->shape, order);
    for (int k = 0; k < y->shape.rank; k++) append(a, y->shape.dim[order[k]], order[k], along);
    if (a->rank > 0) return;
    a->rank = 1;
    a->dim[0] = 1;
}

/* As wide as 16 bytes where neighbours of the result have neighbours, or one element, in every input. */
static int vector_width(const lsi_cuda_chain_args *a)
{
    const int width = a->dtype == LS_F32 ? 4 : 8, last = a->rank - 1;

    if (a->rank == 0) return width;
    if (a->dim[last] % width != 0) return 1;
    for (int i = 0; i < a->n_in; i++) {
        if (a->stride[i][last] > 1) return 1;
        for (int d = 0; d < last && a->stride[i][last] == 1; d++)
            if (a->stride[i][d] % width != 0) return 1; /* its rows would not begin at 16 bytes */
    }
    return width;
}

static ls_status finish(ls_device *dev, state *s, ls_kernel *out, ls_err *err)
{
    const char *impl = "chain";

    s->args.vector = vector_width(&s->args);
    s->args.compiled = lsi_cuda_chain_kernel((lsi_cuda_device *)dev, &s->args);
    if (s->args.compiled == NULL) impl = "interpreted";
    return lsi_cuda_kernel_make(out, run, s, sizeof *s, 0, impl, err);
}

/* A chain of one type over inputs 0..n_in-1; false when there is no kernel for it. */
static bool begin(ls_device *dev, const ls_graph *g, const ls_node *n, int n_in, state *s)
{
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);

    *s = (state){.dev = lsi_cuda_of(dev), .args = {.dtype = y->dtype, .n_in = n_in}};
    s->args.count = ls_shape_count(y->shape);
    if (!lsi_cuda_computes(y->dtype) || n_in > LS_PW_MAX_INPUTS || s->args.count > INT32_MAX) return false;
    for (int i = 0; i < n_in; i++)
        if (lsi_cuda_in(g, n, i)->dtype != y->dtype) return false;
    return true;
}

static ls_status plan_chain(ls_device *dev, const ls_graph *g, const ls_node *n, const ls_pointwise_attr *c,
                            ls_kernel *out, ls_err *err)
{
    int64_t along[LS_PW_MAX_INPUTS][LS_MAX_RANK];
    state s;

    if (!begin(dev, g, n, n->n_in, &s)) return LS_UNSUPPORTED;
    s.args.chain = *c;
    if (!flat(g, n, n->n_in, &s.args)) {
        for (int i = 0; i < n->n_in; i++)
            strides_along(lsi_cuda_in(g, n, i), lsi_cuda_out(g, n, 0)->shape, along[i]);
        make_grid(g, n, &s.args, along);
    }
    return finish(dev, &s, out, err);
}

ls_status lsi_cuda_plan_pointwise(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    return plan_chain(dev, g, n, n->attr, out, err);
}

ls_status lsi_cuda_plan_elementwise(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                    ls_err *err)
{
    const ls_pw_attr *p = n->op->attr_size > 0 ? n->attr : NULL;
    ls_pointwise_attr c = {.n_steps = 1};

    c.step[0].pw = n->op->pw;
    c.step[0].b = n->n_in > 1 ? 1 : 0;
    for (int i = 0; i < 2; i++) c.step[0].p[i] = p != NULL ? p->p[i] : 0;
    return plan_chain(dev, g, n, &c, out, err);
}

/* x + b, where b is repeated along every dimension but one. */
ls_status lsi_cuda_plan_bias(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_axis_attr *axis = n->attr;
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    int64_t along[2][LS_MAX_RANK] = {{0}};
    state s;

    if (!begin(dev, g, n, 2, &s)) return LS_UNSUPPORTED;
    s.args.chain = (ls_pointwise_attr){.n_steps = 1};
    s.args.chain.step[0].pw = LS_PW_ADD;
    s.args.chain.step[0].b = 1;
    strides_along(x, x->shape, along[0]);
    along[1][axis->axis] = x->shape.dim[axis->axis] == 1 ? 0 : 1;
    make_grid(g, n, &s.args, along);
    return finish(dev, &s, out, err);
}
