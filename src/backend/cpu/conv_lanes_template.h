/* conv_lanes_template.h: the vector code of conv_lanes.h, compiled once per instruction set.
 *
 * The includer defines LANES_TILE: a square of that many sums is held in registers, destination channels by
 * neighbouring pixels (map) or by taps of a filter row (weights).  A "lane group" is VW samples; missing
 * samples of the last group are zero. */
#include <string.h>

#include "backend/cpu/conv_lanes.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/conv_vec.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/vec_transpose.h"
#include "base/parallel.h"

enum { TILE = LANES_TILE };

V_INLINE int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The i-th of `parts` nearly equal parts of 0..n begins here. */
V_INLINE int64_t part_of(int64_t n, int64_t i, int64_t parts)
{
    return n * i / parts;
}

static int64_t n_groups(const lsi_lanes *l)
{
    return (l->n + VW - 1) / VW;
}

/* --- into and out of lanes --- */

/* to[i * VW + s] = from[s * sample + i] for i < n: a run of pixels of one channel; `samples` of VW exist. */
static void gather_run(const float *from, int64_t sample, int64_t samples, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i += VW) {
        const int64_t left = min64(n - i, VW);
        vf r[VW];
        if (samples == VW && left == VW) {
            V_UNROLL
            for (int s = 0; s < VW; s++) r[s] = v_load(from + s * sample + i);
        } else {
            V_UNROLL
            for (int s = 0; s < VW; s++)
                r[s] = s < samples ? v_load_n(from + s * sample + i, left) : v_zero();
        }
        v_transpose(r);
        V_UNROLL
        for (int k = 0; k < VW; k++)
            if (k < left) v_store(to + (i + k) * VW, r[k]);
    }
}

/* One channel of one lane group of a map, with zeros around it: to is (pad_h, pad_w, VW). */
static void gather_plane(const float *map, int64_t n, int64_t channels, int64_t h, int64_t w, int64_t plane,
                         int64_t pt, int64_t pl, int64_t pad_h, int64_t pad_w, float *to)
{
    const int64_t g = plane / channels, samples = min64(n - g * VW, VW), sample = channels * h * w;
    const float *from = map + g * VW * sample + plane % channels * h * w;

    if (pt == 0 && pl == 0 && pad_w == w && pad_h <= h) {
        gather_run(from, sample, samples, pad_h * w, to);
        return;
    }
    memset(to, 0, (size_t)(pad_h * pad_w * VW) * sizeof *to);
    const int64_t rows = min64(h, pad_h - pt), cols = min64(w, pad_w - pl);
    for (int64_t y = 0; y < rows && cols > 0; y++)
        gather_run(from + y * w, sample, samples, cols, to + ((y + pt) * pad_w + pl) * VW);
}

static int64_t source_floats(const lsi_lanes *l)
{
    return n_groups(l) * l->src_c * l->pad_h * l->pad_w * VW;
}

static void gather_source(const lsi_lanes *l, int thread, int n_threads, float *to)
{
    const int64_t plane = l->pad_h * l->pad_w * VW;
    int64_t lo, hi;

    ls_parallel_range(n_groups(l) * l->src_c, thread, n_threads, &lo, &hi);
    for (int64_t p = lo; p < hi; p++)
        gather_plane(l->src, l->n, l->src_c, l->src_h, l->src_w, p, l->pt, l->pl, l->pad_h, l->pad_w,
                     to + p * plane);
}

/* The way back, with bias and activation: to[s * sample + i] = act(from[i * VW + s] + bias). */
static void scatter_run(const lsi_lanes *l, const float *from, int64_t n, float bias, float *to,
                        int64_t sample, int64_t samples)
{
    const vf b = v_set(bias);

    for (int64_t i = 0; i < n; i += VW) {
        const int64_t left = min64(n - i, VW);
        vf r[VW];
        V_UNROLL
        for (int k = 0; k < VW; k++) r[k] = k < left ? v_load(from + (i + k) * VW) : v_zero();
        v_transpose(r);
        for (int s = 0; s < VW; s++) {
            if (s >= samples) break;
            v_store_n(to + s * sample + i, v_act(v_add(r[s], b), l->act, l->slope), left);
        }
    }
}

/* --- the tiles in registers --- */

