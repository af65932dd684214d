/* few.c: convolutions and their gradients where one side has up to four channels and the other a multiple of
 * 64: bf16, channels last, no dilation or groups, equal strides; where the filter leads to few channels,
 * stride 1. The library's kernels for the same node compete, and the faster is remembered. */
#include <stdio.h>

#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef enum pass { TO_MANY, FROM_MANY, WEIGHTS } pass;

typedef struct state {
    const lsi_cuda_device *dev;
    pass pass;
    bool turned; /* the filter leads to few channels */
    bool biased;
    lsi_cuda_few p;
    ls_act act;
    float slope;
    int blocks; /* WEIGHTS */
} state;

static int launch(const state *s, lsi_cuda_stream stream, const ls_call *call)
{
    const lsi_cuda_launch *l = &s->dev->api->launch;
    const void *bias = s->biased ? call->in[2] : NULL;

    switch (s->pass) {
    case TO_MANY:
        return l->few_to_many(stream, &(lsi_cuda_few_to_many_args){s->p, call->in[0], call->in[1], bias,
                                                                   call->out[0], s->act, s->slope});
    case FROM_MANY:
        return l->few_from_many(stream, &(lsi_cuda_few_from_many_args){s->p, call->in[0], call->in[1], bias,
                                                                       call->out[0], s->act, s->slope});
    case WEIGHTS: break;
    }
    /* Of x and dy, dy has the many channels unless the filter is turned around. */
    return l->few_weights(stream, &(lsi_cuda_few_weights_args){s->p, call->in[s->turned ? 0 : 1],
                                                               call->in[s->turned ? 1 : 0], call->out[0],
                                                               call->scratch, s->blocks});
}

static void run(void *opaque, const ls_call *call)
{
    const state *s = opaque;

    lsi_cuda_launched(s->dev, call, launch(s, lsi_cuda_stream_of(s->dev, call), call));
}

/* -- which nodes ------------------------------------------------------------------------------------------
 */

static bool last(const ls_vinfo *v)
{
    return v->layout == &ls_layout_nhwc || (v->layout == &ls_layout_plain && v->shape.dim[1] == 1);
}

/* The geometry of x, w, y as few.h has it; false where it has none. */
static bool describe(const ls_conv_attr *a, const ls_vinfo *x, const ls_vinfo *w, const ls_vinfo *y,
                     lsi_cuda_few *p)
{
    const ls_strides of = ls_layout_strides(w->layout, w->shape);
    const bool turned = y->shape.dim[1] <= 4; /* the filter leads to few channels */
    const ls_vinfo *few = turned ? y : x, *many = turned ? x : y;
    const int kh = (int)w->shape.dim[2], kw = (int)w->shape.dim[3];

    if (x->dtype != LS_BF16 || w->dtype != LS_BF16 || y->dtype != LS_BF16 || !last(x) || !last(y))
        return false;
    if (a->groups != 1 || a->dilation[0] != 1 || a->dilation[1] != 1 || a->stride[0] != a->stride[1])
        return false;
    if (few->shape.dim[1] > 4 || many->shape.dim[1] % 64 != 0 || many->shape.dim[1] == 0) return false;
    if (a->stride[0] > (turned ? 1 : 4) || kw * few->shape.dim[1] > 32 || kh > 16) return false;
    if (ls_shape_count(x->shape) == 0 || ls_shape_count(y->shape) == 0 ||
        ls_shape_count(x->shape) > INT32_MAX || ls_shape_count(y->shape) > INT32_MAX)
        return false;
    *p = (lsi_cuda_few){.n = (int)x->shape.dim[0],
                        .h = (int)few->shape.dim[2],
                        .w = (int)few->shape.dim[3],
                        .f = (int)few->shape.dim[1],
                        .mh = (int)many->shape.dim[2],
                        .mw = (int)many->shape.dim[3],
                        .m = (int)many->shape.dim[1],
                        .kh = kh,
                        .kw = kw,
                        .stride = a->stride[0],
                        .top = turned ? kh - 1 - a->pad[0] : a->pad[0],
                        .left = turned ? kw - 1 - a->pad[1] : a->pad[1],
                        .w_first = turned ? (kh - 1) * of.of[2] + (kw - 1) * of.of[3] : 0,
                        .w_m = of.of[turned ? 1 : 0],
                        .w_f = of.of[turned ? 0 : 1],
                        .w_ky = turned ? -of.of[2] : of.of[2],
                        .w_kx = turned ? -of.of[3] : of.of[3]};
    return p->top >= 0 && p->left >= 0;
}

/* Blocks that share the sum over pixels: two a processor, each with at least four rows. */
static int weight_blocks(const lsi_cuda_device *d, const lsi_cuda_few *p)
{
    const int64_t rows = (int64_t)p->n * p->mh, tiles = p->m / 64, most = 2 * d->about.processors / tiles;
    const int64_t n = rows / 4 < most ? rows / 4 : most;

    return n > 1 ? (int)n : 1;
}

