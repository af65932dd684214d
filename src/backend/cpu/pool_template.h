/* pool_template.h: pooling in vectors; included by pool_avx512.c and _avx2.c, and by those for maps
 * stored in 16 bits, which define POOL_TABLE.
 *
 * In lanes a vector holds channels, and one window is done at a time.  In lines a vector holds neighbouring
 * windows, whose elements are read with the stride of the windows; windows that reach into the padding are
 * done one by one.  Gradients are gathered: for every element of the image the few windows that contain it
 * are looked at, so that it is written once. */
#include <math.h>
#include <string.h>

#include "backend/cpu/pool.h"
#include "backend/cpu/stored.h"

#if LSI_VL == 16

/* A byte for each lane. */
typedef __m128i vb;

LSI_INLINE vb v_load_bytes(const uint8_t *p, int64_t n)
{
    if (n == LSI_VL) return _mm_loadu_si128((const __m128i *)p);
    return _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), p);
}
LSI_INLINE void v_store_bytes(uint8_t *p, vf a, int64_t n)
{
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a));

    if (n == LSI_VL)
        _mm_storeu_si128((__m128i *)p, bytes);
    else
        _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1), bytes);
}
/* a where the byte is `code`, else 0. */
LSI_INLINE vf v_pick(vf a, vb bytes, int code)
{
    return _mm512_maskz_mov_ps(_mm_cmpeq_epi8_mask(bytes, _mm_set1_epi8((char)code)), a);
}
/* a[0], b[0], a[1], b[1], ... */
LSI_INLINE void v_interleave(vf a, vf b, vf *lo, vf *hi)
{
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);

    *lo = _mm512_permutex2var_ps(a, first, b);
    *hi = _mm512_permutex2var_ps(a, _mm512_add_epi32(first, _mm512_set1_epi32(8)), b);
}
/* The inverse. */
LSI_INLINE void v_deinterleave(vf lo, vf hi, vf *a, vf *b)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);

    *a = _mm512_permutex2var_ps(lo, even, hi);
    *b = _mm512_permutex2var_ps(lo, _mm512_add_epi32(even, _mm512_set1_epi32(1)), hi);
}
/* p[0], p[stride], ...: n floats. */
LSI_INLINE vf v_load_floats(const float *p, int stride, int64_t n)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    if (stride == 1) return v_load_upto(p, n);
    if (stride == 2) {
        /* The second vector begins one earlier, so that nothing behind the last element is read. */
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
        if (n >= LSI_VL) return _mm512_permutex2var_ps(v_load(p), even, v_load(p + 15));
        const vf first = v_load_upto(p, 2 * n - 1);
        return _mm512_permutex2var_ps(first, even, n > 8 ? v_load_n(p + 15, 2 * n - 16) : first);
    }
    return _mm512_mask_i32gather_ps(v_zero(), (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1),
                                    _mm512_mullo_epi32(lane, _mm512_set1_epi32(stride)), p, 4);
}

#else

typedef __m256i vb; /* widened */

LSI_INLINE vb v_load_bytes(const uint8_t *p, int64_t n)
{
    uint64_t bytes = 0;

    if (n == LSI_VL) return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
    memcpy(&bytes, p, (size_t)n);
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
}
LSI_INLINE void v_store_bytes(uint8_t *p, vf a, int64_t n)
{
    const __m256i lane = _mm256_cvtps_epi32(a);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(lane), _mm256_extracti128_si256(lane, 1));
    const uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(words, words));

    memcpy(p, &bytes, (size_t)n);
}
LSI_INLINE vf v_pick(vf a, vb wide, int code)
{
    return _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(wide, _mm256_set1_epi32(code))));
}
LSI_INLINE void v_interleave(vf a, vf b, vf *lo, vf *hi)
{
    const vf even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);

    *lo = _mm256_permute2f128_ps(even, odd, 0x20);
    *hi = _mm256_permute2f128_ps(even, odd, 0x31);
}
LSI_INLINE void v_deinterleave(vf lo, vf hi, vf *a, vf *b)
{
    const vf first = _mm256_permute2f128_ps(lo, hi, 0x20), second = _mm256_permute2f128_ps(lo, hi, 0x31);
    const vf even = _mm256_shuffle_ps(first, second, _MM_SHUFFLE(2, 0, 2, 0));
    const vf odd = _mm256_shuffle_ps(first, second, _MM_SHUFFLE(3, 1, 3, 1));

    *a = even;
    *b = odd;
}
LSI_INLINE vf v_load_floats(const float *p, int stride, int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

    if (stride == 1) return v_load_upto(p, n);
    if (stride == 2 && n >= LSI_VL) {
        /* The second vector begins one earlier, so that nothing behind the last element is read. */
        const __m256 both = _mm256_shuffle_ps(v_load(p), v_load(p + 7), _MM_SHUFFLE(3, 1, 2, 0));
        return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(both), _MM_SHUFFLE(3, 1, 2, 0)));
    }
    return _mm256_mask_i32gather_ps(v_zero(), p, _mm256_mullo_epi32(lane, _mm256_set1_epi32(stride)),
                                    _mm256_castsi256_ps(v_mask_(n)), 4);
}