/* The taps of a tile that see anything but zeros around the map: [ky_lo, ky_hi) x [kx_lo, kx_hi). */
typedef struct taps {
    int64_t ky_lo, ky_hi, kx_lo, kx_hi;
} taps;

/* The taps k of 0..n with which one of the positions first..last (in strides) touches 0..size-1. */
static void useful_taps(int64_t first, int64_t last, int64_t stride, int64_t dilation, int64_t padding,
                        int64_t size, int64_t n, int64_t *lo, int64_t *hi)
{
    const int64_t below = padding - last * stride, room = size + padding - first * stride;

    *lo = below > 0 ? min64((below + dilation - 1) / dilation, n) : 0;
    *hi = room > 0 ? min64((room + dilation - 1) / dilation, n) : 0;
}

/* One tile: nd destination channels by nx pixels; nd and nx are constants where this is inlined.  `x` is
 * under the first tap of the first pixel, `w` holds [c][ky][kx][nd], `out` is nd rows of `out_row` floats. */
V_INLINE void map_tile(const int nd, const int nx, const lsi_lanes *l, const taps *t, const float *x,
                       const float *w, float *out, int64_t out_row)
{
    const int64_t step = l->sw * VW, row = l->dh * l->pad_w * VW, tap = l->dw * VW;
    vf acc[TILE][TILE];

    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int p = 0; p < nx; p++) acc[d][p] = v_zero();
    }
    for (int64_t c = 0; c < l->src_c; c++, x += l->pad_h * l->pad_w * VW) {
        for (int64_t ky = t->ky_lo; ky < t->ky_hi; ky++) {
            const float *xr = x + ky * row + t->kx_lo * tap;
            const float *wr = w + ((c * l->kh + ky) * l->kw + t->kx_lo) * nd;
            for (int64_t kx = t->kx_lo; kx < t->kx_hi; kx++, xr += tap, wr += nd) {
                vf xv[TILE];
                V_UNROLL
                for (int p = 0; p < nx; p++) xv[p] = v_load(xr + p * step);
                V_UNROLL
                for (int d = 0; d < nd; d++) {
                    const vf wv = v_set(wr[d]);
                    V_UNROLL
                    for (int p = 0; p < nx; p++) acc[d][p] = v_fma(wv, xv[p], acc[d][p]);
                }
            }
        }
    }
    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int p = 0; p < nx; p++) v_store(out + d * out_row + p * VW, acc[d][p]);
    }
}

/* Sums over the pixels of one lane group, for nd destination channels and nx taps of one filter row. */
V_INLINE void weights_tile(const int nd, const int nx, const lsi_lanes *l, const float *x, const float *y,
                           float *total)
{
    const int64_t plane = l->dst_h * l->dst_w * VW, tap = l->dw * VW, step = l->sw * VW;
    vf acc[TILE][TILE];

    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int k = 0; k < nx; k++) acc[d][k] = v_zero();
    }
    for (int64_t oy = 0; oy < l->dst_h; oy++) {
        const float *xr = x + oy * l->sh * l->pad_w * VW, *yr = y + oy * l->dst_w * VW;
        for (int64_t ox = 0; ox < l->dst_w; ox++, xr += step, yr += VW) {
            vf yv[TILE];
            V_UNROLL
            for (int d = 0; d < nd; d++) yv[d] = v_load(yr + d * plane);
            V_UNROLL
            for (int k = 0; k < nx; k++) {
                const vf xv = v_load(xr + k * tap);
                V_UNROLL
                for (int d = 0; d < nd; d++) acc[d][k] = v_fma(xv, yv[d], acc[d][k]);
            }
        }
    }
    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int k = 0; k < nx; k++) {
            float *to = total + (d * TILE + k) * VW;
            v_store(to, v_add(v_load(to), acc[d][k]));
        }
    }
}

typedef void (*map_fn)(const lsi_lanes *l, const taps *t, const float *x, const float *w, float *out,
                       int64_t out_row);
typedef void (*weights_fn)(const lsi_lanes *l, const float *x, const float *y, float *total);

/* clang-format off */
#define TILE_FNS(nd, nx)                                                                                     \
    static void map_##nd##x##nx(const lsi_lanes *l, const taps *t, const float *x, const float *w, float *out,   \
                                int64_t out_row)                                                             \
    {                                                                                                        \
        map_tile(nd, nx, l, t, x, w, out, out_row);                                                          \
    }                                                                                                        \
    static void weights_##nd##x##nx(const lsi_lanes *l, const float *x, const float *y, float *total)        \
    {                                                                                                        \
        weights_tile(nd, nx, l, x, y, total);                                                                \
    }
