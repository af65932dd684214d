/* few.c: convolutions and their gradients where one side has up to four channels and the other a multiple of
 * 64: f32, bf16, f16, channels last, no dilation or groups, equal strides; where the filter leads to few
 * channels, stride 1.  Kernels are compiled at run time for the problem (few_tiles.h); several divisions of
 * it and the library's kernels compete, and the fastest is remembered. */
#include <stdio.h>

#include "backend/cuda/choice.h"
#include "backend/cuda/compiled.h"
#include "backend/cuda/few_tiles.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

typedef struct state {
    const lsi_cuda_device *dev;
    bool turned; /* the filter leads to few channels */
    lsi_few_problem f;
    void *kernel;
    lsi_cuda_start start;
    int sums; /* WEIGHTS: blocks that leave some */
} state;

static int launch(const state *s, lsi_cuda_stream stream, const ls_call *call)
{
    const lsi_cuda_api *api = s->dev->api;
    /* Of x and dy, dy has the many channels unless the filter is turned around. */
    const int many = s->turned ? 0 : 1;
    lsi_few_arguments a = {.out = call->out[0], .n = s->f.p.n, .partial = call->scratch};
    int code;

    if (s->f.pass == LSI_FEW_WEIGHTS) {
        a.many = call->in[many];
        a.few = call->in[1 - many];
        code = api->start(stream, s->kernel, &s->start, &a);
        if (code != 0) return code;
        return api->launch.few_total(
            stream, &(lsi_cuda_few_total_args){s->f.p, s->f.dtype, call->scratch, call->out[0], s->sums});
    }
    a.few = a.many = call->in[0];
    a.weights = call->in[1];
    a.bias = s->f.biased ? call->in[2] : NULL;
    return api->start(stream, s->kernel, &s->start, &a);
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

/* Whether all are of one type and small enough to be counted with 32 bits. */
static bool alike(const ls_vinfo *x, const ls_vinfo *w, const ls_vinfo *y)
{
    const int64_t nx = ls_shape_count(x->shape), ny = ls_shape_count(y->shape);

    return lsi_cuda_computes(x->dtype) && w->dtype == x->dtype && y->dtype == x->dtype && last(x) &&
           last(y) && nx > 0 && ny > 0 && nx <= INT32_MAX && ny <= INT32_MAX;
}

/* The geometry of x, w, y as few.h has it; false where it has none. */
static bool describe(const ls_conv_attr *a, const ls_vinfo *x, const ls_vinfo *w, const ls_vinfo *y,
                     lsi_cuda_few *p)
{
    const ls_strides of = ls_layout_strides(w->layout, w->shape);
    const bool turned = y->shape.dim[1] <= 4; /* the filter leads to few channels */
    const ls_vinfo *few = turned ? y : x, *many = turned ? x : y;
    const int kh = (int)w->shape.dim[2], kw = (int)w->shape.dim[3];

    if (!alike(x, w, y)) return false;
    if (a->groups != 1 || a->dilation[0] != 1 || a->dilation[1] != 1 || a->stride[0] != a->stride[1])
        return false;
    if (few->shape.dim[1] > 4 || many->shape.dim[1] % 64 != 0 || many->shape.dim[1] == 0) return false;
    if (a->stride[0] > (turned ? 1 : 4) || kw * few->shape.dim[1] > 32 || kh > 16) return false;
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

/* All of the state but its kernel; false: the node is not for this file. */
static bool describe_node(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, state *s)
{
    const ls_conv_attr *a = n->attr;
    const bool forward = n->op == &ls_op_conv2d, dx = n->op == &ls_op_conv2d_dx;
    const ls_vinfo *in0 = lsi_cuda_in(g, n, 0), *in1 = lsi_cuda_in(g, n, 1), *made = lsi_cuda_out(g, n, 0);
    const ls_vinfo *x = dx ? made : in0, *w = forward || dx ? in1 : made,
                   *y = forward ? made
                        : dx    ? in0
                                : in1;

    *s = (state){.dev = d,
                 .f = {.dtype = x->dtype,
                       .exact = x->dtype == LS_F32 && !d->base.tf32,
                       .biased = n->n_in > 2,
                       .act = a->act,
                       .slope = (float)a->slope}};
    if (!describe(a, x, w, y, &s->f.p)) return false;
    if (s->f.biased && lsi_cuda_in(g, n, 2)->dtype != x->dtype) return false;
    s->turned = s->f.p.w_ky < 0;
    s->f.pass = !forward && !dx        ? LSI_FEW_WEIGHTS
                : forward == s->turned ? LSI_FEW_FROM_MANY
                                       : LSI_FEW_TO_MANY;
    return true;
}

/* -- the choice -------------------------------------------------------------------------------------------
 *
 * Candidates are divisions of the problem, then what the library has. */

typedef struct candidates {
    ls_device *dev;
    const ls_graph *g;
    const ls_node *n;
    state s;
    lsi_few_tile tile[LSI_FEW_TILES];
    int tiles;
} candidates;

static ls_status make(const void *ctx, int i, ls_kernel *out, ls_err *err)
{
    const candidates *c = ctx;
    const lsi_few_tile *tile = &c->tile[i];
    const char *const name = "few";
    state s = c->s;
    ls_text source = {0};
    bool made;

    if (i == c->tiles) return lsi_cuda_plan_conv(c->dev, c->g, c->n, out, err);
    lsi_few_source(&source, &s.f, tile);
    made = !source.failed &&
           lsi_cuda_compiled((lsi_cuda_device *)c->dev, "few", source.data, 1, &name, &s.kernel);
    ls_text_release(&source);
    if (!made) return LS_DEVICE;
    s.start = lsi_few_start(&s.f, tile, s.dev->about.processors);
    s.sums = lsi_few_sums(&s.f, tile);
    return lsi_cuda_kernel_make(out, run, &s, sizeof s, lsi_few_scratch(&s.f, tile), "few", err);
}

static void name_problem(const state *s, char *text, size_t n)
{
    static const char *const pass[] = {"to_many", "from_many", "weights"};
    const lsi_cuda_few *p = &s->f.p;

    snprintf(text, n,
             "few %s %s n%d few%dx%dx%d many%dx%dx%d k%dx%d stride%d at%d,%d turned%d after%d%d math%d",
             pass[s->f.pass], ls_dtype_name(s->f.dtype), p->n, p->h, p->w, p->f, p->mh, p->mw, p->m, p->kh,
             p->kw, p->stride, p->top, p->left, s->turned, s->f.biased, (int)s->f.act, s->f.exact);
}

ls_status lsi_cuda_plan_conv_few(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    const char *list[LSI_FEW_TILES + 1];
    candidates c = {.dev = dev, .g = g, .n = n};
    char problem[400];

    /* Without a compiler there is nothing to be compared, and nothing is remembered. */
    if (describe_node(lsi_cuda_of(dev), g, n, &c.s) && lsi_cuda_can_compile((lsi_cuda_device *)dev))
        c.tiles = lsi_few_tiles(&c.s.f, &(lsi_few_machine){c.s.dev->about.processors, c.s.dev->about.shared},
                                c.tile);
    if (c.tiles == 0) return lsi_cuda_plan_conv(dev, g, n, out, err);
    name_problem(&c.s, problem, sizeof problem);
    for (int i = 0; i < c.tiles; i++) list[i] = names[i];
    list[c.tiles] = "library";
    return lsi_cuda_choose(&(lsi_cuda_choice){dev, g, n, problem, c.tiles + 1, list, 0, make, &c}, out, err);
}
