/* conv_kernels.h: the vector kernels under the blocked convolutions, one table per instruction set.
 *
 * A `line` is the 16 channels of one pixel: 16 consecutive floats, 64 bytes.  All kernels work on lines and
 * on 16 x 16 blocks of weights; the drivers (conv_direct*.c, conv_wino*.c) hold the loops and know no
 * vectors. Kernels neither allocate nor start threads. */
#ifndef LS_BACKEND_CPU_CONV_KERNELS_H
#define LS_BACKEND_CPU_CONV_KERNELS_H

#include "backend/cpu/conv.h"

#define LSI_LINE 16 /* floats */

/* c[m][o] = sum over b < n_terms, k < 16 of (a + a_off[b])[m * a_step + k] * (b + b_off[b])[k][o]
 * for m < rows and o < 16 * blocks; a_step is 16 or 32.  Row m of block j goes to c + m*c_row + j*c_block. */
typedef struct lsi_gemm_rows {
    const float *a, *b;
    const int64_t *a_off, *b_off;
    int64_t n_terms;
    float *c;
    int64_t c_row, c_block;
} lsi_gemm_rows;

/* One stretch of a reduction over pixels: (a + a_off)[k * a_step + i] and (b + b_off)[k * 16 + o], k < len.
 */
typedef struct lsi_gemm_run {
    int64_t a_off, b_off, len;
} lsi_gemm_run;

/* A part of a map: h x w lines, of which those in [y_lo, y_hi) x [x_lo, x_hi) exist. */
typedef struct lsi_wino_part {
    float *at;        /* line (0, 0), whether it exists or not */
    int64_t row, col; /* distances in floats */
    int h, w, y_lo, y_hi, x_lo, x_hi;
} lsi_wino_part;

/* Where one tile of results goes. */
typedef struct lsi_wino_out {
    float *y;
    int64_t row, col;  /* distances in floats */
    int rows, cols;    /* how many to store: at least 1, at most those of the tile */
    const float *bias; /* 16 floats or NULL */
    lsi_conv_act act;
    float slope;
} lsi_wino_out;

/* The transforms of one size of tile: h x w results from h + taps - 1 by w + taps - 1 pixels.  The points of
 * a tile lie `plane` floats apart; bit i of `points` is set when the tile uses point i.  read: pixels (row
 * and column distances in floats) to points.  grad: tile of an output gradient to points.  write: points to
 * results, bias and activation applied. */
typedef struct lsi_wino_tile {
    int h, w;
    uint64_t points;
    void (*read)(const float *x, int64_t row, int64_t col, float *v, int64_t plane);
    void (*grad)(const float *y, int64_t row, int64_t col, float *z, int64_t plane);
    void (*write)(const float *m, int64_t plane, const lsi_wino_out *o);
} lsi_wino_tile;

/* One kind of Winograd convolution.  A tile of results is made from read_h x read_w pixels and a filter of
 * taps_h x taps_w by as many products as pixels; point (i, j) is line i * read_w + j.  cut[rows - 1][cols -
 * 1] (or NULL): the smallest tile with so many results, which uses some of the same points.  spread (or
 * NULL): the adjoint of the tile's read; adds read_h x read_w pixels to those that are there.  weights: a
 * filter, one line per tap, to points.  dw: points to a filter's gradient. */
typedef struct lsi_wino_kernels {
    const lsi_wino_tile *tile;
    int read_h, read_w, taps_h, taps_w;
    const lsi_wino_tile *cut[4][4];
    void (*spread)(const float *m, int64_t plane, const lsi_wino_out *o);
    void (*weights)(const float *const *g, float *u, int64_t plane);
    void (*dw)(const float *u, int64_t plane, float *const *g);
} lsi_wino_kernels;

/* F(4x4, 3x3), and along rows only F(6, 3) and F(4, 5). */
enum { LSI_WINO_4X4_3X3, LSI_WINO_6_3, LSI_WINO_4_5, LSI_WINO_KINDS };
enum { LSI_WINO_MAX_POINTS = 36, LSI_WINO_MAX_TAPS = 9 };

typedef struct lsi_conv_kernels {
    const char *name;
    int rows_max;   /* most rows gemm_rows takes at once */
    int blocks_max; /* most output blocks gemm_rows takes at once: 1 or 2 */

    void (*gemm_rows)(int rows, int blocks, int64_t a_step, const lsi_gemm_rows *g);
    /* c[i][o] (16 x 16, contiguous) += sum over the runs and k of a[..][i] * b[..][o]. */
    void (*gemm_outer)(const float *a, int64_t a_step, const float *b, const lsi_gemm_run *runs,
                       int64_t n_runs, float *c);
    /* c[row] = act(c[row] + bias) for `rows` lines that are c_row floats apart; bias: 16 floats or NULL. */
    void (*finish)(float *c, int64_t rows, int64_t c_row, const float *bias, lsi_conv_act act, float slope);
    /* t[j][i] = s[i * s_row + j] for i, j < 16; t rows are contiguous lines given one by one. */
    void (*transpose_in)(const float *s, int64_t s_row, float *const t[16]);
    /* The same for columns j < cols <= 16 only; nothing beyond them is read.  A NULL t[j] is left out. */
    void (*transpose_cols)(const float *s, int64_t s_row, int cols, float *const *t);
    /* t[i * t_row + j] = s[j][i]: the way back. */
    void (*transpose_out)(const float *const s[16], float *t, int64_t t_row);

    const lsi_wino_kernels *wino[LSI_WINO_KINDS];
    /* Copies a part to contiguous lines; those that do not exist become zero. */
    void (*wino_fill)(const lsi_wino_part *part, float *to);
} lsi_conv_kernels;

/* The best table this CPU can run, or NULL when it has neither AVX-512F nor AVX2 + FMA.
   See isa.h for how to hold an instruction set back. */
const lsi_conv_kernels *lsi_conv_kernels_get(void);

extern const lsi_conv_kernels lsi_conv_kernels_avx512;
extern const lsi_conv_kernels lsi_conv_kernels_avx2;

#endif
