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

/* a / b rounded up, for a >= 0.  Nearly always b is 1, and divisions between short tiles are felt. */
V_INLINE int64_t ceil_div(int64_t a, int64_t b)
{
    return b == 1 ? a : (a + b - 1) / b;
}

static int64_t n_groups(const lsi_lanes *l)
{
    return (l->n + VW - 1) / VW;
}

/* --- into and out of lanes --- */

/* Where the pixels of a run go: rows of `w` pixels, of which the first `cols` are kept, `pitch` apart. */
typedef struct rows_to {
    int64_t w, cols, pitch;
} rows_to;

/* Pixel i < n of VW samples, from[s * sample + i], becomes the vector to[(i / w * pitch + i % w) * VW];
 * `samples` of VW exist.  A run goes on across rows, so that short rows fill vectors too. */
static void gather_run(const float *from, int64_t sample, int64_t samples, int64_t n, const rows_to *rows,
                       float *to)
{
    int64_t col = 0;

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
        if (rows->pitch == rows->w && rows->cols == rows->w) {
            V_UNROLL
            for (int k = 0; k < VW; k++)
                if (k < left) v_store(to + (i + k) * VW, r[k]);
            continue;
        }
        V_UNROLL
        for (int k = 0; k < VW; k++) {
            if (k < left && col < rows->cols) v_store(to + col * VW, r[k]);
            if (++col == rows->w) {
                col = 0;
                to += rows->pitch * VW;
            }
        }
    }
}

/* Rows of the source that are kept: those that any tap touches.  The zeros above and below are not, because
 * whole rows of taps that see nothing else are left out. */
static int64_t source_rows(const lsi_lanes *l)
{
    const int64_t rows = min64(l->src_h, l->pad_h - l->pt);

    return rows < 0 ? 0 : rows;
}

/* One channel of one lane group of the source, with zeros on both sides: to is (source_rows, pad_w, VW). */
static void gather_source_plane(const lsi_lanes *l, int64_t plane, float *to)
{
    const int64_t g = plane / l->src_c, sample = l->src_c * l->src_h * l->src_w, rows = source_rows(l);
    const int64_t cols = min64(l->src_w, l->pad_w - l->pl), right = l->pad_w - l->pl - cols;
    const float *from = l->src + g * VW * sample + plane % l->src_c * l->src_h * l->src_w;

    if (cols <= 0) {
        memset(to, 0, (size_t)(rows * l->pad_w * VW) * sizeof *to);
        return;
    }
    gather_run(from, sample, min64(l->n - g * VW, VW), rows * l->src_w, &(rows_to){l->src_w, cols, l->pad_w},
               to + l->pl * VW);
    for (int64_t y = 0; y < rows && l->pad_w > cols; y++, to += l->pad_w * VW) {
        memset(to, 0, (size_t)(l->pl * VW) * sizeof *to);
        memset(to + (l->pl + cols) * VW, 0, (size_t)(right * VW) * sizeof *to);
    }
}

static int64_t source_plane(const lsi_lanes *l)
{
    return source_rows(l) * l->pad_w * VW;
}

static int64_t source_floats(const lsi_lanes *l)
{
    return n_groups(l) * l->src_c * source_plane(l);
}

