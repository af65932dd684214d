/* conv_few_to_thin_template.h: wide map -> thin map, a transposed convolution (part of conv_few_template.h).
 *
 * The sum runs over the wide map's channels, so vectors hold neighbouring pixels instead: each row of the
 * wide map is transposed into rows per channel.  A wide row contributes to kh rows of the thin map; columns
 * of the thin map that are equal modulo the stride form a phase, within which taps are plain shifts.  For one
 * phase, kh rows by a few vectors of pixels are summed in registers over all channels and the phase's taps,
 * then added to the band's rows in a buffer, phase by phase; finished rows are interleaved into the map with
 * bias and activation. */

/* The taps of one phase: thin column q * sw + phase gets w(kx) * wide column (q - shift(kx)). */
typedef struct phase {
    int64_t n_taps, first_kx, step_kx, first_shift, step_shift; /* taps first_kx, first_kx + step_kx, ... */
    int64_t cols;                                               /* of this phase in a row of the thin map */
} phase;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static phase phase_of(const lsi_few *f, int64_t c)
{
    const int64_t every = f->sw / gcd(f->sw, f->dw); /* taps that far apart share a phase */
    phase ph = {
        .step_kx = every, .step_shift = every * f->dw / f->sw, .cols = (f->wi - c + f->sw - 1) / f->sw};

    for (ph.first_kx = 0; ph.first_kx < min64(every, f->kw); ph.first_kx++) {
        const int64_t d = ph.first_kx * f->dw - f->pl - c;
        if (d % f->sw) continue;
        ph.first_shift = d / f->sw;
        ph.n_taps = (f->kw - ph.first_kx + every - 1) / every;
        break;
    }
    return ph;
}

/* Sizes of the buffers: rows of channels with room for every shift, and the band's rows by phase. */
typedef struct thin_plan {
    int64_t left, row;      /* zeros before column 0 of a transposed row; its length */
    int64_t acc_row, q_max; /* floats per row and phase of the band buffer; its columns before rounding */
} thin_plan;

enum { THIN_BLOCK = THIN_NB_MAX * VW };

static thin_plan plan_thin(const lsi_few *f)
{
    thin_plan t = {.q_max = (f->wi + f->sw - 1) / f->sw};
    int64_t right = 0;

    t.acc_row = (t.q_max + THIN_BLOCK - 1) / THIN_BLOCK * THIN_BLOCK;
    for (int64_t c = 0; c < f->sw; c++) {
        const phase ph = phase_of(f, c);
        for (int64_t k = 0; k < ph.n_taps; k++) {
            const int64_t shift = ph.first_shift + k * ph.step_shift;
            t.left = max64(t.left, shift);
            right = max64(right, t.acc_row - shift);
        }
    }
    t.row = t.left + max64(right, (f->wo + VW - 1) / VW * VW);
    return t;
}

static size_t to_thin_floats(const lsi_few *f)
{
    const thin_plan t = plan_thin(f);

    return (size_t)(lsi_few_weights(f) + f->n_wide * t.row + f->n_thin * f->band * f->sw * t.acc_row);
}

/* Rows of taps are handled in pieces of at most THIN_KH. */
static int64_t n_pieces(const lsi_few *f)
{
    return (f->kh + THIN_KH - 1) / THIN_KH;
}

/* Weights in the order of use: [i][phase][piece of ky][channel][tap of the phase][ky of the piece]. */
static void pack_thin(const lsi_few *f, float *to)
{
    const int64_t pieces = n_pieces(f);

    for (int64_t i = 0; i < f->n_thin; i++)
        for (int64_t c = 0; c < f->sw; c++) {
            const phase ph = phase_of(f, c);
            for (int64_t k = 0; k < pieces; k++)
                for (int64_t o = 0; o < f->n_wide; o++)
                    for (int64_t t = 0; t < ph.n_taps; t++)
                        for (int64_t ky = f->kh * k / pieces; ky < f->kh * (k + 1) / pieces; ky++)
                            *to++ = f->w[o * f->w_o + i * f->w_i + ky * f->w_y +
                                         (ph.first_kx + t * ph.step_kx) * f->w_x];
        }
}

/* VW pixels of VW channels; `n` of the pixels exist. */
V_INLINE void transpose_lines(const float *from, int64_t n, float *to, int64_t row)
{
    vf r[VW];

    if (n == VW) {
        V_UNROLL
        for (int i = 0; i < VW; i++) r[i] = v_load(from + i * 16);
        v_transpose(r);
        V_UNROLL
        for (int i = 0; i < VW; i++) v_store(to + i * row, r[i]);
        return;
    }
    V_UNROLL
    for (int i = 0; i < VW; i++) r[i] = i < n ? v_load(from + i * 16) : v_zero();
    v_transpose(r);
    V_UNROLL
    for (int i = 0; i < VW; i++) v_store_n(to + i * row, r[i], n);
}

