/* conv_few_to_wide_template.h: thin map -> wide map (part of conv_few_template.h).
 *
 * Up to WIDE_T neighbouring pixels of a group of channels are summed in registers: for each tap, the group's
 * weights are loaded once and multiplied by one value of the thin map per pixel. */

/* Weights as [group][tap][channel of the group]. */
static void pack_wide(const lsi_few *f, int64_t group, int64_t n_groups, float *to)
{
    for (int64_t g = 0; g < n_groups; g++)
        for (int64_t i = 0; i < f->n_thin; i++)
            for (int64_t ky = 0; ky < f->kh; ky++)
                for (int64_t kx = 0; kx < f->kw; kx++, to += group)
                    for (int64_t o = 0; o < group; o++)
                        to[o] = f->w[(g * group + o) * f->w_o + i * f->w_i + ky * f->w_y + kx * f->w_x];
}

enum { WIDE_STREAM_FLOATS = 4 << 20 };

/* What the tiles of one row share. */
typedef struct wide_line {
    int64_t ky_lo, ky_hi; /* filter rows that see the map and not only zeros above or below it */
    int64_t x_row, x_plane;
    bool stream; /* store past the caches */
} wide_line;

/* One stretch of `t` pixels; t, nv and sw are constants where this is inlined.  `y` is the first pixel's
 * line. */
V_INLINE void wide_tile(const int t, const int nv, const int sw, const lsi_few *f, const wide_line *x,
                        const float *src, const float *w, const float *bias, float *y)
{
    const int64_t plane = f->ho * f->wo * 16, kw = f->kw, dw = f->dw;
    vf acc[WIDE_T][WIDE_NV];

    V_UNROLL
    for (int v = 0; v < nv; v++) {
        const vf b = bias ? v_load(bias + v * VW) : v_zero();
        V_UNROLL
        for (int p = 0; p < t; p++) acc[p][v] = b;
    }
    for (int64_t i = 0; i < f->n_thin; i++) {
        for (int64_t ky = x->ky_lo; ky < x->ky_hi; ky++) {
            const float *row = src + i * x->x_plane + ky * f->dh * x->x_row;
            const float *wr = w + (i * f->kh + ky) * kw * nv * VW;
            for (int64_t kx = 0; kx < kw; kx++, row += dw, wr += nv * VW) {
                vf wv[WIDE_NV];
                V_UNROLL
                for (int v = 0; v < nv; v++) wv[v] = v_load(wr + v * VW);
                V_UNROLL
                for (int p = 0; p < t; p++) {
                    const vf xv = v_set(row[p * sw]);
                    V_UNROLL
                    for (int v = 0; v < nv; v++) acc[p][v] = v_fma(xv, wv[v], acc[p][v]);
                }
            }
        }
    }
    if (f->act == LSI_ACT_RELU) {
        V_UNROLL
        for (int p = 0; p < t; p++) {
            V_UNROLL
            for (int v = 0; v < nv; v++) acc[p][v] = v_max(v_zero(), acc[p][v]);
        }
    } else if (f->act == LSI_ACT_LEAKY) {
        V_UNROLL
        for (int p = 0; p < t; p++) {
            V_UNROLL
            for (int v = 0; v < nv; v++) acc[p][v] = v_act(acc[p][v], LSI_ACT_LEAKY, f->slope);
        }
    }
    V_UNROLL
    for (int p = 0; p < t; p++) {
        V_UNROLL
        for (int v = 0; v < nv; v++) {
            if (x->stream)
                v_stream(y + p * 16 + vector_at(v, plane), acc[p][v]);
            else
                v_store(y + p * 16 + vector_at(v, plane), acc[p][v]);
        }
    }
}

typedef void (*wide_fn)(const lsi_few *f, const wide_line *x, const float *src, const float *w,
                        const float *bias, float *y);

#define WIDE(t, nv, sw)                                                                                      \
    static void wide_##t##_##nv##_##sw(const lsi_few *f, const wide_line *x, const float *src,               \
                                       const float *w, const float *bias, float *y)                          \
    {                                                                                                        \
        wide_tile(t, nv, sw, f, x, src, w, bias, y);                                                         \
    }
/* clang-format off */
#define WIDES_6(nv, sw) \
    WIDE(1, nv, sw) WIDE(2, nv, sw) WIDE(3, nv, sw) WIDE(4, nv, sw) WIDE(5, nv, sw) WIDE(6, nv, sw)
#define WIDE_NAMES_6(nv, sw) wide_1_##nv##_##sw, wide_2_##nv##_##sw, wide_3_##nv##_##sw, \
    wide_4_##nv##_##sw, wide_5_##nv##_##sw, wide_6_##nv##_##sw