#endif

/* p[0], p[stride], ...: n elements. */
LSI_INLINE vf v_load_stride(const stored *p, int stride, int64_t n)
{
#if defined(LSI_STORED_BF16) || defined(LSI_STORED_F16)
    stored all[LSI_VL] = {0};

    if (stride == 1) return s_load_upto(p, n);
    for (int64_t i = 0; i < n && i < LSI_VL; i++) all[i] = p[i * stride];
    return s_load(all);
#else
    return v_load_floats(p, stride, n);
#endif
}

/* p[0], p[2], ... and p[1], p[3], ...: n elements each. */
LSI_INLINE void v_load_pairs(const stored *p, int64_t n, vf *even, vf *odd)
{
    const vf lo = s_load_upto(p, 2 * n);

    v_deinterleave(lo, 2 * n > LSI_VL ? s_load_upto(p + LSI_VL, 2 * n - LSI_VL) : v_zero(), even, odd);
}

/* The part of a window along one side that lies inside 0..n-1: from `lo` to `hi` of 0..k-1. */
typedef struct span {
    int64_t first; /* image coordinate of the window's first element, possibly negative */
    int lo, hi;
} span;

LSI_INLINE span window(int64_t o, int stride, int pad, int k, int64_t n)
{
    const int64_t first = o * stride - pad;
    span s = {first, first < 0 ? (int)-first : 0, k};

    if (first + k > n) s.hi = (int)(n - first);
    return s;
}

/* Windows lo..hi-1 of 0..n_out-1 that lie inside the image with all their k elements. */
LSI_INLINE void inner_windows(int stride, int pad, int k, int64_t n, int64_t n_out, int64_t *lo, int64_t *hi)
{
    *lo = (pad + stride - 1) / stride;
    *hi = n + pad - k >= 0 ? (n + pad - k) / stride + 1 : 0;
    if (*hi > n_out) *hi = n_out;
    if (*lo > *hi) *lo = *hi;
}

/* Windows lo..hi-1 that contain image coordinate `pos`. */
LSI_INLINE void windows_of(int64_t pos, int stride, int pad, int k, int64_t n_out, int64_t *lo, int64_t *hi)
{
    const int64_t from = pos + pad - k + 1;

    *lo = from <= 0 ? 0 : (from + stride - 1) / stride;
    *hi = (pos + pad) / stride + 1;
    if (*hi > n_out) *hi = n_out;
}

LSI_INLINE float weight_of(const lsi_pool *p, span sy, span sx)
{
    return p->weight != 0 ? p->weight : 1.0f / (float)((sy.hi - sy.lo) * (sx.hi - sx.lo));
}

static bool is_window(const lsi_pool *p, int k, int stride)
{
    return p->kh == k && p->kw == k && p->sh == stride && p->sw == stride;
}

/* Windows of 2x2 side by side, without padding, and at most one column behind them. */
static bool is_pairs(const lsi_pool *p)
{
    return is_window(p, 2, 2) && p->pt == 0 && p->pl == 0 && p->w >= 2 * p->wo && p->w <= 2 * p->wo + 1 &&
           p->h >= 2 * p->ho;
}

/* -- maximum ----------------------------------------------------------------------------------------------
 */

/* One window, in lanes; kw is a constant where the window is common and whole. */
LSI_INLINE void max_window(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, span sy, span sx,
                           const int kw)
{
    for (int half = 0; half < 16; half += LSI_VL) {
        const stored *from = x + (sy.first * p->w + sx.first) * 16 + half;
        vf best = s_load(from + (sy.lo * p->w + sx.lo) * 16), at = v_set1((float)(sy.lo * kw + sx.lo));
        for (int ky = sy.lo; ky < sy.hi; ky++)
            for (int kx = sx.lo; kx < sx.hi; kx++)
                v_contest(&best, &at, s_load(from + (ky * p->w + kx) * 16), v_set1((float)(ky * kw + kx)));
        s_store(y + half, p->relu ? v_max(v_zero(), best) : best);
        v_store_bytes(index + half, at, LSI_VL);
    }
}