/* Row oy of all channels, transposed: to[o * row + left + ox].  What lies around stays zero. */
static void transpose_row(const lsi_few *f, int64_t sample, int64_t oy, const thin_plan *t, float *to)
{
    for (int64_t o = 0; o < f->n_wide; o += VW) {
        const float *from = f->wide + ((sample * f->n_wide / 16 + o / 16) * f->ho + oy) * f->wo * 16 + o % 16;
        for (int64_t ox = 0; ox < f->wo; ox += VW)
            transpose_lines(from + ox * 16, min64(VW, f->wo - ox), to + o * t->row + t->left + ox, t->row);
    }
}

/* The next row of the wide map is fetched while this one is worked on: transposing it would otherwise wait
 * for memory with the arithmetic units idle. */
typedef struct ahead {
    const float *row;    /* its first line in channel block 0, or NULL after the last row */
    int64_t done;        /* lines fetched so far, of wo per channel block */
    int64_t per_channel; /* lines to fetch per round of a tile's loop over channels */
} ahead;

static ahead look_ahead(const lsi_few *f, const thin_plan *t, int64_t sample, int64_t oy)
{
    const int64_t tiles = f->n_thin * n_pieces(f) * f->sw * (t->acc_row / THIN_BLOCK);
    const int64_t lines = f->n_wide / 16 * f->wo, rounds = tiles * f->n_wide;

    if (oy + 1 >= f->ho) return (ahead){0};
    return (ahead){.row = f->wide + (sample * f->n_wide / 16 * f->ho + oy + 1) * f->wo * 16,
                   .per_channel = (lines + rounds - 1) / rounds};
}

/* Where a tile begins to fetch, or NULL when all has been asked for; the tile takes per_channel * n_wide
 * lines, and may run past the end of a block's row, which does no harm. */
static const float *take_ahead(const lsi_few *f, ahead *next)
{
    const int64_t at = next->done;

    if (!next->row || at >= f->n_wide / 16 * f->wo) return NULL;
    next->done += next->per_channel * f->n_wide;
    return next->row + (at / f->wo * f->ho * f->wo + at % f->wo) * 16;
}

/* kh rows by nb vectors of one phase; kh and nb are constants where this is inlined. */
V_INLINE void thin_tile(const int kh, const int nb, const lsi_few *f, const phase *ph, const float *src,
                        int64_t row, const float *w, const float *fetch, int64_t n_fetch, float *const *out)
{

    vf acc[THIN_KH][THIN_NB_MAX];

    V_UNROLL
    for (int k = 0; k < kh; k++) {
        V_UNROLL
        for (int b = 0; b < nb; b++) acc[k][b] = v_zero();
    }
    for (int64_t o = 0; o < f->n_wide; o++, src += row) {
        const float *s = src - ph->first_shift;
        for (int64_t l = 0; l < n_fetch; l++, fetch += 16) _mm_prefetch((const char *)fetch, _MM_HINT_T1);
        for (int64_t t = 0; t < ph->n_taps; t++, s -= ph->step_shift, w += kh) {
            vf sv[THIN_NB_MAX];
            V_UNROLL
            for (int b = 0; b < nb; b++) sv[b] = v_load(s + b * VW);
            V_UNROLL
            for (int k = 0; k < kh; k++) {
                const vf wv = v_set(w[k]);
                V_UNROLL
                for (int b = 0; b < nb; b++) acc[k][b] = v_fma(wv, sv[b], acc[k][b]);
            }
        }
    }
    V_UNROLL
    for (int k = 0; k < kh; k++) {
        if (!out[k]) continue; /* outside the band */
        V_UNROLL
        for (int b = 0; b < nb; b++) v_store(out[k] + b * VW, v_add(v_load(out[k] + b * VW), acc[k][b]));
    }
}

typedef void (*thin_fn)(const lsi_few *f, const phase *ph, const float *src, int64_t row, const float *w,
                        const float *fetch, int64_t n_fetch, float *const *out);

#define THIN(kh, nb)                                                                                         \
    static void thin_##kh##_##nb(const lsi_few *f, const phase *ph, const float *src, int64_t row,           \
                                 const float *w, const float *fetch, int64_t n_fetch, float *const *out)     \
    {                                                                                                        \
        thin_tile(kh, nb, f, ph, src, row, w, fetch, n_fetch, out);                                          \
    }
#define THINS(kh)      THIN(kh, 1) THIN(kh, 2) THIN(kh, 3) THIN(kh, 4)
#define THIN_NAMES(kh) thin_##kh##_1, thin_##kh##_2, thin_##kh##_3, thin_##kh##_4

