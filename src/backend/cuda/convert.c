/* convert.c: casts and reorders of many tensors in one launch: f32, bf16 and f16; each stays as it lies, or
 * goes from plain to channels last or back. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/places.h"
#include "backend/cuda/planners.h"

typedef struct convert_state {
    const lsi_cuda_device *dev;
    lsi_cuda_convert_args args;
    lsi_cuda_converted tensors[];
} convert_state;

static void run(void *opaque, const ls_call *call)
{
    convert_state *s = opaque;
    lsi_cuda_convert_args a = s->args;

    for (int i = 0; i < a.n; i++) {
        s->tensors[i].in = call->in[i];
        s->tensors[i].out = call->out[i];
    }
    a.tensors = s->tensors;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.convert(lsi_cuda_stream_of(s->dev, call), &a));
}

enum { ACCESS = 8 }; /* elements: of whole accesses on either side */

static int64_t rounded_up(int64_t n, int64_t d)
{
    return (n + d - 1) / d;
}

/* As many channels for each tile, in whole accesses of both sides where they are that many. */
static int32_t even_shares(int32_t channels, int32_t most)
{
    const int64_t tiles = rounded_up(channels, most), share = rounded_up(channels, tiles);
    const int64_t whole = rounded_up(share, ACCESS) * ACCESS;

    return (int32_t)(whole <= most ? whole : share);
}

/* How tensor number i is divided; the number of its tiles, or -1 where there is no kernel for it. */
static int64_t divide(const ls_graph *g, const ls_node *n, int i, lsi_cuda_converted *t)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, i), *y = lsi_cuda_out(g, n, i);
    const int64_t count = ls_shape_count(x->shape);
    lsi_cuda_map m = {.n = 1, .c = count, .s = 1};

    if (count > INT32_MAX || (x->layout != &ls_layout_plain && x->layout != &ls_layout_nhwc) ||
        (y->layout != &ls_layout_plain && y->layout != &ls_layout_nhwc))
        return -1;
    *t = (lsi_cuda_converted){.in_last = x->layout == &ls_layout_nhwc,
                              .out_last = y->layout == &ls_layout_nhwc};
    if (t->in_last == t->out_last)
        t->in_last = t->out_last = 0; /* as it lies: one row of channels */
    else
        m = lsi_cuda_map_of(t->in_last ? x : y);
    t->outer = (int32_t)m.n;
    t->channels = (int32_t)m.c;
    t->inner = (int32_t)m.s;
    if (m.s > LSI_CONVERT_TILE && t->out_last && m.c <= LSI_CONVERT_TILE) {
        t->pixels = (int32_t)(LSI_CONVERT_TILE / m.c);
        if (t->pixels > ACCESS) t->pixels = t->pixels / ACCESS * ACCESS;
        return m.n * rounded_up(m.s, t->pixels);
    }
    if (m.s > LSI_CONVERT_TILE) return -1;
    t->across = (int32_t)(LSI_CONVERT_TILE / m.s < m.c ? LSI_CONVERT_TILE / m.s : m.c);
    if (t->across < t->channels && t->inner > 1) t->across = even_shares(t->channels, t->across);
    t->outers = t->across < t->channels ? 1 : LSI_CONVERT_TILE / (t->channels * t->inner);
    if (t->outers > t->outer) t->outers = t->outer;
    return rounded_up(t->outer, t->outers) * rounded_up(t->channels, t->across);
}

ls_status lsi_cuda_plan_convert(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    convert_state *s;

    (void)err;
    for (int i = 0; i < n->n_in; i++)
        if (!lsi_cuda_computes(lsi_cuda_in(g, n, i)->dtype) ||
            !lsi_cuda_computes(lsi_cuda_out(g, n, i)->dtype) ||
            lsi_cuda_in(g, n, i)->dtype != lsi_cuda_in(g, n, 0)->dtype ||
            ls_shape_count(lsi_cuda_in(g, n, i)->shape) == 0)
            return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s + (size_t)n->n_in * sizeof s->tensors[0]);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    *s = (convert_state){.dev = lsi_cuda_of(dev),
                         .args = {.from = lsi_cuda_in(g, n, 0)->dtype,
                                  .to = ((const ls_cast_attr *)n->attr)->to,
                                  .n = n->n_in}};
    for (int i = 0; i < n->n_in; i++) {
        const int64_t tiles = divide(g, n, i, &s->tensors[i]);
        s->tensors[i].first = (int32_t)s->args.tiles;
        if (tiles < 0 || s->args.tiles + tiles > INT32_MAX) {
            ls_free(s);
            return LS_UNSUPPORTED;
        }
        s->args.tiles += tiles;
    }
    *out = (ls_kernel){.run = run, .destroy = ls_free, .state = s, .impl = "tiles"};
    return LS_OK;
}