#if LANES_TILE == 5
#define TILE_ROW(nd) TILE_FNS(nd, 1) TILE_FNS(nd, 2) TILE_FNS(nd, 3) TILE_FNS(nd, 4) TILE_FNS(nd, 5)
#define NAMES(fn, nd) {fn##_##nd##x1, fn##_##nd##x2, fn##_##nd##x3, fn##_##nd##x4, fn##_##nd##x5}
TILE_ROW(1) TILE_ROW(2) TILE_ROW(3) TILE_ROW(4) TILE_ROW(5)
#define TABLE(fn) {NAMES(fn, 1), NAMES(fn, 2), NAMES(fn, 3), NAMES(fn, 4), NAMES(fn, 5)}
#else
#define TILE_ROW(nd) TILE_FNS(nd, 1) TILE_FNS(nd, 2) TILE_FNS(nd, 3)
#define NAMES(fn, nd) {fn##_##nd##x1, fn##_##nd##x2, fn##_##nd##x3}
TILE_ROW(1) TILE_ROW(2) TILE_ROW(3)
#define TABLE(fn) {NAMES(fn, 1), NAMES(fn, 2), NAMES(fn, 3)}
#endif
static const map_fn map_tiles[TILE][TILE] = TABLE(map);
static const weights_fn weights_tiles[TILE][TILE] = TABLE(weights);
/* clang-format on */

static int64_t n_blocks(int64_t channels)
{
    return (channels + TILE - 1) / TILE;
}

/* --- dst from src and w --- */

/* Rows of the destination that are computed before they are transposed back: enough to fill vectors. */
static int64_t band_rows(const lsi_lanes *l)
{
    const int64_t rows = 64 / l->dst_w;

    return rows < 1 ? 1 : min64(rows, l->dst_h);
}

static size_t map_floats(const lsi_lanes *l, int threads)
{
    const int64_t weights = l->dst_c * l->src_c * l->kh * l->kw;

    return (size_t)(source_floats(l) + threads * band_rows(l) * l->dst_w * TILE * VW + weights);
}

/* Weights of every block of channels in the order of use; threads take blocks in turn. */
static void pack_map(const lsi_lanes *l, int thread, int n_threads, float *to)
{
    const int64_t blocks = n_blocks(l->dst_c), taps = l->src_c * l->kh * l->kw;

    for (int64_t b = thread; b < blocks; b += n_threads) {
        const int64_t lo = part_of(l->dst_c, b, blocks), hi = part_of(l->dst_c, b + 1, blocks);
        float *out = to + lo * taps;
        for (int64_t c = 0; c < l->src_c; c++)
            for (int64_t ky = 0; ky < l->kh; ky++)
                for (int64_t kx = 0; kx < l->kw; kx++)
                    for (int64_t d = lo; d < hi; d++)
                        *out++ = l->w[d * l->w_d + c * l->w_c + ky * l->w_y + kx * l->w_x];
    }
}

/* Rows [y, y_end) of destination channels [lo, hi) of lane group g; x is the group's source. */
static void map_band(const lsi_lanes *l, int64_t g, int64_t lo, int64_t hi, int64_t y, int64_t y_end,
                     const float *x, const float *w, float *band)
{
    const int64_t pixels = (y_end - y) * l->dst_w, tiles = (l->dst_w + TILE - 1) / TILE;
    const int64_t sample = l->dst_c * l->dst_h * l->dst_w;

    for (int64_t r = y; r < y_end; r++)
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t ox = part_of(l->dst_w, t, tiles), nx = part_of(l->dst_w, t + 1, tiles) - ox;
            taps k;
            useful_taps(r, r, l->sh, l->dh, l->pt, l->src_h, l->kh, &k.ky_lo, &k.ky_hi);
            useful_taps(ox, ox + nx - 1, l->sw, l->dw, l->pl, l->src_w, l->kw, &k.kx_lo, &k.kx_hi);
            map_tiles[hi - lo - 1][nx - 1](l, &k, x + (r * l->sh * l->pad_w + ox * l->sw) * VW, w,
                                           band + ((r - y) * l->dst_w + ox) * VW, pixels * VW);
        }
    for (int64_t d = lo; d < hi; d++)
        scatter_run(l, band + (d - lo) * pixels * VW, pixels, l->bias ? l->bias[d] : 0,
                    l->dst + g * VW * sample + (d * l->dst_h + y) * l->dst_w, sample,
                    min64(l->n - g * VW, VW));
}

