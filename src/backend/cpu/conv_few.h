/* conv_few.h: convolutions between a plain map of few channels and a channel-blocked map of many.
 *
 * One geometry serves two kinds of layer.  "first": x is the plain map, y the blocked one (image ->
 * features). "last": y is the plain map (features -> image); with stride 1 that is the same thing seen from
 * the other side, with the filter turned around and forward and backward exchanged.  A view names the two
 * sides by what they are: `thin` (plain, n_thin channels) and `wide` (blocked by 16), related as x and y of a
 * "first" convolution. */
#ifndef LS_BACKEND_CPU_CONV_FEW_H
#define LS_BACKEND_CPU_CONV_FEW_H

#include "backend/cpu/conv.h"

#define LSI_FEW_MAX_THIN 8

/* wide[s][o][oy][ox] = sum of w(o, i, ky, kx) * thin[s][i][oy*sh + ky*dh - pt][ox*sw + kx*dw - pl],
 * where w(o, i, ky, kx) is w[o*w_o + i*w_i + ky*w_y + kx*w_x]. */
typedef struct lsi_few {
    int64_t n, n_thin, hi, wi, n_wide, ho, wo;
    int64_t kh, kw, sh, sw, dh, dw, pt, pl;
    int64_t w_o, w_i, w_y, w_x;
    float *thin, *w, *wide,
        *bias; /* w points at the element (0, 0, 0, 0); bias or NULL, of the written side */
    lsi_conv_act act;
    float slope;
    int64_t band, n_bands; /* work is cut into n * n_bands units: bands of rows of one sample */
} lsi_few;

/* The per-thread parts of the three passes, for units [lo, hi).  `scratch` is the thread's own. */
typedef struct lsi_few_kernels {
    bool (*usable)(void); /* whether this processor has the instructions */
    bool (*can)(const lsi_few *f, lsi_conv_pass pass);
    size_t (*scratch)(const lsi_few *f, lsi_conv_pass pass); /* floats per thread */
    void (*to_wide)(const lsi_few *f, int64_t lo, int64_t hi, float *scratch);
    void (*to_thin)(const lsi_few *f, int64_t lo, int64_t hi, float *scratch);
    /* Leaves the sums over the units in the first lsi_few_weights floats of scratch, as (i, ky, kx, wide). */
    void (*weights)(const lsi_few *f, int64_t lo, int64_t hi, float *scratch);
} lsi_few_kernels;

extern const lsi_few_kernels lsi_few_avx512; /* conv_few_avx512.c */
extern const lsi_few_kernels lsi_few_avx2;   /* conv_few_avx2.c */

static inline int64_t lsi_few_weights(const lsi_few *f)
{
    return f->n_wide * f->n_thin * f->kh * f->kw;
}

/* Rows of the thin map under `rows` rows of the wide one, and columns under a whole row. */
static inline int64_t lsi_few_rows(const lsi_few *f, int64_t rows)
{
    return (rows - 1) * f->sh + (f->kh - 1) * f->dh + 1;
}
static inline int64_t lsi_few_cols(const lsi_few *f)
{
    return (f->wo - 1) * f->sw + (f->kw - 1) * f->dw + 1;
}

#endif
