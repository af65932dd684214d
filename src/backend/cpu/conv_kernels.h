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

/* Where one tile of results goes. */
typedef struct lsi_wino_out {
    float *y;
    int64_t row, col;  /* distances in floats */
    int rows, cols;    /* 1..4 each */
    const float *bias; /* 16 floats or NULL */
    lsi_conv_act act;
    float slope;
} lsi_wino_out;

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
    /* t[i * t_row + j] = s[j][i]: the way back. */
    void (*transpose_out)(const float *const s[16], float *t, int64_t t_row);

    /* Transforms of Winograd's F(4x4, 3x3); point (i, j) of a tile is line i * 6 + j, `plane` floats apart.
     * wino_read: 6x6 pixels (row and column distances in floats) to 36 points.
     * wino_grad: 4x4 pixels of an output gradient to 36 points.
     * wino_write: 36 points to 4x4 pixels, of which the first rows x cols are stored, bias and activation
     * applied. wino_weights: a 3x3 filter, one line per tap, to 36 points; wino_dw: 36 points to a filter's
     * gradient. */
    void (*wino_read)(const float *x, int64_t row, int64_t col, float *v, int64_t plane);
    void (*wino_grad)(const float *y, int64_t row, int64_t col, float *z, int64_t plane);
    void (*wino_write)(const float *m, int64_t plane, const lsi_wino_out *o);
    void (*wino_weights)(const float *const g[9], float *u, int64_t plane);
    void (*wino_dw)(const float *u, int64_t plane, float *const g[9]);
} lsi_conv_kernels;

/* The best table this CPU can run, or NULL when it has neither AVX-512F nor AVX2 + FMA.
 * LOCKSTEP_CPU_ISA=avx2 in the environment holds AVX-512 back, =none both: for tests and comparisons. */
const lsi_conv_kernels *lsi_conv_kernels_get(void);

extern const lsi_conv_kernels lsi_conv_kernels_avx512;
extern const lsi_conv_kernels lsi_conv_kernels_avx2;

#endif