/* By rows and number of vectors; what has no entry would need more registers than there are. */
/* clang-format off */
#if VW == 16
THINS(1) THINS(2) THINS(3) THINS(4) THINS(5) THINS(6) THIN(7, 1) THIN(7, 2) THIN(7, 3)
static const thin_fn thins[THIN_KH][THIN_NB_MAX] = {
    {THIN_NAMES(1)}, {THIN_NAMES(2)}, {THIN_NAMES(3)}, {THIN_NAMES(4)}, {THIN_NAMES(5)}, {THIN_NAMES(6)},
    {thin_7_1, thin_7_2, thin_7_3},
};
#else
THINS(1) THINS(2) THIN(3, 1) THIN(3, 2) THIN(3, 3) THIN(4, 1) THIN(4, 2) THIN(5, 1) THIN(5, 2) THIN(6, 1) THIN(7, 1)
static const thin_fn thins[THIN_KH][THIN_NB_MAX] = {
    {THIN_NAMES(1)}, {THIN_NAMES(2)}, {thin_3_1, thin_3_2, thin_3_3}, {thin_4_1, thin_4_2}, {thin_5_1, thin_5_2},
    {thin_6_1}, {thin_7_1},
};
#endif
/* clang-format on */

/* The contributions of the transposed row oy to channel i's rows of the band, which begins at row r0. */
static void add_row(const lsi_few *f, const thin_plan *t, int64_t oy, int64_t r0, int64_t rows,
                    const float *src, const float **w, ahead *next, float *band)
{
    for (int64_t c = 0; c < f->sw; c++) {
        const phase ph = phase_of(f, c);
        const int64_t pieces = n_pieces(f);
        for (int64_t p = 0; p < pieces; p++) {
            const int64_t k0 = f->kh * p / pieces, kh = f->kh * (p + 1) / pieces - k0;
            for (int64_t q = 0; q < ph.cols && ph.n_taps > 0;) {
                int64_t nb = min64((ph.cols - q + VW - 1) / VW, THIN_NB_MAX);
                const float *fetch = take_ahead(f, next);
                float *out[THIN_KH];
                while (!thins[kh - 1][nb - 1]) nb--;
                for (int64_t k = 0; k < kh; k++) {
                    const int64_t r = oy * f->sh + (k0 + k) * f->dh - f->pt - r0;
                    out[k] = r >= 0 && r < rows ? band + (r * f->sw + c) * t->acc_row + q : NULL;
                }
                thins[kh - 1][nb - 1](f, &ph, src + t->left + q, t->row, *w, fetch,
                                      fetch ? next->per_channel : 0, out);
                q += nb * VW;
            }
            *w += f->n_wide * ph.n_taps * kh;
        }
    }
}

/* Interleaves the phases of one row. */
static void merge_phases(const lsi_few *f, const thin_plan *t, const float *from, float *to)
{
    int64_t q = 0;

    if (f->sw == 1) {
        memcpy(to, from, (size_t)f->wi * sizeof *to);
        return;
    }
    for (; f->sw == 2 && q + VW <= f->wi / 2; q += VW)
        v_interleave(to + 2 * q, v_load(from + q), v_load(from + t->acc_row + q));
    for (int64_t i = q * f->sw; i < f->wi; i++) to[i] = from[i % f->sw * t->acc_row + i / f->sw];
}

/* Whether row oy of the wide map touches rows [r0, r0 + rows) of the thin one. */
static bool touches(const lsi_few *f, int64_t oy, int64_t r0, int64_t rows)
{
    for (int64_t ky = 0; ky < f->kh; ky++) {
        const int64_t r = oy * f->sh + ky * f->dh - f->pt - r0;
        if (r >= 0 && r < rows) return true;
    }
    return false;
}

static void to_thin(const lsi_few *f, int64_t lo, int64_t hi, float *scratch)
{
    const thin_plan t = plan_thin(f);
    const int64_t band_floats = f->band * f->sw * t.acc_row;
    float *rows_t = scratch + lsi_few_weights(f), *band = rows_t + f->n_wide * t.row;

    if (lo >= hi) return;
    pack_thin(f, scratch);
    memset(rows_t, 0, (size_t)(f->n_wide * t.row) * sizeof *rows_t);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t sample = u / f->n_bands, r0 = u % f->n_bands * f->band,
                      rows = min64(f->band, f->hi - r0);
        memset(band, 0, (size_t)(f->n_thin * band_floats) * sizeof *band);
        for (int64_t oy = 0; oy < f->ho; oy++) {
            if (!touches(f, oy, r0, rows)) continue;
            transpose_row(f, sample, oy, &t, rows_t);
            const float *w = scratch;
            ahead next = look_ahead(f, &t, sample, oy);
            for (int64_t i = 0; i < f->n_thin; i++)
                add_row(f, &t, oy, r0, rows, rows_t, &w, &next, band + i * band_floats);
        }
        for (int64_t i = 0; i < f->n_thin; i++)
            for (int64_t r = 0; r < rows; r++) {
                float *to = f->thin + ((sample * f->n_thin + i) * f->hi + r0 + r) * f->wi;
                merge_phases(f, &t, band + i * band_floats + r * f->sw * t.acc_row, to);
                if (f->bias || f->act != LSI_ACT_NONE)
                    finish_row(to, f->wi, f->bias ? f->bias[i] : 0, f->act, f->slope);
            }
    }
}