static void gather_source(const lsi_lanes *l, int thread, int n_threads, float *to)
{
    int64_t lo, hi;

    ls_parallel_range(n_groups(l) * l->src_c, thread, n_threads, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) gather_source_plane(l, p, to + p * source_plane(l));
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
        if (samples == VW && left == VW && l->act == LSI_ACT_NONE) {
            V_UNROLL
            for (int s = 0; s < VW; s++) v_store(to + s * sample + i, v_add(r[s], b));
            continue;
        }
        for (int s = 0; s < VW; s++) {
            if (s >= samples) break;
            const vf v = v_act(v_add(r[s], b), l->act, l->slope);
            /* Stores of a part are slow even where the part is all. */
            if (left == VW)
                v_store(to + s * sample + i, v);
            else
                v_store_n(to + s * sample + i, v, left);
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

    *lo = below > 0 ? min64(ceil_div(below, dilation), n) : 0;
    *hi = room > 0 ? min64(ceil_div(room, dilation), n) : 0;
}

/* One tile: nd destination channels by nx pixels; nd and nx are constants where this is inlined.  `x` is
 * under the first useful tap of the first pixel, `w` holds [c][ky][kx][nd], `out` is nd rows of `out_row`
 * floats. */
V_INLINE void map_tile(const int nd, const int nx, const lsi_lanes *l, const taps *t, const float *x,
                       const float *w, float *out, int64_t out_row)
{
    const int64_t step = l->sw * VW, row = l->dh * l->pad_w * VW, tap = l->dw * VW;
    const int64_t plane = source_plane(l);
    vf acc[TILE][TILE];

    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int p = 0; p < nx; p++) acc[d][p] = v_zero();
    }
    for (int64_t c = 0; c < l->src_c; c++, x += plane) {
        const float *xk = x, *wk = w + ((c * l->kh + t->ky_lo) * l->kw + t->kx_lo) * nd;
        for (int64_t ky = t->ky_lo; ky < t->ky_hi; ky++, xk += row, wk += l->kw * nd) {
            const float *xr = xk, *wr = wk;
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

/* Sums over `rows` rows of one lane group, for nd destination channels and nx taps of one filter row. */
V_INLINE void weights_tile(const int nd, const int nx, const lsi_lanes *l, int64_t rows, const float *x,
                           const float *y, float *total)
{
    const int64_t plane = l->dst_h * l->dst_w * VW, tap = l->dw * VW, step = l->sw * VW;
    vf acc[TILE][TILE];

    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int k = 0; k < nx; k++) acc[d][k] = v_zero();
    }
    for (int64_t oy = 0; oy < rows; oy++) {
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
typedef void (*weights_fn)(const lsi_lanes *l, int64_t rows, const float *x, const float *y, float *total);

/* clang-format off */
#define TILE_FNS(nd, nx)                                                                                     \
    static void map_##nd##x##nx(const lsi_lanes *l, const taps *t, const float *x, const float *w, float *out,   \
                                int64_t out_row)                                                             \
    {                                                                                                        \
        map_tile(nd, nx, l, t, x, w, out, out_row);                                                          \
    }                                                                                                        \
    static void weights_##nd##x##nx(const lsi_lanes *l, int64_t rows, const float *x, const float *y,        \
                                    float *total)                                                            \
    {                                                                                                        \
        weights_tile(nd, nx, l, rows, x, y, total);                                                          \
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

/* The width of the tile of one row that begins at ox.  Most tiles are nearly equal and as wide as registers
 * allow.  Where pixels near the sides see few taps, narrow ones leave out more products with zeros; only with
 * many registers are such tiles still limited by arithmetic. */
static int64_t tile_width(const lsi_lanes *l, int64_t ox)
{
    const int64_t narrow = 2, half = TILE < 5 ? 0 : l->dst_w / 2, behind = l->pad_w - l->pl - l->src_w;
    const int64_t left = l->pl >= narrow * l->sw ? min64(l->pl / l->sw, half) / narrow * narrow : 0;
    const int64_t right = behind >= narrow * l->sw ? min64(behind / l->sw, half) / narrow * narrow : 0;
    const int64_t rest = l->dst_w - right - ox;

    if (ox < left || rest <= 0) return narrow;
    return ceil_div(rest, (rest + TILE - 1) / TILE);
}

/* Rows [y, y_end) of destination channels [lo, hi) of lane group g; x is the group's source. */
static void map_band(const lsi_lanes *l, int64_t g, int64_t lo, int64_t hi, int64_t y, int64_t y_end,
                     const float *x, const float *w, float *band)
{
    const int64_t pixels = (y_end - y) * l->dst_w, sample = l->dst_c * l->dst_h * l->dst_w;

    for (int64_t ox = 0, nx; ox < l->dst_w; ox += nx) {
        taps k;
        nx = tile_width(l, ox);
        useful_taps(ox, ox + nx - 1, l->sw, l->dw, l->pl, l->src_w, l->kw, &k.kx_lo, &k.kx_hi);
        for (int64_t r = y; r < y_end; r++) {
            useful_taps(r, r, l->sh, l->dh, l->pt, l->src_h, l->kh, &k.ky_lo, &k.ky_hi);
            const int64_t sy = r * l->sh + k.ky_lo * l->dh - l->pt, sx = ox * l->sw + k.kx_lo * l->dw;
            map_tiles[hi - lo - 1][nx - 1](l, &k, x + (sy * l->pad_w + sx) * VW, w,
                                           band + ((r - y) * l->dst_w + ox) * VW, pixels * VW);
        }
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
                 scratch + g * l->src_c * source_plane(l), packed + d * taps, band);
    }
}

/* --- w from src and dst --- */

/* A unit of work is a block of destination channels, one source channel and a piece of one filter row: its
 * sums over all samples stay with one thread, so they do not depend on the number of threads. */
static int64_t block_units(const lsi_lanes *l)
{
    return l->src_c * l->kh * ((l->kw + TILE - 1) / TILE);
}

typedef struct unit {
    int64_t d, nd, c, ky, piece, kx, nx; /* nd channels from d, nx taps from kx */
} unit;