#if VW == 16
#define WIDES_14(nv, sw) WIDES_6(nv, sw) \
    WIDE(7, nv, sw) WIDE(8, nv, sw) WIDE(9, nv, sw) WIDE(10, nv, sw) \
    WIDE(11, nv, sw) WIDE(12, nv, sw) WIDE(13, nv, sw) WIDE(14, nv, sw)
#define WIDE_NAMES_14(nv, sw) WIDE_NAMES_6(nv, sw), wide_7_##nv##_##sw, wide_8_##nv##_##sw, \
    wide_9_##nv##_##sw, wide_10_##nv##_##sw, wide_11_##nv##_##sw, wide_12_##nv##_##sw, \
    wide_13_##nv##_##sw, wide_14_##nv##_##sw
WIDES_14(1, 1) WIDES_14(1, 2) WIDES_14(2, 1) WIDES_14(2, 2)
/* By vectors per group, stride and pixels, each counted from 1. */
static const wide_fn wides[2][2][WIDE_T] = {{{WIDE_NAMES_14(1, 1)}, {WIDE_NAMES_14(1, 2)}},
                                            {{WIDE_NAMES_14(2, 1)}, {WIDE_NAMES_14(2, 2)}}};
#else
WIDES_6(2, 1) WIDES_6(2, 2)
static const wide_fn wides[2][2][WIDE_T] = {{{NULL}, {NULL}}, {{WIDE_NAMES_6(2, 1)}, {WIDE_NAMES_6(2, 2)}}};
#endif
/* clang-format on */

/* Vectors per group: two when the channels allow it. */
static int wide_nv(const lsi_few *f)
{
    return f->n_wide * VPB / 16 % WIDE_NV == 0 ? WIDE_NV : VPB;
}

static size_t to_wide_floats(const lsi_few *f)
{
    return (size_t)(lsi_few_weights(f) + padded_floats(f));
}

/* The lines of row oy in one group of channels. */
static void wide_row(const lsi_few *f, const wide_line *x, const float *src, int nv, const float *w,
                     const float *bias, float *y)
{
    const int64_t n_tiles = (f->wo + WIDE_T - 1) / WIDE_T;

    for (int64_t k = 0; k < n_tiles; k++) {
        const int64_t ox = f->wo * k / n_tiles, t = f->wo * (k + 1) / n_tiles - ox;
        wides[nv - 1][f->sw - 1][t - 1](f, x, src + ox * f->sw, w, bias, y + ox * 16);
    }
    for (int v = 0; v < nv && f->act == LSI_ACT_TANH; v++) {
        float *line = y + vector_at(v, f->ho * f->wo * 16);
        for (int64_t ox = 0; ox < f->wo; ox++) v_store(line + ox * 16, v_tanh(v_load(line + ox * 16)));
    }
}

/* Rows so many and aligned that nobody will find them in a cache are written past the caches; tanh reads its
 * row again, so not then. */
static bool wide_streams(const lsi_few *f)
{
    return f->n * f->n_wide * f->ho * f->wo >= WIDE_STREAM_FLOATS && f->act != LSI_ACT_TANH &&
           (uintptr_t)f->wide % 64 == 0;
}

static void to_wide(const lsi_few *f, int64_t lo, int64_t hi, float *scratch)
{
    const int nv = wide_nv(f);
    const int64_t group = nv * VW, taps = f->n_thin * f->kh * f->kw, plane = f->ho * f->wo;
    float *buffer = scratch + lsi_few_weights(f);
    wide_line line = {.stream = wide_streams(f)};

    if (lo < hi) pack_wide(f, group, f->n_wide / group, scratch);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t sample = u / f->n_bands, first = u % f->n_bands * f->band,
                      end = min64(first + f->band, f->ho);
        const padded x = pad_rows(f, sample, first, end - first, buffer);
        line.x_row = x.row;
        line.x_plane = x.plane;
        for (int64_t g = 0; g < f->n_wide / group; g++)
            for (int64_t oy = first; oy < end; oy++) {
                lsi_conv_valid(oy * f->sh - f->pt, f->dh, f->hi, f->kh, &line.ky_lo, &line.ky_hi);
                wide_row(f, &line, x.data + (oy - first) * f->sh * x.row, nv, scratch + g * group * taps,
                         f->bias ? f->bias + g * group : NULL,
                         f->wide + ((sample * f->n_wide / 16 + g * group / 16) * plane + oy * f->wo) * 16);
            }
    }
    v_stream_done();
}
