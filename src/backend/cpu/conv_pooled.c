/* conv_pooled.c: the gradient of a convolution's weights through a max pool, from the positions that won.
 *
 * Of a 2x2 window three quarters of the gradient are zeros: neither they nor their products are made.  A
 * thread takes whole filters, so that sums do not depend on the number of threads. */
#include "backend/cpu/conv_pooled.h"

#include <string.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct pooled_state {
    ls_conv_pool_attr attr;
    int64_t n, c, h, w, o, ph, pw; /* x (n, c, h, w), dy (n, o, ph, pw) */
    int64_t pad_h, pad_w;          /* of a padded plane */
    int64_t offset[256];           /* by position in the window */
    int threads;
} pooled_state;

typedef struct pooled_call {
    const pooled_state *s;
    const ls_call *call;
} pooled_call;

static int64_t plane_floats(const pooled_state *s)
{
    return s->pad_h * s->pad_w + LSI_POOLED_SLACK;
}

/* All planes of x with their zeros and their slack; each thread makes some of them. */
static void pad_thread(int thread, int n_threads, void *arg)
{
    const pooled_call *c = arg;
    const pooled_state *s = c->s;
    int64_t lo, hi;

    ls_parallel_range(s->n * s->c, thread, n_threads, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        const float *from = (const float *)c->call->in[0] + p * s->h * s->w;
        float *to = (float *)c->call->scratch + p * plane_floats(s);
        memset(to, 0, (size_t)plane_floats(s) * sizeof *to);
        to += s->attr.conv.pad[0] * s->pad_w + s->attr.conv.pad[1];
        for (int64_t y = 0; y < s->h; y++)
            memcpy(to + y * s->pad_w, from + y * s->w, (size_t)s->w * sizeof *to);
    }
}

static void filter(const pooled_call *c, int64_t o, int64_t channel)
{
    const pooled_state *s = c->s;
    const ls_pool_attr *pool = &s->attr.pool;
    const int64_t kh = s->attr.conv.kernel[0], kw = s->attr.conv.kernel[1];
    float sums[LSI_POOLED_TAPS][LSI_POOLED_TAPS] = {{0}};
    float *dw = (float *)c->call->out[0] + (o * s->c + channel) * kh * kw;

    for (int64_t n = 0; n < s->n; n++) {
        const int64_t at = (n * s->o + o) * s->ph * s->pw;
        const lsi_pooled_plane p = {
            .x = (const float *)c->call->scratch + (n * s->c + channel) * plane_floats(s),
            .dy = (const float *)c->call->in[1] + at,
            .index = (const uint8_t *)c->call->in[2] + at,
            .pitch = s->pad_w,
            .ph = s->ph,
            .pw = s->pw,
            .origin = -pool->pad[0] * s->pad_w - pool->pad[1],
            .step_y = pool->stride[0] * s->pad_w,
            .step_x = pool->stride[1],
            .offset = s->offset,
        };
        lsi_pooled_add_avx2(&p, kh, sums);
    }
    for (int64_t ky = 0; ky < kh; ky++) memcpy(dw + ky * kw, sums[ky], (size_t)kw * sizeof *dw);
}

static void filters_thread(int thread, int n_threads, void *arg)
{
    const pooled_call *c = arg;
    int64_t lo, hi;

    ls_parallel_range(c->s->o * c->s->c, thread, n_threads, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) filter(c, i / c->s->c, i % c->s->c);
}

static void run(void *state, const ls_call *call)
{
    const pooled_state *s = state;
    pooled_call c = {s, call};

    ls_parallel_run(s->threads, pad_thread, &c);
    ls_parallel_run(s->threads, filters_thread, &c);
}

static bool supported(const ls_conv_attr *a)
{
    return lsi_has_avx2() && a->groups == 1 && a->stride[0] == 1 && a->stride[1] == 1 &&
           a->dilation[0] == 1 && a->dilation[1] == 1 && a->kernel[0] <= LSI_POOLED_TAPS &&
           a->kernel[1] <= LSI_POOLED_TAPS;
}

ls_status lsi_plan_conv_dw_pooled(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    const ls_conv_pool_attr *a = n->attr;
    const ls_vinfo *x = lsi_in(g, n, 0), *dy = lsi_in(g, n, 1);
    pooled_state s = {.attr = *a,
                      .n = x->shape.dim[0],
                      .c = x->shape.dim[1],
                      .h = x->shape.dim[2],
                      .w = x->shape.dim[3],
                      .o = dy->shape.dim[1],
                      .ph = dy->shape.dim[2],
                      .pw = dy->shape.dim[3]};

    if (!supported(&a->conv) || !lsi_ins_are(g, n, 0, 2, LS_F32, &ls_layout_plain) ||
        !lsi_outs_are(g, n, 0, 1, LS_F32, &ls_layout_plain))
        return LS_UNSUPPORTED;
    s.pad_h = s.h + a->conv.pad[0] + a->conv.pad[2];
    s.pad_w = s.w + a->conv.pad[1] + a->conv.pad[3];
    s.threads = lsi_threads_for(dev, s.n * s.o * s.ph * s.pw * s.c * 16);
    for (int i = 0; i < a->pool.kernel[0] * a->pool.kernel[1]; i++)
        s.offset[i] = i / a->pool.kernel[1] * s.pad_w + i % a->pool.kernel[1];
    return lsi_kernel_make(out, run, &s, sizeof s, (size_t)(s.n * s.c * plane_floats(&s)) * sizeof(float),
                           "winners_avx2", err);
}