/* The kernel of this file for a node, or LS_UNSUPPORTED. */
static ls_status plan_few(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, ls_kernel *out,
                          ls_err *err)
{
    const ls_conv_attr *a = n->attr;
    const bool forward = n->op == &ls_op_conv2d, dx = n->op == &ls_op_conv2d_dx;
    const ls_vinfo *in0 = lsi_cuda_in(g, n, 0), *in1 = lsi_cuda_in(g, n, 1), *made = lsi_cuda_out(g, n, 0);
    const ls_vinfo *x = dx ? made : in0, *w = forward || dx ? in1 : made,
                   *y = forward ? made
                        : dx    ? in0
                                : in1;
    static void *const nothing[3];
    const ls_call none = {.in = nothing, .out = nothing};
    state s = {.dev = d, .biased = n->n_in > 2, .act = a->act, .slope = (float)a->slope};

    if (!describe(a, x, w, y, &s.p)) return LS_UNSUPPORTED;
    if (s.biased && lsi_cuda_in(g, n, 2)->dtype != LS_BF16) return LS_UNSUPPORTED;
    s.turned = s.p.w_ky < 0;
    s.pass = !forward && !dx ? WEIGHTS : forward == s.turned ? FROM_MANY : TO_MANY;
    s.blocks = weight_blocks(d, &s.p);
    s.p.ask = true;
    if (launch(&s, NULL, &none) != 0) return LS_UNSUPPORTED;
    s.p.ask = false;
    return lsi_cuda_kernel_make(out, run, &s, sizeof s,
                                s.pass == WEIGHTS ? lsi_few_weights_scratch(&s.p, s.blocks) : 0, "few", err);
}

/* -- the choice -------------------------------------------------------------------------------------------
 */

enum { MOST_INPUTS = 3, REPEATS = 5 };

typedef struct trial {
    const lsi_cuda_device *dev;
    const ls_graph *g;
    const ls_node *n;
    const ls_kernel *kernel; /* two of them */
    void *in[MOST_INPUTS], *out[1], *scratch;
    bool made;
} trial;

static size_t bytes_of(const ls_vinfo *v)
{
    return ls_layout_bytes(v->layout, v->dtype, v->shape) + 64;
}

/* Filled with numbers: zeros would be faster than what a network computes with. */
static bool make_tensors(trial *t)
{
    const lsi_cuda_api *api = t->dev->api;
    const size_t a = t->kernel[0].scratch_bytes, b = t->kernel[1].scratch_bytes;
    bool ok = api->alloc(&t->scratch, (a > b ? a : b) + 64) == 0 &&
              api->alloc(&t->out[0], bytes_of(lsi_cuda_out(t->g, t->n, 0))) == 0;

    for (int i = 0; i < t->n->n_in && ok; i++) {
        lsi_cuda_fill_args f = {.dtype = LS_BF16, .value = 0.37};
        f.count = (int64_t)(bytes_of(lsi_cuda_in(t->g, t->n, i)) / 2);
        ok = api->alloc(&t->in[i], bytes_of(lsi_cuda_in(t->g, t->n, i))) == 0;
        f.out = t->in[i];
        ok = ok && api->launch.fill(t->dev->now, &f) == 0;
    }
    t->made = true;
    return ok;
}

static bool try_kernel(void *ctx, int i)
{
    trial *t = ctx;
    ls_failure failure = {0};
    ls_stream listener = {&failure, 0};
    ls_call call = {.in = t->in, .out = t->out, .stream = &listener};

    if (!t->made && !make_tensors(t)) return false;
    call.scratch = t->scratch;
    for (int k = 0; k < REPEATS; k++) t->kernel[i].run(t->kernel[i].state, &call);
    return t->dev->api->stream_sync(t->dev->now) == 0 && !failure.told;
}

static int choose(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, const ls_kernel *kernel)
{
    static const char *const names[] = {"few", "library"};
    char problem[400], what[300];
    trial t = {.dev = d, .g = g, .n = n, .kernel = kernel};
    int best;

    if (d->base.fixed) return 0;
    ls_node_text(n, what, sizeof what);
    snprintf(problem, sizeof problem, "few %s batch%lld out%lldx%lld", what,
             (long long)lsi_cuda_in(g, n, 0)->shape.dim[0], (long long)lsi_cuda_out(g, n, 0)->shape.dim[0],
             (long long)lsi_cuda_out(g, n, 0)->shape.dim[1]);
    best = lsi_tune(d->tuner, &(lsi_candidates){problem, 2, names, 0, try_kernel, &t, &d->base});
    for (int i = 0; i < MOST_INPUTS; i++) d->api->free(t.in[i]);
    d->api->free(t.out[0]);
    d->api->free(t.scratch);
    return best;
}

ls_status lsi_cuda_plan_conv_few(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    ls_kernel kernel[2] = {{0}};
    ls_status st = plan_few(lsi_cuda_of(dev), g, n, &kernel[0], err);
    int best = 0;

    if (st == LS_UNSUPPORTED) return lsi_cuda_plan_conv(dev, g, n, out, err);
    if (st != LS_OK) return st;
    st = lsi_cuda_plan_conv(dev, g, n, &kernel[1], err);
    if (st == LS_OK)
        best = choose(lsi_cuda_of(dev), g, n, kernel);
    else if (st != LS_UNSUPPORTED)
        best = -1;
    for (int i = 0; i < 2; i++)
        if (i != best && kernel[i].destroy != NULL) kernel[i].destroy(kernel[i].state);
    if (best < 0) return st;
    *out = kernel[best];
    return LS_OK;
}