static void set_taps(const lsi_lanes *l, unit *u, int64_t piece)
{
    const int64_t pieces = (l->kw + TILE - 1) / TILE;

    u->piece = piece;
    u->kx = pieces == 1 ? 0 : part_of(l->kw, piece, pieces);
    u->nx = (pieces == 1 ? l->kw : part_of(l->kw, piece + 1, pieces)) - u->kx;
}

/* The i-th unit of block b. */
static unit unit_of(const lsi_lanes *l, int64_t b, int64_t i)
{
    const int64_t blocks = n_blocks(l->dst_c), pieces = (l->kw + TILE - 1) / TILE;
    unit u = {.d = part_of(l->dst_c, b, blocks), .c = i / (l->kh * pieces), .ky = i / pieces % l->kh};

    u.nd = part_of(l->dst_c, b + 1, blocks) - u.d;
    set_taps(l, &u, i % pieces);
    return u;
}

/* The unit after this one, without the divisions. */
static void next_unit(const lsi_lanes *l, unit *u)
{
    const bool row_done = u->kx + u->nx == l->kw;

    set_taps(l, u, row_done ? 0 : u->piece + 1);
    if (row_done && ++u->ky == l->kh) {
        u->ky = 0;
        u->c++;
    }
}

/* Of one thread: the sums of a block's units, and its destination planes of one lane group. */
static int64_t totals_floats(const lsi_lanes *l)
{
    return block_units(l) * TILE * TILE * VW;
}

static int64_t thread_floats(const lsi_lanes *l)
{
    return totals_floats(l) + TILE * l->dst_h * l->dst_w * VW;
}

static size_t weights_floats(const lsi_lanes *l, int threads)
{
    return (size_t)(source_floats(l) + threads * thread_floats(l));
}

static void prepare_weights(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    gather_source(l, thread, n_threads, scratch);
}

/* Channels [d, d + nd) of lane group g of the destination. */
static void gather_dest(const lsi_lanes *l, int64_t g, int64_t d, int64_t nd, float *to)
{
    const int64_t pixels = l->dst_h * l->dst_w, sample = l->dst_c * pixels;

    gather_run(l->dst + g * VW * sample + d * pixels, sample, min64(l->n - g * VW, VW), nd * pixels,
               &(rows_to){pixels, pixels, pixels}, to);
}

/* The sums of unit u over lane group g, whose destination planes are `dst`. */
static void add_unit(const lsi_lanes *l, const unit *u, int64_t g, const float *src, const float *dst,
                     float *total)
{
    int64_t y, y_end;

    useful_taps(u->ky, u->ky, l->dh, l->sh, l->pt, l->src_h, l->dst_h, &y, &y_end);
    const int64_t sy = y * l->sh + u->ky * l->dh - l->pt;
    weights_tiles[u->nd - 1][u->nx - 1](
        l, y_end - y, src + (g * l->src_c + u->c) * source_plane(l) + (sy * l->pad_w + u->kx * l->dw) * VW,
        dst + y * l->dst_w * VW, total);
}

/* Units [lo, hi) of block b.  The outer loop is that over the groups: the destination planes of one are
 * transposed when they are needed and stay in a near cache for all units. */
static void weights_block(const lsi_lanes *l, int64_t b, int64_t lo, int64_t hi, const float *src,
                          float *totals)
{
    const int64_t size = TILE * TILE * VW;
    const unit first = unit_of(l, b, lo);
    float *dst = totals + totals_floats(l);

    memset(totals, 0, (size_t)((hi - lo) * size) * sizeof *totals);
    for (int64_t g = 0; g < n_groups(l); g++) {
        gather_dest(l, g, first.d, first.nd, dst);
        unit u = first;
        for (int64_t i = lo; i < hi; i++, next_unit(l, &u))
            add_unit(l, &u, g, src, dst, totals + (i - lo) * size);
    }
    for (int64_t i = lo; i < hi; i++) {
        const unit u = unit_of(l, b, i);
        for (int64_t k = 0; k < u.nd * u.nx; k++)
            l->w[(u.d + k / u.nx) * l->w_d + u.c * l->w_c + u.ky * l->w_y + (u.kx + k % u.nx) * l->w_x] =
                v_sum(v_load(totals + (i - lo) * size + (k / u.nx * TILE + k % u.nx) * VW));
    }
}

static void weights(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t units = block_units(l);
    float *totals = scratch + source_floats(l) + thread * thread_floats(l);
    int64_t lo, hi;

    ls_parallel_range(n_blocks(l->dst_c) * units, thread, n_threads, &lo, &hi);
    for (int64_t u = lo, end; u < hi; u = end) {
        const int64_t b = u / units;
        end = min64((b + 1) * units, hi);
        weights_block(l, b, u - b * units, end - b * units, scratch, totals);
    }
}
