/* conv_rows_avx2.c: convolutions of plain maps along their rows, for stride 1 and few channels.
 *
 * The tile in registers is NEAR destination channels by up to SPAN vectors of neighbouring pixels; each tap
 * is an unaligned load of the source per vector and one broadcast weight per channel.  Next to conv_lanes.h
 * it transposes nothing, which wins where a pixel is the sum of few products and rows fill vectors.  Vectors
 * of eight are used even where wider ones exist: rows of 24 or 28 pixels fill them better. */
#include <string.h>

#include "backend/cpu/conv_lanes.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/conv_vec.h"
#include "backend/cpu/isa.h"
#include "base/parallel.h"

enum { NEAR = 4, SPAN = 3 };

/* Width of a row of the padded source: loads of the last vector may reach beyond its last tap. */
static int64_t row_pitch(const lsi_lanes *l)
{
    return (l->dst_w + VW - 1) / VW * VW + (l->kw - 1) * l->dw;
}

static int64_t sample_floats(const lsi_lanes *l)
{
    return l->src_c * l->pad_h * row_pitch(l);
}

static bool fits(const lsi_lanes *l)
{
    return l->sh == 1 && l->sw == 1;
}

static size_t floats(const lsi_lanes *l, int threads)
{
    return (size_t)(threads * sample_floats(l) + l->dst_c * l->src_c * l->kh * l->kw);
}

/* Weights of every block of NEAR channels as [source channel][tap][channel of the block]. */
static void prepare(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t per_channel = l->src_c * l->kh * l->kw, blocks = (l->dst_c + NEAR - 1) / NEAR;

    for (int64_t b = thread; b < blocks; b += n_threads) {
        const int64_t first = b * NEAR, end = first + NEAR < l->dst_c ? first + NEAR : l->dst_c;
        float *to = scratch + first * per_channel;
        for (int64_t c = 0; c < l->src_c; c++)
            for (int64_t ky = 0; ky < l->kh; ky++)
                for (int64_t kx = 0; kx < l->kw; kx++)
                    for (int64_t d = first; d < end; d++)
                        *to++ = l->w[d * l->w_d + c * l->w_c + ky * l->w_y + kx * l->w_x];
    }
}

/* One sample of the source with its zeros: (src_c, pad_h, row_pitch). */
static void pad_sample(const lsi_lanes *l, int64_t sample, float *to)
{
    const int64_t pitch = row_pitch(l), right = l->pad_w - l->pl;
    const int64_t cols = right < 0 ? 0 : l->src_w < right ? l->src_w : right;

    for (int64_t c = 0; c < l->src_c; c++) {
        const float *plane = l->src + (sample * l->src_c + c) * l->src_h * l->src_w;
        for (int64_t y = 0; y < l->pad_h; y++, to += pitch) {
            const int64_t sy = y - l->pt;
            memset(to, 0, (size_t)pitch * sizeof *to);
            if (sy >= 0 && sy < l->src_h && cols > 0)
                memcpy(to + l->pl, plane + sy * l->src_w, (size_t)cols * sizeof *to);
        }
    }
}

/* One tile: nd channels by nv vectors, constants where this is inlined; `left` pixels are in the last vector.
 * `x` is the source under the tile's first tap, `w` the block's weights, `d` its first channel. */
V_INLINE void tile(const int nd, const int nv, const lsi_lanes *l, const float *x, const float *w, int64_t d,
                   float *out, int64_t left)
{
    const int64_t pitch = row_pitch(l), plane = l->dst_h * l->dst_w;
    vf acc[NEAR][SPAN];

    V_UNROLL
    for (int i = 0; i < nd; i++) {
        const vf b = v_set(l->bias ? l->bias[d + i] : 0);
        V_UNROLL
        for (int v = 0; v < nv; v++) acc[i][v] = b;
    }
    for (int64_t c = 0; c < l->src_c; c++, x += l->pad_h * pitch)
        for (int64_t ky = 0; ky < l->kh; ky++) {
            const float *row = x + ky * l->dh * pitch;
            for (int64_t kx = 0; kx < l->kw; kx++, row += l->dw, w += nd) {
                vf xv[SPAN];
                V_UNROLL
                for (int v = 0; v < nv; v++) xv[v] = v_load(row + v * VW);
                V_UNROLL
                for (int i = 0; i < nd; i++) {
                    const vf wv = v_set(w[i]);
                    V_UNROLL
                    for (int v = 0; v < nv; v++) acc[i][v] = v_fma(wv, xv[v], acc[i][v]);
                }
            }
        }
    V_UNROLL
    for (int i = 0; i < nd; i++) {
        V_UNROLL
        for (int v = 0; v < nv; v++) {
            const vf y = v_act(acc[i][v], l->act, l->slope);
            if (v < nv - 1 || left == VW)
                v_store(out + i * plane + v * VW, y);
            else
                v_store_n(out + i * plane + v * VW, y, left);
        }
    }
}

typedef void (*tile_fn)(const lsi_lanes *l, const float *x, const float *w, int64_t d, float *out,
                        int64_t left);

#define TILE(nd, nv)                                                                                         \
    static void tile_##nd##x##nv(const lsi_lanes *l, const float *x, const float *w, int64_t d, float *out,  \
                                 int64_t left)                                                               \
    {                                                                                                        \
        tile(nd, nv, l, x, w, d, out, left);                                                                 \
    }
/* clang-format off */
#define TILES(nd) TILE(nd, 1) TILE(nd, 2) TILE(nd, 3)
TILES(1) TILES(2) TILES(3) TILES(4)
#define NAMES(nd) {tile_##nd##x1, tile_##nd##x2, tile_##nd##x3}
static const tile_fn tiles[NEAR][SPAN] = {NAMES(1), NAMES(2), NAMES(3), NAMES(4)};
/* clang-format on */

/* All rows of one sample and one block of nd channels from d on; x is the padded sample. */
static void map_block(const lsi_lanes *l, const float *x, const float *w, int64_t d, int64_t nd, float *out)
{
    const int64_t vectors = (l->dst_w + VW - 1) / VW, spans = (vectors + SPAN - 1) / SPAN;

    for (int64_t s = 0; s < spans; s++) {
        const int64_t first = vectors * s / spans, end = vectors * (s + 1) / spans;
        const int64_t left = end < vectors ? VW : l->dst_w - (vectors - 1) * VW;
        for (int64_t y = 0; y < l->dst_h; y++)
            tiles[nd - 1][end - first - 1](l, x + y * row_pitch(l) + first * VW, w, d,
                                           out + y * l->dst_w + first * VW, left);
    }
}

static void map(const lsi_lanes *l, int thread, int n_threads, float *scratch)
{
    const int64_t per_channel = l->src_c * l->kh * l->kw;
    float *padded = scratch + l->dst_c * per_channel + thread * sample_floats(l);
    int64_t lo, hi;

    ls_parallel_range(l->n, thread, n_threads, &lo, &hi);
    for (int64_t s = lo; s < hi; s++) {
        pad_sample(l, s, padded);
        for (int64_t d = 0; d < l->dst_c; d += NEAR)
            map_block(l, padded, scratch + d * per_channel, d, l->dst_c - d < NEAR ? l->dst_c - d : NEAR,
                      l->dst + (s * l->dst_c + d) * l->dst_h * l->dst_w);
    }
}

const lsi_lanes_kernels lsi_conv_rows_avx2 = {
    .usable = lsi_has_avx2, .fits = fits, .map = {floats, prepare, map}};
