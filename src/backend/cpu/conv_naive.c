/* conv_naive.c: the convolution that can do everything.
 *
 * Any layout, group count, dilation and padding; last in the list, so that every problem has an
 * implementation. The filter taps are the outer loops and a row of pixels the inner one, which the compiler
 * can vectorise for plain maps.  Each thread owns whole output planes (or whole filters), so sums never
 * depend on the thread count. */
#include "backend/cpu/conv_util.h"
#include "base/parallel.h"

typedef struct job {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
} job;

/* The taps of one filter row, seen by one row of outputs: y[ox] += sum over kx of w[kx] * x[ox*sw + kx*dw -
 * pl]. */
static void row_fwd(const lsi_conv_problem *p, const float *w, const float *x, float *y)
{
    const int64_t xs = lsi_pixel_stride(p->x_layout), ys = lsi_pixel_stride(p->y_layout);

    for (int kx = 0; kx < p->kw; kx++) {
        const int64_t offset = (int64_t)kx * p->dw - p->pl;
        int64_t lo, hi;
        lsi_conv_valid(offset, p->sw, p->wi, p->wo, &lo, &hi);
        for (int64_t ox = lo; ox < hi; ox++) y[ox * ys] += w[kx] * x[(ox * p->sw + offset) * xs];
    }
}

static void row_dx(const lsi_conv_problem *p, const float *w, float *x, const float *y)
{
    const int64_t xs = lsi_pixel_stride(p->x_layout), ys = lsi_pixel_stride(p->y_layout);

    for (int kx = 0; kx < p->kw; kx++) {
        const int64_t offset = (int64_t)kx * p->dw - p->pl;
        int64_t lo, hi;
        lsi_conv_valid(offset, p->sw, p->wi, p->wo, &lo, &hi);
        for (int64_t ox = lo; ox < hi; ox++) x[(ox * p->sw + offset) * xs] += w[kx] * y[ox * ys];
    }
}

static void epilogue(const lsi_conv_problem *p, float *plane, int64_t pixels, int64_t stride,
                     const float *bias)
{
    const float b = bias ? *bias : 0;

    for (int64_t i = 0; i < pixels; i++) plane[i * stride] = lsi_act(plane[i * stride] + b, p->act, p->slope);
}

static void fwd(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_conv_problem *p = j->p;
    const int64_t cig = p->ci / p->groups, cog = p->co / p->groups, taps = (int64_t)p->kh * p->kw;
    const int64_t xs = lsi_pixel_stride(p->x_layout), ys = lsi_pixel_stride(p->y_layout);
    int64_t lo, hi;

    ls_parallel_range(p->n * p->co, thread, n_threads, &lo, &hi);
    for (int64_t t = lo; t < hi; t++) {
        const int64_t s = t / p->co, o = t % p->co;
        float *y = j->a->y + lsi_plane_offset(p->y_layout, p->co, p->ho * p->wo, s, o);
        for (int64_t i = 0; i < p->ho * p->wo; i++) y[i * ys] = 0;
        for (int64_t i = 0; i < cig; i++) {
            const float *x =
                j->a->x + lsi_plane_offset(p->x_layout, p->ci, p->hi * p->wi, s, o / cog * cig + i);
            const float *w = j->a->w + (o * cig + i) * taps;
            for (int64_t oy = 0; oy < p->ho; oy++) {
                for (int ky = 0; ky < p->kh; ky++) {
                    const int64_t iy = oy * p->sh + (int64_t)ky * p->dh - p->pt;
                    if (iy < 0 || iy >= p->hi) continue;
                    row_fwd(p, w + (int64_t)ky * p->kw, x + iy * p->wi * xs, y + oy * p->wo * ys);
                }
            }
        }
        epilogue(p, y, p->ho * p->wo, ys, p->has_bias ? j->a->bias + o : NULL);
    }
}

