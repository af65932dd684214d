/* conv_gemm_kernel.h: register-blocked products and 16 x 16 transposes, for one instruction set.
 *
 * Included once by each conv_kernels_<isa>.c.  The register blocking: AVX-512 holds 14 rows x 2 blocks (28 of
 * 32 registers), AVX2 6 rows x 1 block (12 of 16); every loaded weight vector meets all rows, every broadcast
 * pixel value all blocks, so the loads stay below one per multiply-add. */
#ifndef LS_BACKEND_CPU_CONV_GEMM_KERNEL_H
#define LS_BACKEND_CPU_CONV_GEMM_KERNEL_H

#include "backend/cpu/conv_kernels.h"
#include "backend/cpu/conv_vec.h"
#include "backend/cpu/vec_transpose.h"

#if VW == 16
#define ROWS_MAX   14
#define BLOCKS_MAX 2
#else
#define ROWS_MAX   6
#define BLOCKS_MAX 1
#endif

V_INLINE void gemm_rows_body(const int rows, const int nv, const int64_t a_step, const lsi_gemm_rows *g)
{
    vf acc[ROWS_MAX][BLOCKS_MAX * VPB];

    V_UNROLL
    for (int m = 0; m < rows; m++) {
        V_UNROLL
        for (int j = 0; j < nv; j++) acc[m][j] = v_zero();
    }
    for (int64_t t = 0; t < g->n_terms; t++) {
        const float *a = g->a + g->a_off[t];
        const float *b = g->b + g->b_off[t];
        V_UNROLL_2
        for (int k = 0; k < LSI_LINE; k++) {
            vf w[BLOCKS_MAX * VPB];
            V_UNROLL
            for (int j = 0; j < nv; j++) w[j] = v_load(b + j * VW);
            V_UNROLL
            for (int m = 0; m < rows; m++) {
                const vf x = v_set(a[m * a_step]);
                V_UNROLL
                for (int j = 0; j < nv; j++) acc[m][j] = v_fma(x, w[j], acc[m][j]);
            }
            a += 1;
            b += nv * VW;
        }
    }
    V_UNROLL
    for (int m = 0; m < rows; m++) {
        V_UNROLL
        for (int j = 0; j < nv; j++)
            v_store(g->c + m * g->c_row + (j / VPB) * g->c_block + (j % VPB) * VW, acc[m][j]);
    }
}

/* One function per number of rows, so that the accumulators are registers. */
#define GEMM_ROWS_CASE(R)                                                                                    \
    case R: gemm_rows_body(R, nv, a_step, g); break;

V_INLINE void gemm_rows_switch(int rows, const int nv, const int64_t a_step, const lsi_gemm_rows *g)
{
    switch (rows) {
        GEMM_ROWS_CASE(1)
        GEMM_ROWS_CASE(2)
        GEMM_ROWS_CASE(3)
        GEMM_ROWS_CASE(4)
        GEMM_ROWS_CASE(5)
        GEMM_ROWS_CASE(6)
#if ROWS_MAX > 6
        GEMM_ROWS_CASE(7)
        GEMM_ROWS_CASE(8)
        GEMM_ROWS_CASE(9)
        GEMM_ROWS_CASE(10)
        GEMM_ROWS_CASE(11)
        GEMM_ROWS_CASE(12)
        GEMM_ROWS_CASE(13)
        GEMM_ROWS_CASE(14)
#endif
    default: break;
    }
}

static void gemm_rows(int rows, int blocks, int64_t a_step, const lsi_gemm_rows *g)
{
    /* The step is a constant in each copy: displacements instead of 14 row pointers. */
    if (a_step == LSI_LINE) {
        if (blocks == 1) gemm_rows_switch(rows, VPB, LSI_LINE, g);
#if BLOCKS_MAX > 1
        else
            gemm_rows_switch(rows, 2 * VPB, LSI_LINE, g);
#endif
    } else {
        if (blocks == 1) gemm_rows_switch(rows, VPB, 2 * LSI_LINE, g);
#if BLOCKS_MAX > 1
        else
            gemm_rows_switch(rows, 2 * VPB, 2 * LSI_LINE, g);
#endif
    }
}

