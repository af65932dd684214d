/* conv_few_weights_template.h: gradient of the weights between a thin and a wide map (part of
 * conv_few_template.h).
 *
 * For a stretch of pixels, the taps of one filter row (or three rows of a 3x3 filter) times a group of
 * channels are summed in registers: each pixel's lines are loaded once and multiplied by one thin value per
 * tap.  Sums are kept per stretch and then added to totals in memory, which also keeps rounding errors small.
 */

/* One block of pixels: `rows` rows of `cols` pixels whose lines begin at y; x is under the first tap. */
typedef struct stretch {
    const float *x, *y;
    int64_t rows, cols, x_row, x_step, x_tap_row, y_row, plane;
} stretch;

/* Adds to total[kr][kx][NV * VW], rows of taps `row_floats` apart and taps `tap_floats` apart. */
V_INLINE void weights_tile(const int kr, const int kw, const int nv, const stretch *s, float *total,
                           int64_t row_floats, int64_t tap_floats)
{
    vf acc[3][WEIGHTS_KW][WEIGHTS_NV];

    V_UNROLL
    for (int r = 0; r < kr; r++) {
        V_UNROLL
        for (int k = 0; k < kw; k++) {
            V_UNROLL
            for (int v = 0; v < nv; v++) acc[r][k][v] = v_zero();
        }
    }
    for (int64_t row = 0; row < s->rows; row++) {
        const float *y = s->y + row * s->y_row, *x = s->x + row * s->x_row;
        for (int64_t i = 0; i < s->cols; i++, y += 16, x += s->x_step) {
            vf yv[WEIGHTS_NV];
            V_UNROLL
            for (int v = 0; v < nv; v++) yv[v] = v_load(y + vector_at(v, s->plane));
            V_UNROLL
            for (int r = 0; r < kr; r++) {
                V_UNROLL
                for (int k = 0; k < kw; k++) {
                    const vf xv = v_set(x[r * s->x_tap_row + k]);
                    V_UNROLL
                    for (int v = 0; v < nv; v++) acc[r][k][v] = v_fma(xv, yv[v], acc[r][k][v]);
                }
            }
        }
    }
    V_UNROLL
    for (int r = 0; r < kr; r++) {
        V_UNROLL
        for (int k = 0; k < kw; k++) {
            V_UNROLL
            for (int v = 0; v < nv; v++) {
                float *to = total + r * row_floats + k * tap_floats + v * VW;
                v_store(to, v_add(v_load(to), acc[r][k][v]));
            }
        }
    }
}

typedef void (*weights_fn)(const stretch *s, float *total, int64_t row_floats, int64_t tap_floats);

#define WEIGHTS(kr, kw, nv)                                                                                  \
    static void weights_##kr##_##kw##_##nv(const stretch *s, float *total, int64_t row_floats,               \
                                           int64_t tap_floats)                                               \
    {                                                                                                        \
        weights_tile(kr, kw, nv, s, total, row_floats, tap_floats);                                          \
    }
/* clang-format off */
#define WEIGHTS_5(nv) \
    WEIGHTS(1, 1, nv) WEIGHTS(1, 2, nv) WEIGHTS(1, 3, nv) WEIGHTS(1, 4, nv) WEIGHTS(1, 5, nv)
#define WEIGHTS_NAMES_5(nv) \
    weights_1_1_##nv, weights_1_2_##nv, weights_1_3_##nv, weights_1_4_##nv, weights_1_5_##nv
