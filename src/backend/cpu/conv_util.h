/* conv_util.h: geometry and epilogue helpers that the convolution implementations share. */
#ifndef LS_BACKEND_CPU_CONV_UTIL_H
#define LS_BACKEND_CPU_CONV_UTIL_H

#include <math.h>

#include "backend/cpu/conv.h"

/* The positions o of [*lo, *hi), within 0..n_out, for which o*stride + offset lies in 0..n_in-1: the outputs
 * that a filter tap with `offset` = k*dilation - padding serves.  Empty ranges have *lo == *hi.  With the
 * roles of output and tap exchanged it gives the taps that an output uses. */
static inline void lsi_conv_valid(int64_t offset, int64_t stride, int64_t n_in, int64_t n_out, int64_t *lo,
                                  int64_t *hi)
{
    int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    int64_t end = n_in - offset <= 0 ? 0 : (n_in - offset + stride - 1) / stride;

    if (end > n_out) end = n_out;
    *lo = first < end ? first : end;
    *hi = end;
}

/* Where channel `c` of sample `s` begins, and how far apart its pixels are, in a (N, channels, H, W) map of
 * `pixels` = H*W. */
static inline int64_t lsi_plane_offset(const ls_layout *layout, int64_t channels, int64_t pixels, int64_t s,
                                       int64_t c)
{
    if (layout == &lsi_layout_c16) return (s * (channels / 16) + c / 16) * pixels * 16 + c % 16;
    return (s * channels + c) * pixels;
}

static inline int64_t lsi_pixel_stride(const ls_layout *layout)
{
    return layout == &lsi_layout_c16 ? 16 : 1;
}

static inline float lsi_act(float v, lsi_conv_act act, float slope)
{
    switch (act) {
    case LSI_ACT_RELU: return v < 0 ? 0 : v; /* NaN stays NaN */
    case LSI_ACT_LEAKY: return v > 0 ? v : slope * v;
    case LSI_ACT_TANH: return tanhf(v);
    case LSI_ACT_NONE: break;
    }
    return v;
}

/* Bytes rounded up so that what follows in a scratch area stays aligned to 64. */
static inline size_t lsi_align64(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif
