/* test_conv_impls.c: every convolution implementation against plain loops in double.
 *
 * The case list meets every pass, layout pair, epilogue and thread count; each implementation runs everything
 * it calls applicable.  Guard bytes surround what it may write; a second run must give the same bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/conv_util.h"
#include "base/alloc.h"
#include "check.h"
#include "conv_case.h"

/* Which cases: all with clang; every second with the address sanitizer; every fourth with gcc alone, where
 * the argument "rest" takes the others; every sixth with ThreadSanitizer, which is there for the threads, and
 * these are used by all cases in the same way. */
#ifdef __SANITIZE_THREAD__
enum { STRIDE = 6 };
#elif defined(__clang__)
enum { STRIDE = 1 };
#elif defined(__SANITIZE_ADDRESS__)
enum { STRIDE = 2 };
#else
enum { STRIDE = 4 };
#endif
static bool rest;

static const conv_case cases[] = {
    {"one", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"empty batch", 0, 3, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"empty batch blocked", 0, 16, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"primes", 3, 5, 11, 13, 7, 3, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"primes padded", 2, 3, 7, 11, 5, 5, 3, 1, 1, 1, 1, 2, 1, 2, 1, 1},
    {"1x1 map", 2, 16, 1, 1, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"1x1 map, batch", 17, 32, 1, 1, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"2x2 map", 31, 16, 2, 2, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"2x2 map halved", 29, 16, 2, 2, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"4x4 map", 15, 48, 4, 4, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"long row", 2, 16, 1, 131, 48, 1, 3, 1, 1, 1, 1, 0, 1, 0, 1, 1},
    {"many channels", 2, 176, 3, 2, 176, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"many channels, stride 2", 1, 80, 5, 5, 96, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 1},
    {"many tiles", 950, 16, 1, 1, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"6x6 stride 2", 2, 16, 13, 12, 16, 6, 6, 2, 2, 1, 1, 2, 2, 2, 2, 1},
    {"pad beyond filter", 1, 16, 5, 6, 16, 3, 3, 1, 1, 1, 1, 4, 3, 3, 5, 1},
    {"1x1 filter", 2, 32, 7, 5, 16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"1x1 stride 2", 2, 32, 9, 6, 48, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1},
    {"3x3 same", 2, 32, 14, 14, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 odd map", 3, 16, 13, 17, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 valid", 2, 48, 9, 10, 16, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"3x3 valid, whole tiles", 5, 16, 10, 14, 32, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"3x3 many tiles", 17, 16, 13, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 stride 2 many tiles", 65, 16, 9, 10, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"1x5 many tiles", 2, 16, 1, 519, 16, 1, 5, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"3x3 asymmetric", 2, 16, 8, 9, 16, 3, 3, 1, 1, 1, 1, 0, 1, 2, 0, 1},
    {"3x3 stride 2", 2, 16, 15, 12, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 dilated", 2, 16, 12, 11, 16, 3, 3, 1, 1, 2, 3, 2, 3, 2, 3, 1},
    {"4x4 stride 2", 2, 16, 12, 14, 32, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"4x4 stride 1", 1, 32, 9, 9, 16, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"5x5 stride 2 same", 2, 16, 16, 16, 32, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 1},
    {"5x5 stride 2 odd", 2, 32, 11, 13, 16, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2, 1},
    {"stride 2x1", 2, 16, 9, 9, 16, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1},
    {"stride beyond filter", 2, 16, 11, 11, 16, 2, 2, 3, 3, 1, 1, 0, 0, 0, 0, 1},
    {"unused border", 1, 16, 12, 12, 16, 3, 3, 4, 4, 1, 1, 0, 0, 0, 0, 1},
    {"filter beyond map", 1, 16, 2, 3, 16, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 1},
    {"groups", 2, 6, 9, 8, 10, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2},
    {"groups strided", 2, 9, 10, 10, 6, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 3},
    {"depthwise", 1, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 16},
    {"wide row", 1, 3, 1, 101, 32, 1, 5, 1, 1, 1, 1, 0, 2, 0, 2, 1},
    {"point cloud", 3, 3, 1, 67, 64, 1, 5, 1, 1, 1, 1, 0, 2, 0, 2, 1},
    {"mnist net-p 1", 3, 1, 28, 28, 10, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"mnist net-p 2", 5, 10, 12, 12, 20, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"mnist net-t 1", 3, 1, 28, 28, 32, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"resnet stem", 2, 3, 32, 32, 64, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1},
    {"resnet stem wide", 1, 3, 17, 70, 16, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1},
    {"dcgan d h0", 2, 1, 32, 32, 64, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 1},
    {"dcgan two channels", 1, 2, 20, 37, 32, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 1},
    {"cyclegan first", 1, 3, 22, 38, 64, 7, 7, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"cyclegan last", 1, 64, 20, 37, 3, 7, 7, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"cyclegan last padded", 2, 32, 9, 19, 3, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3, 1},
    {"patchgan first", 2, 3, 24, 24, 64, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"patchgan last", 2, 96, 8, 9, 1, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"four channels out", 2, 16, 9, 33, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"strided few out", 2, 16, 13, 29, 2, 3, 3, 2, 2, 1, 1, 1, 0, 0, 1, 1},
    {"few in dilated", 2, 4, 13, 21, 16, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 1},
    {"few in 9x9 stride 3", 2, 3, 25, 40, 16, 9, 9, 3, 3, 1, 1, 4, 4, 4, 4, 1},
    {"few in stride 2 dilated", 1, 3, 23, 41, 32, 3, 5, 2, 2, 2, 3, 2, 4, 1, 5, 1},
    {"few in wide filter", 2, 2, 9, 90, 48, 2, 11, 1, 2, 1, 1, 1, 3, 0, 2, 1},
    {"few in unused border", 1, 3, 14, 14, 16, 3, 3, 4, 2, 1, 1, 0, 0, 0, 0, 1},
    {"few out wide", 1, 48, 6, 150, 5, 8, 4, 1, 1, 1, 2, 3, 2, 4, 1, 1},
    {"few both", 2, 4, 12, 40, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"few both batch 17", 17, 3, 9, 10, 7, 3, 4, 1, 1, 1, 1, 1, 2, 1, 0, 1},
    {"few both batch 33", 33, 6, 8, 8, 11, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"few both strided", 3, 2, 15, 31, 6, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"few both dilated", 2, 3, 12, 18, 9, 3, 3, 1, 1, 2, 3, 0, 1, 2, 0, 1},
};

typedef struct epilogue {
    bool has_bias;
    lsi_conv_act act;
} epilogue;

static const epilogue epilogues[] = {{false, LSI_ACT_NONE},
                                     {true, LSI_ACT_NONE},
                                     {true, LSI_ACT_RELU},
                                     {false, LSI_ACT_LEAKY},
                                     {true, LSI_ACT_TANH}};

enum { GUARD = 256, GUARD_BYTE = 0x5a, MAX_IMPLS = 64 };

typedef struct counts {
    bool second_isa; /* only the implementations that choose their instruction set when they run */
    int64_t runs[MAX_IMPLS];
    double worst[MAX_IMPLS]; /* error / tolerance */
} counts;

/* A buffer with guard bytes on both sides; `data` is aligned to 64. */
typedef struct guarded {
    unsigned char *base;
    void *data;
    size_t bytes;
} guarded;

static guarded guarded_make(size_t bytes)
{
    guarded g = {.bytes = bytes};

    g.base = ls_alloc(LS_MEM_TEST, bytes + 2 * GUARD);
    REQUIRE(g.base != NULL);
    memset(g.base, GUARD_BYTE, bytes + 2 * GUARD);
    g.data = g.base + GUARD;
    return g;
}

static bool guarded_intact(const guarded *g)
{
    for (size_t i = 0; i < GUARD; i++)
        if (g->base[i] != GUARD_BYTE || g->base[GUARD + g->bytes + i] != GUARD_BYTE) return false;
    return true;
}

static float random_value(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static double *doubles(int64_t n)
{
    double *d = ls_alloc(LS_MEM_TEST, (size_t)n * sizeof *d);

    REQUIRE(d != NULL);
    return d;
}

/* The three tensors in plain layout, as doubles that are exact in fp32. */
typedef struct tensors {
    double *x, *w, *y, *bias;
    int64_t nx, nw, ny, n_bias;
} tensors;

static void fill(double *d, int64_t n, uint32_t *seed)
{
    for (int64_t i = 0; i < n; i++) d[i] = (double)random_value(seed);
}

static void tensors_make(tensors *t, const lsi_conv_problem *p)
{
    uint32_t seed = 12345;

    t->nx = p->n * p->ci * p->hi * p->wi;
    t->nw = p->co * (p->ci / p->groups) * p->kh * p->kw;
    t->ny = p->n * p->co * p->ho * p->wo;
    t->n_bias = p->ci > p->co ? p->ci : p->co;
    t->x = doubles(t->nx);
    t->w = doubles(t->nw);
    t->y = doubles(t->ny);
    t->bias = doubles(t->n_bias);
    fill(t->x, t->nx, &seed);
    fill(t->w, t->nw, &seed);
    fill(t->y, t->ny, &seed);
    fill(t->bias, t->n_bias, &seed);
}

static void tensors_release(tensors *t)
{
    ls_free(t->x);
    ls_free(t->w);
    ls_free(t->y);
    ls_free(t->bias);
}

/* The definition in conv.h, term by term; `out` is the tensor the pass writes, starting at zero. */
static void reference(const lsi_conv_problem *p, const tensors *t, double *out)
{
    const int64_t cig = p->ci / p->groups, cog = p->co / p->groups;

    for (int64_t s = 0; s < p->n; s++)
        for (int64_t o = 0; o < p->co; o++)
            for (int64_t oy = 0; oy < p->ho; oy++)
                for (int64_t ox = 0; ox < p->wo; ox++)
                    for (int64_t i = 0; i < cig; i++)
                        for (int64_t ky = 0; ky < p->kh; ky++)
                            for (int64_t kx = 0; kx < p->kw; kx++) {
                                const int64_t iy = oy * p->sh + ky * p->dh - p->pt;
                                const int64_t ix = ox * p->sw + kx * p->dw - p->pl;
                                if (iy < 0 || iy >= p->hi || ix < 0 || ix >= p->wi) continue;
                                const int64_t at_x =
                                    ((s * p->ci + o / cog * cig + i) * p->hi + iy) * p->wi + ix;
                                const int64_t at_w = ((o * cig + i) * p->kh + ky) * p->kw + kx;
                                const int64_t at_y = ((s * p->co + o) * p->ho + oy) * p->wo + ox;
                                if (p->pass == LSI_CONV_FWD) out[at_y] += t->x[at_x] * t->w[at_w];
                                if (p->pass == LSI_CONV_DX) out[at_x] += t->y[at_y] * t->w[at_w];
                                if (p->pass == LSI_CONV_DW) out[at_w] += t->x[at_x] * t->y[at_y];
                            }
}

static double act(double v, const lsi_conv_problem *p)
{
    switch (p->act) {
    case LSI_ACT_RELU: return v > 0 ? v : 0;
    case LSI_ACT_LEAKY: return v > 0 ? v : (double)p->slope * v;
    case LSI_ACT_TANH: return tanh(v);
    case LSI_ACT_NONE: break;
    }
    return v;
}

/* Plain index of a map's element to its index in `layout`. */
static int64_t map_index(const ls_layout *layout, int64_t channels, int64_t pixels, int64_t i)
{
    const int64_t s = i / (channels * pixels), c = i / pixels % channels, px = i % pixels;

    return lsi_plane_offset(layout, channels, pixels, s, c) + px * lsi_pixel_stride(layout);
}

static void store_map(float *to, const double *from, const ls_layout *layout, int64_t n, int64_t channels,
                      int64_t pixels)
{
    for (int64_t i = 0; i < n * channels * pixels; i++)
        to[map_index(layout, channels, pixels, i)] = (float)from[i];
}

/* The buffers one implementation works on. */
typedef struct buffers {
    guarded x, w, y, bias, scratch;
} buffers;

static void buffers_make(buffers *b, const lsi_conv_problem *p, const tensors *t, size_t scratch)
{
    b->x = guarded_make((size_t)t->nx * 4);
    b->w = guarded_make((size_t)t->nw * 4);
    b->y = guarded_make((size_t)t->ny * 4);
    b->bias = guarded_make((size_t)t->n_bias * 4);
    b->scratch = guarded_make(scratch);
    if (p->pass != LSI_CONV_DX) store_map(b->x.data, t->x, p->x_layout, p->n, p->ci, p->hi * p->wi);
    if (p->pass != LSI_CONV_FWD) store_map(b->y.data, t->y, p->y_layout, p->n, p->co, p->ho * p->wo);
    for (int64_t i = 0; i < t->nw && p->pass != LSI_CONV_DW; i++) ((float *)b->w.data)[i] = (float)t->w[i];
    for (int64_t i = 0; i < t->n_bias; i++) ((float *)b->bias.data)[i] = (float)t->bias[i];
}

static void buffers_release(buffers *b)
{
    ls_free(b->x.base);
    ls_free(b->w.base);
    ls_free(b->y.base);
    ls_free(b->bias.base);
    ls_free(b->scratch.base);
}

/* Terms are uniform in (-1, 1)^2, so results have size sqrt(length)/3 and rounding errors of a sum in fp32
 * stay below a few eps * sqrt(length); the transforms of Winograd F(4, 3) enlarge them up to tenfold. */
static double error_factor(const lsi_conv_impl *impl)
{
    return strstr(impl->name, "wino") || strcmp(impl->name, "s2d") == 0 ? 50 : 25;
}

/* Largest error of the output in units of the tolerance. */
static double compare(const lsi_conv_impl *impl, const lsi_conv_problem *p, const tensors *t,
                      const double *want, const buffers *b)
{
    const int64_t cig = p->ci / p->groups, cog = p->co / p->groups, taps = (int64_t)p->kh * p->kw;
    const bool is_y = p->pass == LSI_CONV_FWD;
    const int64_t channels = is_y ? p->co : p->ci, pixels = is_y ? p->ho * p->wo : p->hi * p->wi;
    const int64_t length = is_y ? cig * taps : p->pass == LSI_CONV_DX ? cog * taps : p->n * p->ho * p->wo;
    const double tol = error_factor(impl) * 1.2e-7 * sqrt((double)length + 1);
    double worst = 0;

    if (p->pass == LSI_CONV_DW) {
        for (int64_t i = 0; i < t->nw; i++) {
            const double e = fabs((double)((float *)b->w.data)[i] - want[i]) / tol;
            if (!(e <= worst)) worst = e;
        }
        return worst;
    }
    for (int64_t i = 0; i < p->n * channels * pixels; i++) {
        const double v = act(want[i] + (p->has_bias ? t->bias[i / pixels % channels] : 0), p);
        const float *out = is_y ? b->y.data : b->x.data;
        const double got = (double)out[map_index(is_y ? p->y_layout : p->x_layout, channels, pixels, i)];
        const double e = fabs(got - v) / tol;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void print_problem(const char *impl, const char *name, const lsi_conv_problem *p)
{
    static const char *const passes[] = {"fwd", "dx", "dw"};

    fprintf(stderr, "%s on \"%s\": %s, x %s, y %s, bias %d, act %d, threads %d\n", impl, name,
            passes[p->pass], p->x_layout->name, p->y_layout->name, p->has_bias, (int)p->act, p->threads);
}

static void run_impl(const lsi_conv_impl *impl, const char *name, const lsi_conv_problem *p, const tensors *t,
                     const double *want, int64_t *runs, double *worst_so_far)
{
    buffers b;
    ls_err err = {0};
    void *state = NULL;
    double worst;

    if (!impl->applicable(p)) return;
    buffers_make(&b, p, t, impl->scratch ? impl->scratch(p) : 0);
    if (impl->create) REQUIRE_OK(impl->create(&state, p, &err), &err);
    const lsi_conv_args args = {b.x.data, b.w.data,       p->has_bias ? b.bias.data : NULL,
                                b.y.data, b.scratch.data, NULL};
    const guarded *out = p->pass == LSI_CONV_FWD ? &b.y : p->pass == LSI_CONV_DX ? &b.x : &b.w;
    float *first = ls_alloc(LS_MEM_TEST, out->bytes);
    REQUIRE(first != NULL);

    memset(out->data, 0xff, out->bytes); /* NaNs: accumulating into old contents must not pass */
    impl->run(state, p, &args);
    worst = compare(impl, p, t, want, &b);
    memcpy(first, out->data, out->bytes);
    memset(out->data, 0xff, out->bytes);
    memset(b.scratch.data, 0xff, b.scratch.bytes);
    impl->run(state, p, &args);
    bool held = CHECK(worst <= 1);
    held = CHECK_EQ_MEM(first, out->data, out->bytes) && held;
    held = CHECK(guarded_intact(&b.x) && guarded_intact(&b.w) && guarded_intact(&b.y) &&
                 guarded_intact(&b.bias) && guarded_intact(&b.scratch)) &&
           held;
    if (!held) {
        print_problem(impl->name, name, p);
        fprintf(stderr, "  error / tolerance: %g\n", worst);
    }
    (*runs)++;
    if (worst > *worst_so_far) *worst_so_far = worst;
    if (impl->destroy) impl->destroy(state);
    ls_free(first);
    buffers_release(&b);
}

/* Whether LOCKSTEP_CPU_ISA changes what the implementation runs. */
static bool chooses_isa(const lsi_conv_impl *impl)
{
    static const char *const names[] = {"wino", "s2d", "direct_c16"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(impl->name, names[i]) == 0) return true;
    return false;
}

/* All layouts and epilogues of one pass of one case, each with one of the thread counts. */
static void run_variants(const conv_case *c, lsi_conv_problem p, const tensors *t, const double *want,
                         counts *n)
{
    const bool dw = p.pass == LSI_CONV_DW; /* no epilogue, but both thread counts */
    const size_t n_epilogues = dw ? 2 : sizeof epilogues / sizeof *epilogues;

    for (int l = 0; l < 4; l++) {
        p.x_layout = l & 1 ? &lsi_layout_c16 : &ls_layout_plain;
        p.y_layout = l & 2 ? &lsi_layout_c16 : &ls_layout_plain;
        if (p.x_layout == &lsi_layout_c16 && p.ci % 16) continue;
        if (p.y_layout == &lsi_layout_c16 && p.co % 16) continue;
        for (size_t e = 0; e < n_epilogues; e++) {
            /* Under a sanitizer every case and layout meets one epilogue, with threads. */
            if (check_is_slow_build() && e != ((size_t)(c - cases) + (size_t)l) % n_epilogues) continue;
            p.has_bias = !dw && epilogues[e].has_bias;
            p.act = dw ? LSI_ACT_NONE : epilogues[e].act;
            p.threads = check_is_slow_build() ? 2 : 1 + (int)(e + (size_t)l / 3) % 2;
            for (int i = 0; lsi_conv_impls[i]; i++) {
                if (n->second_isa && !chooses_isa(lsi_conv_impls[i])) continue;
                run_impl(lsi_conv_impls[i], c->name, &p, t, want, &n->runs[i], &n->worst[i]);
            }
        }
    }
}

static void run_pass(lsi_conv_pass pass, counts *n)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        if ((k % STRIDE == 0) == rest) continue;
        const lsi_conv_problem p = conv_problem_of(&cases[k], pass);
        tensors t;
        tensors_make(&t, &p);
        double *want = doubles(pass == LSI_CONV_FWD ? t.ny : pass == LSI_CONV_DX ? t.nx : t.nw);
        reference(&p, &t, want);
        run_variants(&cases[k], p, &t, want, n);
        ls_free(want);
        tensors_release(&t);
    }
}

static void print_counts(const char *pass, const counts *n)
{
    for (int i = 0; lsi_conv_impls[i]; i++) {
        if (n->second_isa && !chooses_isa(lsi_conv_impls[i])) continue;
        printf("%-4s %-16s %5lld problems, worst error %.3f of tolerance\n", pass, lsi_conv_impls[i]->name,
               (long long)n->runs[i], n->worst[i]);
    }
}

static void test_fwd(void)
{
    counts n = {0};

    run_pass(LSI_CONV_FWD, &n);
    print_counts("fwd", &n);
}

static void test_dx(void)
{
    counts n = {0};

    run_pass(LSI_CONV_DX, &n);
    print_counts("dx", &n);
}

static void test_dw(void)
{
    counts n = {0};

    run_pass(LSI_CONV_DW, &n);
    print_counts("dw", &n);
}

/* A result so large that it may be written past the caches: 1x1, so that every value is one product. */
static void test_large_result(void)
{
    enum { N = 4, SIDE = 256, CO = 16, PIXELS = SIDE * SIDE };
    const conv_case c = {"large", N, 1, SIDE, SIDE, CO, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1};
    lsi_conv_problem p = conv_problem_of(&c, LSI_CONV_FWD);
    tensors t;

    p.x_layout = &ls_layout_plain;
    p.y_layout = &lsi_layout_c16;
    p.has_bias = true;
    p.act = LSI_ACT_LEAKY;
    p.threads = 2;
    tensors_make(&t, &p);
    for (int64_t i = 0; i < t.ny; i++) /* the reference needs no loop over taps here */
        t.y[i] = t.x[i / (CO * PIXELS) * PIXELS + i % PIXELS] * t.w[i / PIXELS % CO];
    for (int i = 0; lsi_conv_impls[i]; i++) {
        int64_t runs = 0;
        double worst = 0;
        run_impl(lsi_conv_impls[i], c.name, &p, &t, t.y, &runs, &worst);
    }
    tensors_release(&t);
}

/* AVX2 where AVX-512 would be chosen. */
static void test_avx2(void)
{
    static const char *const names[] = {"fwd", "dx", "dw"};

    setenv("LOCKSTEP_CPU_ISA", "avx2", 1);
    for (int pass = LSI_CONV_FWD; pass <= LSI_CONV_DW; pass++) {
        counts n = {.second_isa = true};
        run_pass((lsi_conv_pass)pass, &n);
        print_counts(names[pass], &n);
    }
    unsetenv("LOCKSTEP_CPU_ISA");
}

int main(int argc, char **argv)
{
    int n_impls = 0;

    rest = argc > 1 && strcmp(argv[1], "rest") == 0;
    while (lsi_conv_impls[n_impls]) n_impls++;
    REQUIRE(n_impls <= MAX_IMPLS);
    CHECK_RUN(test_fwd);
    CHECK_RUN(test_dx);
    CHECK_RUN(test_dw);
    if (!rest) CHECK_RUN(test_large_result);
    CHECK_RUN(test_avx2);
    return CHECK_DONE();
}