/* Rows i0..i0+n-1 of the 16 x 16 outer-product accumulation.  Each call sums from zero and adds the result:
 * sums of sums lose less than one long sum. */
V_INLINE void gemm_outer_rows(const int i0, const int n, const float *a, int64_t a_step, const float *b,
                              const lsi_gemm_run *runs, int64_t n_runs, float *c)
{
    vf acc[16][VPB];

    V_UNROLL
    for (int i = 0; i < n; i++) {
        V_UNROLL
        for (int j = 0; j < VPB; j++) acc[i][j] = v_zero();
    }
    for (int64_t r = 0; r < n_runs; r++) {
        const float *ar = a + runs[r].a_off + i0;
        const float *br = b + runs[r].b_off;
        for (int64_t k = runs[r].len; k > 0; k--) {
            vf y[VPB];
            V_UNROLL
            for (int j = 0; j < VPB; j++) y[j] = v_load(br + j * VW);
            V_UNROLL
            for (int i = 0; i < n; i++) {
                const vf x = v_set(ar[i]);
                V_UNROLL
                for (int j = 0; j < VPB; j++) acc[i][j] = v_fma(x, y[j], acc[i][j]);
            }
            ar += a_step;
            br += LSI_LINE;
        }
    }
    V_UNROLL
    for (int i = 0; i < n; i++) {
        V_UNROLL
        for (int j = 0; j < VPB; j++) {
            float *to = c + (i0 + i) * LSI_LINE + j * VW;
            v_store(to, v_add(v_load(to), acc[i][j]));
        }
    }
}

static void gemm_outer(const float *a, int64_t a_step, const float *b, const lsi_gemm_run *runs,
                       int64_t n_runs, float *c)
{
#if VW == 16
    gemm_outer_rows(0, 16, a, a_step, b, runs, n_runs, c);
#else
    gemm_outer_rows(0, 6, a, a_step, b, runs, n_runs, c);
    gemm_outer_rows(6, 5, a, a_step, b, runs, n_runs, c);
    gemm_outer_rows(11, 5, a, a_step, b, runs, n_runs, c);
#endif
}

static void finish(float *c, int64_t rows, int64_t c_row, const float *bias, lsi_conv_act act, float slope)
{
    for (int j = 0; j < VPB; j++) {
        const vf b = bias ? v_load(bias + j * VW) : v_zero();
        for (int64_t r = 0; r < rows; r++) {
            float *p = c + r * c_row + j * VW;
            v_store(p, v_act(v_add(v_load(p), b), act, slope));
        }
    }
}

static void transpose_in(const float *s, int64_t s_row, float *const t[16])
{
    for (int bi = 0; bi < 16; bi += VW) {
        for (int bj = 0; bj < 16; bj += VW) {
            vf r[VW];
            V_UNROLL
            for (int i = 0; i < VW; i++) r[i] = v_load(s + (bi + i) * s_row + bj);
            v_transpose(r);
            V_UNROLL
            for (int j = 0; j < VW; j++) v_store(t[bj + j] + bi, r[j]);
        }
    }
}

static void transpose_cols(const float *s, int64_t s_row, int cols, float *const *t)
{
    for (int bi = 0; bi < 16; bi += VW) {
        for (int bj = 0; bj < cols; bj += VW) {
            const int n = cols - bj < VW ? cols - bj : VW;
            vf r[VW];
            V_UNROLL
            for (int i = 0; i < VW; i++) r[i] = v_load_n(s + (bi + i) * s_row + bj, n);
            v_transpose(r);
            V_UNROLL
            for (int j = 0; j < VW; j++)
                if (j < n && t[bj + j]) v_store(t[bj + j] + bi, r[j]);
        }
    }
}

static void transpose_out(const float *const s[16], float *t, int64_t t_row)
{
    for (int bi = 0; bi < 16; bi += VW) {
        for (int bj = 0; bj < 16; bj += VW) {
            vf r[VW];
            V_UNROLL
            for (int j = 0; j < VW; j++) r[j] = v_load(s[bj + j] + bi);
            v_transpose(r);
            V_UNROLL
            for (int i = 0; i < VW; i++) v_store(t + (bi + i) * t_row + bj, r[i]);
        }
    }
}

#endif