/* By vectors per group and taps of a row; what has no entry would need more registers than there are. */
#if VW == 16
WEIGHTS_5(1) WEIGHTS_5(2) WEIGHTS_5(4)
WEIGHTS(1, 6, 1) WEIGHTS(1, 7, 1) WEIGHTS(1, 6, 2) WEIGHTS(1, 7, 2) WEIGHTS(3, 3, 1) WEIGHTS(3, 3, 2)
static const weights_fn weights_rows[WEIGHTS_NV + 1][WEIGHTS_KW] = {
    [1] = {WEIGHTS_NAMES_5(1), weights_1_6_1, weights_1_7_1},
    [2] = {WEIGHTS_NAMES_5(2), weights_1_6_2, weights_1_7_2},
    [4] = {WEIGHTS_NAMES_5(4), NULL, NULL},
};
static const weights_fn weights_3x3[WEIGHTS_NV + 1] = {[1] = weights_3_3_1, [2] = weights_3_3_2};
#else
WEIGHTS_5(2) WEIGHTS(1, 6, 2)
static const weights_fn weights_rows[WEIGHTS_NV + 1][WEIGHTS_KW] = {[2] = {WEIGHTS_NAMES_5(2), weights_1_6_2}};
static const weights_fn weights_3x3[WEIGHTS_NV + 1] = {NULL};
#endif
/* clang-format on */

/* Vectors per group: as many as divide the channels and leave registers for the taps. */
static int weights_nv(const lsi_few *f)
{
    const int64_t vectors = f->n_wide * VPB / 16;
    const bool is_3x3 = f->kh == 3 && f->kw == 3;

    if (WEIGHTS_NV == 4 && vectors % 4 == 0 && f->kw <= 5 && !is_3x3) return 4;
    return vectors % 2 == 0 ? 2 : 1;
}

static size_t weights_floats(const lsi_few *f)
{
    return (size_t)(lsi_few_weights(f) + padded_floats(f));
}

/* All taps of one thin channel and one group over one block of pixels. */
static void weights_block(const lsi_few *f, const padded *x, stretch s, int nv, float *total)
{
    const int64_t tap_floats = f->n_wide, row_floats = f->kw * tap_floats;

    s.x_tap_row = f->dh * x->row;
    if (f->kh == 3 && f->kw == 3 && weights_3x3[nv]) {
        weights_3x3[nv](&s, total, row_floats, tap_floats);
        return;
    }
    const float *corner = s.x;
    for (int64_t ky = 0; ky < f->kh; ky++) {
        const int64_t pieces = (f->kw + WEIGHTS_KW - 1) / WEIGHTS_KW;
        for (int64_t k = 0; k < pieces; k++) {
            const int64_t kx = f->kw * k / pieces, n = f->kw * (k + 1) / pieces - kx;
            s.x = corner + ky * s.x_tap_row + kx;
            weights_rows[nv][n - 1](&s, total + ky * row_floats + kx * tap_floats, row_floats, tap_floats);
        }
    }
}

static void weights(const lsi_few *f, int64_t lo, int64_t hi, float *scratch)
{
    const int nv = weights_nv(f);
    const int64_t group = nv * VW, taps = f->kh * f->kw, plane = f->ho * f->wo * 16;
    /* Lines of a block stay in L1 while the taps pass over them. */
    const int64_t pixels = 5120 / group, cols_max = min64(f->wo, pixels), rows_max = max64(pixels / f->wo, 1);
    float *buffer = scratch + lsi_few_weights(f);

    memset(scratch, 0, (size_t)lsi_few_weights(f) * sizeof *scratch);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t sample = u / f->n_bands, first = u % f->n_bands * f->band,
                      end = min64(first + f->band, f->ho);
        const padded x = pad_rows(f, sample, first, end - first, buffer);
        for (int64_t g = 0; g < f->n_wide; g += group) {
            const float *lines = f->wide + (sample * f->n_wide / 16 + g / 16) * plane;
            for (int64_t oy = first; oy < end; oy += rows_max) {
                for (int64_t ox = 0; ox < f->wo; ox += cols_max) {
                    stretch s = {.y = lines + (oy * f->wo + ox) * 16,
                                 .rows = min64(rows_max, end - oy),
                                 .cols = min64(cols_max, f->wo - ox),
                                 .x_row = f->sh * x.row,
                                 .x_step = f->sw,
                                 .y_row = f->wo * 16,
                                 .plane = plane};
                    for (int64_t i = 0; i < f->n_thin; i++) {
                        s.x = x.data + i * x.plane + (oy - first) * f->sh * x.row + ox * f->sw;
                        weights_block(f, &x, s, nv, scratch + i * taps * f->n_wide + g);
                    }
                }
            }
        }
    }
}