static void dx(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_conv_problem *p = j->p;
    const int64_t cig = p->ci / p->groups, cog = p->co / p->groups, taps = (int64_t)p->kh * p->kw;
    const int64_t xs = lsi_pixel_stride(p->x_layout), ys = lsi_pixel_stride(p->y_layout);
    int64_t lo, hi;

    ls_parallel_range(p->n * p->ci, thread, n_threads, &lo, &hi);
    for (int64_t t = lo; t < hi; t++) {
        const int64_t s = t / p->ci, i = t % p->ci, group = i / cig;
        float *x = j->a->x + lsi_plane_offset(p->x_layout, p->ci, p->hi * p->wi, s, i);
        for (int64_t k = 0; k < p->hi * p->wi; k++) x[k * xs] = 0;
        for (int64_t o = group * cog; o < (group + 1) * cog; o++) {
            const float *y = j->a->y + lsi_plane_offset(p->y_layout, p->co, p->ho * p->wo, s, o);
            const float *w = j->a->w + (o * cig + i % cig) * taps;
            for (int64_t oy = 0; oy < p->ho; oy++) {
                for (int ky = 0; ky < p->kh; ky++) {
                    const int64_t iy = oy * p->sh + (int64_t)ky * p->dh - p->pt;
                    if (iy < 0 || iy >= p->hi) continue;
                    row_dx(p, w + (int64_t)ky * p->kw, x + iy * p->wi * xs, y + oy * p->wo * ys);
                }
            }
        }
        epilogue(p, x, p->hi * p->wi, xs, p->has_bias ? j->a->bias + i : NULL);
    }
}

/* One tap of one filter: rows are summed in fp32, rows into the total in double, since a total may have
 * millions of terms. */
static float tap_dw(const job *j, int64_t o, int64_t i, int ky, int kx)
{
    const lsi_conv_problem *p = j->p;
    const int64_t xs = lsi_pixel_stride(p->x_layout), ys = lsi_pixel_stride(p->y_layout);
    const int64_t off_y = (int64_t)ky * p->dh - p->pt, off_x = (int64_t)kx * p->dw - p->pl;
    int64_t y_lo, y_hi, x_lo, x_hi;
    double total = 0;

    lsi_conv_valid(off_y, p->sh, p->hi, p->ho, &y_lo, &y_hi);
    lsi_conv_valid(off_x, p->sw, p->wi, p->wo, &x_lo, &x_hi);
    for (int64_t s = 0; s < p->n; s++) {
        const float *x = j->a->x + lsi_plane_offset(p->x_layout, p->ci, p->hi * p->wi, s, i);
        const float *y = j->a->y + lsi_plane_offset(p->y_layout, p->co, p->ho * p->wo, s, o);
        for (int64_t oy = y_lo; oy < y_hi; oy++) {
            const float *xr = x + ((oy * p->sh + off_y) * p->wi + off_x) * xs;
            const float *yr = y + oy * p->wo * ys;
            float row = 0;
            for (int64_t ox = x_lo; ox < x_hi; ox++) row += yr[ox * ys] * xr[ox * p->sw * xs];
            total += (double)row;
        }
    }
    return (float)total;
}

static void dw(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_conv_problem *p = j->p;
    const int64_t cig = p->ci / p->groups, cog = p->co / p->groups;
    int64_t lo, hi;

    ls_parallel_range(p->co * cig * p->kh, thread, n_threads, &lo, &hi);
    for (int64_t t = lo; t < hi; t++) {
        const int64_t o = t / (cig * p->kh), i = t / p->kh % cig;
        for (int kx = 0; kx < p->kw; kx++)
            j->a->w[t * p->kw + kx] = tap_dw(j, o, o / cog * cig + i, (int)(t % p->kh), kx);
    }
}

static bool applicable(const lsi_conv_problem *p)
{
    (void)p;
    return true;
}

static void run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    job j = {p, a};

    (void)state;
    ls_parallel_run(p->threads, p->pass == LSI_CONV_FWD ? fwd : p->pass == LSI_CONV_DX ? dx : dw, &j);
}

const lsi_conv_impl lsi_conv_naive = {.name = "naive", .applicable = applicable, .run = run};