/* Windows lo..hi-1 of a row, all of them k x k elements inside the image; k is a constant. */
LSI_INLINE void max_inner(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, int64_t first_y,
                          int64_t lo, int64_t hi, const int k)
{
    for (int64_t ox = lo; ox < hi; ox++)
        max_window(p, x, y + ox * 16, index + ox * 16, (span){first_y, 0, k},
                   (span){ox * p->sw - p->pl, 0, k}, k);
}

static void max_lanes(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, int64_t lo, int64_t hi)
{
    int64_t in_lo, in_hi;

    inner_windows(p->sw, p->pl, p->kw, p->w, p->wo, &in_lo, &in_hi);
    if (p->kh != p->kw || p->kh < 2 || p->kh > 3) in_lo = in_hi = p->wo;
    for (int64_t oy = lo; oy < hi; oy++) {
        const span sy = window(oy, p->sh, p->pt, p->kh, p->h);
        const bool inside = sy.lo == 0 && sy.hi == p->kh;
        stored *row = y + oy * p->wo * 16;
        uint8_t *index_row = index + oy * p->wo * 16;
        if (inside && p->kh == 2)
            max_inner(p, x, row, index_row, sy.first, in_lo, in_hi, 2);
        else if (inside && p->kh == 3)
            max_inner(p, x, row, index_row, sy.first, in_lo, in_hi, 3);
        for (int64_t ox = 0; ox < p->wo; ox++) {
            if (inside && ox == in_lo) ox = in_hi; /* done above */
            if (ox < p->wo)
                max_window(p, x, row + ox * 16, index_row + ox * 16, sy,
                           window(ox, p->sw, p->pl, p->kw, p->w), p->kw);
        }
    }
}

/* Windows ox..ox+n-1 of one row, in lines; all of them lie inside from left to right unless n is 1. */
LSI_INLINE void max_run(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, span sy, int64_t ox,
                        int64_t n)
{
    const span sx = window(ox, p->sw, p->pl, p->kw, p->w);
    const stored *from = x + sy.first * p->w + sx.first;
    vf best = v_load_stride(from + sy.lo * p->w + sx.lo, p->sw, n);
    vf at = v_set1((float)(sy.lo * p->kw + sx.lo));

    for (int ky = sy.lo; ky < sy.hi; ky++)
        for (int kx = sx.lo; kx < sx.hi; kx++)
            v_contest(&best, &at, v_load_stride(from + ky * p->w + kx, p->sw, n),
                      v_set1((float)(ky * p->kw + kx)));
    if (p->relu) best = v_max(v_zero(), best);
    s_store_upto(y + ox, best, n);
    v_store_bytes(index + ox, at, n < LSI_VL ? n : LSI_VL);
}

static void max_lines(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, int64_t lo, int64_t hi)
{
    int64_t in_lo, in_hi;

    inner_windows(p->sw, p->pl, p->kw, p->w, p->wo, &in_lo, &in_hi);
    for (int64_t oy = lo; oy < hi; oy++) {
        const span sy = window(oy, p->sh, p->pt, p->kh, p->h);
        stored *row = y + oy * p->wo;
        uint8_t *index_row = index + oy * p->wo;
        for (int64_t ox = 0; ox < in_lo; ox++) max_run(p, x, row, index_row, sy, ox, 1);
        for (int64_t ox = in_lo; ox < in_hi; ox += LSI_VL) max_run(p, x, row, index_row, sy, ox, in_hi - ox);
        for (int64_t ox = in_hi; ox < p->wo; ox++) max_run(p, x, row, index_row, sy, ox, 1);
    }
}

#include "backend/cpu/pool_pairs_template.h"

static void pool_max(const lsi_pool *p, const void *x, void *y, uint8_t *index, int64_t lo, int64_t hi)
{
    if (p->lanes)
        max_lanes(p, x, y, index, lo, hi);
    else if (is_pairs(p))
        max_pairs(p, x, y, index, lo, hi);
    else
        max_lines(p, x, y, index, lo, hi);
}