static void prepare_map(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t band_floats = band_rows(l) * l->dst_w * TILE * VW;

    gather_source(l, thread, n_threads, scratch);
    pack_map(l, thread, n_threads, scratch + source_floats(l) + n_threads * band_floats);
}

static void map(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t rows = band_rows(l), bands = (l->dst_h + rows - 1) / rows, blocks = n_blocks(l->dst_c);
    const int64_t band_floats = rows * l->dst_w * TILE * VW, taps = l->src_c * l->kh * l->kw;
    float *band = scratch + source_floats(l) + thread * band_floats;
    float *packed = scratch + source_floats(l) + n_threads * band_floats;
    int64_t lo, hi;

    ls_parallel_range(n_groups(l) * blocks * bands, thread, n_threads, &lo, &hi);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t g = u / (blocks * bands), b = u / bands % blocks, y = u % bands * rows;
        const int64_t d = part_of(l->dst_c, b, blocks);
        map_band(l, g, d, part_of(l->dst_c, b + 1, blocks), y, min64(y + rows, l->dst_h),
                 scratch + g * l->src_c * l->pad_h * l->pad_w * VW, packed + d * taps, band);
    }
}

/* --- w from src and dst --- */

static int64_t dest_floats(const lsi_lanes *l)
{
    return n_groups(l) * l->dst_c * l->dst_h * l->dst_w * VW;
}

static size_t weights_floats(const lsi_lanes *l, int threads)
{
    return (size_t)(source_floats(l) + dest_floats(l) + (int64_t)threads * TILE * TILE * VW);
}

static void prepare_weights(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t dst_plane = l->dst_h * l->dst_w * VW;
    float *dst = scratch + source_floats(l);
    int64_t lo, hi;

    gather_source(l, thread, n_threads, scratch);
    ls_parallel_range(n_groups(l) * l->dst_c, thread, n_threads, &lo, &hi);
    for (int64_t p = lo; p < hi; p++)
        gather_plane(l->dst, l->n, l->dst_c, l->dst_h, l->dst_w, p, 0, 0, l->dst_h, l->dst_w,
                     dst + p * dst_plane);
}

static void weights(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t src_plane = l->pad_h * l->pad_w * VW, dst_plane = l->dst_h * l->dst_w * VW;
    const int64_t blocks = n_blocks(l->dst_c), pieces = (l->kw + TILE - 1) / TILE;
    float *src = scratch, *dst = src + source_floats(l);
    float *total = dst + dest_floats(l) + (int64_t)thread * TILE * TILE * VW;
    int64_t lo, hi;

    /* A unit is a block of destination channels, one source channel and a piece of one filter row: its sums
     * over all samples stay with one thread, so they do not depend on the number of threads. */
    ls_parallel_range(blocks * l->src_c * l->kh * pieces, thread, n_threads, &lo, &hi);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t b = u / (l->src_c * l->kh * pieces), c = u / (l->kh * pieces) % l->src_c;
        const int64_t ky = u / pieces % l->kh, kx = part_of(l->kw, u % pieces, pieces);
        const int64_t nx = part_of(l->kw, u % pieces + 1, pieces) - kx;
        const int64_t d = part_of(l->dst_c, b, blocks), nd = part_of(l->dst_c, b + 1, blocks) - d;
        memset(total, 0, TILE * TILE * VW * sizeof *total);
        for (int64_t g = 0; g < n_groups(l); g++)
            weights_tiles[nd - 1][nx - 1](
                l, src + (g * l->src_c + c) * src_plane + (ky * l->dh * l->pad_w + kx * l->dw) * VW,
                dst + (g * l->dst_c + d) * dst_plane, total);
        for (int64_t i = 0; i < nd * nx; i++)
            l->w[(d + i / nx) * l->w_d + c * l->w_c + ky * l->w_y + (kx + i % nx) * l->w_x] =
                v_sum(v_load(total + (i / nx * TILE + i % nx) * VW));
    }
}
