/* conv_b16.h: convolutions as products of bf16 numbers (b16.h): the geometry that all passes share.
 *
 * The map that is read is copied into *planes* of bf16 with zeros around it, in which every tap of the filter
 * is a constant distance: with pixels counted through a plane, row by row, 32 consecutive pixels at distance
 * `tap` are the rows of A.  A stride s splits the map that is read (forward) or produced (gradient of the
 * input) into s x s phases.  Pixels that lie in the margin of a plane's row are computed, too, and not
 * stored. */
#ifndef LS_BACKEND_CPU_CONV_B16_H
#define LS_BACKEND_CPU_CONV_B16_H

#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"

/* Whether a convolution can be made of such products at all: here, and of the types it has. */
static inline bool lsi_b16_conv_fits(const lsi_conv_problem *p)
{
    return !lsi_conv_is_f32(p) && p->groups == 1 && lsi_b16_kernels_here() != NULL &&
           lsi_b16_type(p->x_type) && lsi_b16_type(p->y_type) && lsi_b16_type(p->w_type) &&
           lsi_b16_type(p->bias_type);
}

/* One of the two directions of an image.  Position u of phase f of a plane shows position u * mul + f + base
 * of the map that is read; position q of phase r of the results is q * out_mul + r + out_base of the map
 * produced. */
typedef struct lsi_b16_axis {
    int64_t read, made; /* sizes of the maps */
    int64_t results;    /* positions q of a phase */
    int64_t halo;       /* taps reach so far beyond them */
    int64_t shared;     /* zeros behind the end that are left out, because the next row begins with as many */
    int in_phases, out_phases;
    int64_t mul, base, out_mul, out_base;
    int taps, dil, stride;
    bool fwd;
} lsi_b16_axis;

/* Where tap k reads: phase of a plane and distance; *out_phase: the results that it serves. */
static inline void lsi_b16_tap(const lsi_b16_axis *x, int k, int *in_phase, int64_t *distance, int *out_phase)
{
    const int at = k * x->dil, phase = at % x->stride, whole = at / x->stride;

    *in_phase = x->fwd ? phase : 0;
    *out_phase = x->fwd ? 0 : phase;
    *distance = x->fwd ? whole : x->halo - whole;
}

static inline int64_t lsi_b16_plane(const lsi_b16_axis *x)
{
    return x->results + x->halo - x->shared;
}

/* In a plane that is the map itself with zeros around it, a row's last zeros are the next one's first. */
static inline lsi_b16_axis lsi_b16_share(lsi_b16_axis x)
{
    const int64_t before = -x.base, behind = x.results + x.halo - before - x.read;

    if (x.in_phases == 1 && x.mul == 1 && before > 0 && behind > 0)
        x.shared = before < behind ? before : behind;
    if (x.shared > x.halo) x.shared = x.halo; /* results lie in one row */
    return x;
}

/* Of a forward pass, and of a gradient of the weights, which reads x as it does. */
static inline lsi_b16_axis lsi_b16_axis_forward(int64_t in, int64_t out, int taps, int stride, int dil,
                                                int pad)
{
    return (lsi_b16_axis){
        .read = in,
        .made = out,
        .results = out,
        .halo = (taps - 1) * dil / stride,
        /* Of a dense filter that is smaller than the stride, phases behind it are never read. */
        .in_phases = taps < stride && (dil == 1 || taps == 1) ? taps : stride,
        .out_phases = 1,
        .mul = stride,
        .base = -pad,
        .out_mul = 1,
        .out_base = 0,
        .taps = taps,
        .dil = dil,
        .stride = stride,
        .fwd = true};
}

/* Of a gradient of the input: `in` is the size of dx, `out` that of dy. */
static inline lsi_b16_axis lsi_b16_axis_back(int64_t in, int64_t out, int taps, int stride, int dil, int pad)
{
    const int64_t halo = (taps - 1) * dil / stride,
                  first = pad / stride; /* positions before lie in the padding */

    return (lsi_b16_axis){.read = out,
                          .made = in,
                          .results = (in - 1 + pad) / stride + 1 - first,
                          .halo = halo,
                          .in_phases = 1,
                          .out_phases = stride,
                          .mul = 1,
                          .base = first - halo,
                          .out_mul = stride,
                          .out_base = first * stride - pad,
                          .taps = taps,
                          .dil = dil,
                          .stride = stride,
                          .fwd = false};
}

/* Positions [*lo, *hi) of 0..n-1 for which position * mul + base lies in 0..size-1. */
static inline void lsi_b16_inside(int64_t mul, int64_t base, int64_t size, int64_t n, int64_t *lo,
                                  int64_t *hi)
{
    lsi_conv_valid(base, mul, size, n, lo, hi);
}

#endif