/* kh to sw are constants for the common windows: without them every pixel would cost divisions. */
LSI_INLINE void max_back_lanes(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                               stored *dx, int64_t lo, int64_t hi, const int kh, const int kw, const int sh,
                               const int sw)
{
    for (int64_t iy = lo; iy < hi; iy++) {
        int64_t oy0, oy1, ox0, ox1;
        windows_of(iy, sh, p->pt, kh, p->ho, &oy0, &oy1);
        for (int64_t ix = 0; ix < p->w; ix++) {
            windows_of(ix, sw, p->pl, kw, p->wo, &ox0, &ox1);
            for (int half = 0; half < 16; half += LSI_VL) {
                vf sum = v_zero();
                for (int64_t oy = oy0; oy < oy1; oy++)
                    for (int64_t ox = ox0; ox < ox1; ox++) {
                        const int64_t at = (oy * p->wo + ox) * 16 + half;
                        const int64_t ky = iy + p->pt - oy * sh, kx = ix + p->pl - ox * sw;
                        vf d = s_load(dy + at);
                        if (p->relu) d = v_select_gt(s_load(y + at), v_zero(), d, v_zero());
                        sum = v_add(sum, v_pick(d, v_load_bytes(index + at, LSI_VL), (int)(ky * kw + kx)));
                    }
                s_store(dx + (iy * p->w + ix) * 16 + half, sum);
            }
        }
    }
}

/* In lines every dy of the rows that touch lo..hi-1 is sent to its element if that lies there. */
static void max_back_lines(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                           stored *dx, int64_t lo, int64_t hi)
{
    int64_t oy0, oy1, unused;

    if (lo >= hi) return;
    memset(dx + lo * p->w, 0, sizeof(stored) * (size_t)((hi - lo) * p->w));
    windows_of(lo, p->sh, p->pt, p->kh, p->ho, &oy0, &unused);
    windows_of(hi - 1, p->sh, p->pt, p->kh, p->ho, &unused, &oy1);
    for (int64_t oy = oy0; oy < oy1; oy++)
        for (int64_t ox = 0; ox < p->wo; ox++) {
            const int64_t at = oy * p->wo + ox;
            const int64_t iy = oy * p->sh - p->pt + index[at] / p->kw;
            const int64_t ix = ox * p->sw - p->pl + index[at] % p->kw;
            if (iy < lo || iy >= hi || (p->relu && !(s_get(y + at) > 0))) continue;
            dx[iy * p->w + ix] = s_of(s_get(dx + iy * p->w + ix) + s_get(dy + at));
        }
}

static void pool_max_back(const lsi_pool *p, const void *dy, const uint8_t *index, const void *y, void *dx,
                          int64_t lo, int64_t hi)
{
    if (is_pairs(p) && p->lanes)
        max_back_pairs_lanes(p, dy, index, y, dx, lo, hi);
    else if (is_pairs(p))
        max_back_pairs(p, dy, index, y, dx, lo, hi);
    else if (p->lanes && is_window(p, 3, 2))
        max_back_lanes(p, dy, index, y, dx, lo, hi, 3, 3, 2, 2);
    else if (p->lanes)
        max_back_lanes(p, dy, index, y, dx, lo, hi, p->kh, p->kw, p->sh, p->sw);
    else
        max_back_lines(p, dy, index, y, dx, lo, hi);
}

/* -- average ------------------------------------------------------------------------------------------- */

static void average_lanes(const lsi_pool *p, const stored *x, stored *y, int64_t lo, int64_t hi)
{
    for (int64_t oy = lo; oy < hi; oy++) {
        const span sy = window(oy, p->sh, p->pt, p->kh, p->h);
        for (int64_t ox = 0; ox < p->wo; ox++) {
            const span sx = window(ox, p->sw, p->pl, p->kw, p->w);
            for (int half = 0; half < 16; half += LSI_VL) {
                vf sum = v_zero();
                for (int ky = sy.lo; ky < sy.hi; ky++)
                    for (int kx = sx.lo; kx < sx.hi; kx++)
                        sum = v_add(sum, s_load(x + ((sy.first + ky) * p->w + sx.first + kx) * 16 + half));
                s_store(y + (oy * p->wo + ox) * 16 + half, v_mul(sum, v_set1(weight_of(p, sy, sx))));
            }
        }
    }
}

LSI_INLINE void average_run(const lsi_pool *p, const stored *x, stored *y, span sy, int64_t ox, int64_t n)
{
    const span sx = window(ox, p->sw, p->pl, p->kw, p->w);
    vf sum = v_zero();

    for (int ky = sy.lo; ky < sy.hi; ky++)
        for (int kx = sx.lo; kx < sx.hi; kx++)
            sum = v_add(sum, v_load_stride(x + (sy.first + ky) * p->w + sx.first + kx, p->sw, n));
    s_store_upto(y + ox, v_mul(sum, v_set1(weight_of(p, sy, sx))), n);
}

static void average_lines(const lsi_pool *p, const stored *x, stored *y, int64_t lo, int64_t hi)
{
    int64_t in_lo, in_hi;

    inner_windows(p->sw, p->pl, p->kw, p->w, p->wo, &in_lo, &in_hi);
    for (int64_t oy = lo; oy < hi; oy++) {
        const span sy = window(oy, p->sh, p->pt, p->kh, p->h);
        stored *row = y + oy * p->wo;
        for (int64_t ox = 0; ox < in_lo; ox++) average_run(p, x, row, sy, ox, 1);
        for (int64_t ox = in_lo; ox < in_hi; ox += LSI_VL) average_run(p, x, row, sy, ox, in_hi - ox);
        for (int64_t ox = in_hi; ox < p->wo; ox++) average_run(p, x, row, sy, ox, 1);
    }
}

static void pool_average(const lsi_pool *p, const void *x, void *y, int64_t lo, int64_t hi)
{
    if (p->lanes)
        average_lanes(p, x, y, lo, hi);
    else
        average_lines(p, x, y, lo, hi);
}

LSI_INLINE void average_back_lanes(const lsi_pool *p, const stored *dy, stored *dx, int64_t lo, int64_t hi,
                                   const int kh, const int kw, const int sh, const int sw)
{
    for (int64_t iy = lo; iy < hi; iy++) {
        int64_t oy0, oy1, ox0, ox1;
        windows_of(iy, sh, p->pt, kh, p->ho, &oy0, &oy1);
        for (int64_t ix = 0; ix < p->w; ix++) {
            windows_of(ix, sw, p->pl, kw, p->wo, &ox0, &ox1);
            for (int half = 0; half < 16; half += LSI_VL) {
                vf sum = v_zero();
                for (int64_t oy = oy0; oy < oy1; oy++)
                    for (int64_t ox = ox0; ox < ox1; ox++) {
                        const float w =
                            weight_of(p, window(oy, sh, p->pt, kh, p->h), window(ox, sw, p->pl, kw, p->w));
                        sum = v_fma(s_load(dy + (oy * p->wo + ox) * 16 + half), v_set1(w), sum);
                    }
                s_store(dx + (iy * p->w + ix) * 16 + half, sum);
            }
        }
    }
}

static void average_back_lines(const lsi_pool *p, const stored *dy, stored *dx, int64_t lo, int64_t hi)
{
    for (int64_t iy = lo; iy < hi; iy++) {
        stored *row = dx + iy * p->w;
        int64_t oy0, oy1;
        windows_of(iy, p->sh, p->pt, p->kh, p->ho, &oy0, &oy1);
        memset(row, 0, sizeof(stored) * (size_t)p->w);
        for (int64_t oy = oy0; oy < oy1; oy++) {
            const span sy = window(oy, p->sh, p->pt, p->kh, p->h);
            for (int64_t ox = 0; ox < p->wo; ox++) {
                const span sx = window(ox, p->sw, p->pl, p->kw, p->w);
                const float d = s_get(dy + oy * p->wo + ox) * weight_of(p, sy, sx);
                for (int kx = sx.lo; kx < sx.hi; kx++)
                    row[sx.first + kx] = s_of(s_get(row + sx.first + kx) + d);
            }
        }
    }
}

static void pool_average_back(const lsi_pool *p, const void *dy, void *dx, int64_t lo, int64_t hi)
{
    if (p->lanes && is_window(p, 2, 2))
        average_back_lanes(p, dy, dx, lo, hi, 2, 2, 2, 2);
    else if (p->lanes)
        average_back_lanes(p, dy, dx, lo, hi, p->kh, p->kw, p->sh, p->sw);
    else
        average_back_lines(p, dy, dx, lo, hi);
}

const lsi_pool_table POOL_TABLE = {
    .impl = POOL_IMPL,
    .max = pool_max,
    .average = pool_average,
    .max_back = pool_max_back,
    .average_back = pool_average_back,
};
