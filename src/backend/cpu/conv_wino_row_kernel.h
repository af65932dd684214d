/* conv_wino_row_kernel.h: one-dimensional Winograd transforms along rows, for one instruction set.
 *
 * Eight points 0, 1/2, -1/2, 1, -1, 2, -2 and infinity give six results of a 3-tap or four of a 5-tap
 * filter: 2.25 and 2.5 times fewer products than the definition.  In one dimension these points are as exact
 * as the six of F(4x4, 3x3) are in two.  The read transform is common; the others differ in length only, so
 * they take it as a constant. */
#ifndef LS_BACKEND_CPU_CONV_WINO_ROW_KERNEL_H
#define LS_BACKEND_CPU_CONV_WINO_ROW_KERNEL_H

#include "backend/cpu/conv_gemm_kernel.h"

#define ROW_POINTS 8

/* The finite points other than zero come in pairs p, -p.  `powers` of p, and the product of p's differences
 * to all other finite points, which is the same for p and -p. */
typedef struct row_pair {
    float p, norm;
    float e1, e2; /* sum and product of the squares of the other two pairs */
} row_pair;

static const row_pair row_pairs[3] = {
    {0.5f, 2.0f * 0.25f * (0.25f - 1.0f) * (0.25f - 4.0f), 1.0f + 4.0f, 1.0f * 4.0f},
    {1.0f, 2.0f * 1.0f * (1.0f - 0.25f) * (1.0f - 4.0f), 0.25f + 4.0f, 0.25f * 4.0f},
    {2.0f, 2.0f * 4.0f * (4.0f - 0.25f) * (4.0f - 1.0f), 0.25f + 1.0f, 0.25f * 1.0f},
};
/* Elementary symmetric functions of the three squares; the third is the size of zero's norm, which is
 * negative. */
#define ROW_S1 5.25f
#define ROW_S2 5.25f
#define ROW_S3 1.0f

static void row_read(const float *x, int64_t row, int64_t col, float *v, int64_t plane)
{
    const vf s1 = v_set(ROW_S1), s2 = v_set(ROW_S2), s3 = v_set(ROW_S3);

    (void)row;
    for (int h = 0; h < 16; h += VW) {
        vf d[ROW_POINTS];
        V_UNROLL
        for (int i = 0; i < ROW_POINTS; i++) d[i] = v_load(x + i * col + h);
        v_store(v + h, v_fnma(s3, d[0], v_fma(s2, d[2], v_fnma(s1, d[4], d[6]))));
        v_store(v + 7 * plane + h, v_fnma(s3, d[1], v_fma(s2, d[3], v_fnma(s1, d[5], d[7]))));
        V_UNROLL
        for (int i = 0; i < 3; i++) {
            const vf e1 = v_set(row_pairs[i].e1), e2 = v_set(row_pairs[i].e2), p = v_set(row_pairs[i].p);
            const vf even = v_fma(e2, d[2], v_fnma(e1, d[4], d[6]));
            const vf odd = v_fma(e2, d[1], v_fnma(e1, d[3], d[5]));
            v_store(v + (1 + 2 * i) * plane + h, v_fma(p, odd, even));
            v_store(v + (2 + 2 * i) * plane + h, v_fnma(p, odd, even));
        }
    }
}

/* sum over k of a[k] p^k split into even and odd powers. */
V_INLINE void row_split(const vf *a, const int n, float p, vf *even, vf *odd)
{
    *even = a[0];
    *odd = v_mul(a[1], v_set(p));
    float q = p * p;
    V_UNROLL
    for (int k = 2; k < n; k++, q *= p) {
        if (k % 2 == 0)
            *even = v_fma(a[k], v_set(q), *even);
        else
            *odd = v_fma(a[k], v_set(q), *odd);
    }
}

V_INLINE void row_grad(const int n, const float *y, int64_t col, float *z, int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf d[6];
        V_UNROLL
        for (int i = 0; i < n; i++) d[i] = v_load(y + i * col + h);
        v_store(z + h, d[0]);
        v_store(z + 7 * plane + h, d[n - 1]);
        V_UNROLL
        for (int i = 0; i < 3; i++) {
            vf even, odd;
            row_split(d, n, row_pairs[i].p, &even, &odd);
            v_store(z + (1 + 2 * i) * plane + h, v_add(even, odd));
            v_store(z + (2 + 2 * i) * plane + h, v_sub(even, odd));
        }
    }
}

V_INLINE void row_write(const int n, const float *m, int64_t plane, const lsi_wino_out *o)
{
    for (int h = 0; h < 16; h += VW) {
        const vf bias = o->bias ? v_load(o->bias + h) : v_zero();
        vf y[6];
        V_UNROLL
        for (int k = 0; k < n; k++) y[k] = bias;
        y[0] = v_add(y[0], v_load(m + h));
        y[n - 1] = v_add(y[n - 1], v_load(m + 7 * plane + h));
        V_UNROLL
        for (int i = 0; i < 3; i++) {
            const vf plus = v_load(m + (1 + 2 * i) * plane + h), minus = v_load(m + (2 + 2 * i) * plane + h);
            const vf sum = v_add(plus, minus), dif = v_sub(plus, minus);
            float q = 1;
            V_UNROLL
            for (int k = 0; k < n; k++, q *= row_pairs[i].p)
                y[k] = v_fma(k % 2 == 0 ? sum : dif, v_set(q), y[k]);
        }
        if (o->cols == n) {
            V_UNROLL
            for (int k = 0; k < n; k++) v_store(o->y + k * o->col + h, v_act(y[k], o->act, o->slope));
        } else {
            for (int k = 0; k < o->cols; k++) v_store(o->y + k * o->col + h, v_act(y[k], o->act, o->slope));
        }
    }
}

V_INLINE void row_weights(const int n, const float *const *g, float *u, int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf d[5];
        V_UNROLL
        for (int k = 0; k < n; k++) d[k] = v_load(g[k] + h);
        v_store(u + h, v_mul(v_set(-1.0f / ROW_S3), d[0]));
        v_store(u + 7 * plane + h, d[n - 1]);
        V_UNROLL
        for (int i = 0; i < 3; i++) {
            const vf scale = v_set(1.0f / row_pairs[i].norm);
            vf even, odd;
            row_split(d, n, row_pairs[i].p, &even, &odd);
            v_store(u + (1 + 2 * i) * plane + h, v_mul(scale, v_add(even, odd)));
            v_store(u + (2 + 2 * i) * plane + h, v_mul(scale, v_sub(even, odd)));
        }
    }
}

V_INLINE void row_dw(const int n, const float *u, int64_t plane, float *const *g)
{
    for (int h = 0; h < 16; h += VW) {
        vf d[5];
        V_UNROLL
        for (int k = 0; k < n; k++) d[k] = v_zero();
        d[0] = v_mul(v_set(-1.0f / ROW_S3), v_load(u + h));
        d[n - 1] = v_load(u + 7 * plane + h);
        V_UNROLL
        for (int i = 0; i < 3; i++) {
            const vf scale = v_set(1.0f / row_pairs[i].norm);
            const vf plus = v_mul(scale, v_load(u + (1 + 2 * i) * plane + h));
            const vf minus = v_mul(scale, v_load(u + (2 + 2 * i) * plane + h));
            const vf sum = v_add(plus, minus), dif = v_sub(plus, minus);
            float q = 1;
            V_UNROLL
            for (int k = 0; k < n; k++, q *= row_pairs[i].p)
                d[k] = v_fma(k % 2 == 0 ? sum : dif, v_set(q), d[k]);
        }
        V_UNROLL
        for (int k = 0; k < n; k++) v_store(g[k] + h, d[k]);
    }
}

static void row_grad_6(const float *y, int64_t row, int64_t col, float *z, int64_t plane)
{
    (void)row;
    row_grad(6, y, col, z, plane);
}

static void row_grad_4(const float *y, int64_t row, int64_t col, float *z, int64_t plane)
{
    (void)row;
    row_grad(4, y, col, z, plane);
}

static void row_write_6(const float *m, int64_t plane, const lsi_wino_out *o)
{
    row_write(6, m, plane, o);
}

static void row_write_4(const float *m, int64_t plane, const lsi_wino_out *o)
{
    row_write(4, m, plane, o);
}

static void row_weights_3(const float *const *g, float *u, int64_t plane)
{
    row_weights(3, g, u, plane);
}

static void row_weights_5(const float *const *g, float *u, int64_t plane)
{
    row_weights(5, g, u, plane);
}

static void row_dw_3(const float *u, int64_t plane, float *const *g)
{
    row_dw(3, u, plane, g);
}

static void row_dw_5(const float *u, int64_t plane, float *const *g)
{
    row_dw(5, u, plane, g);
}

static const lsi_wino_tile row_tile_6 = {
    .h = 1, .w = 6, .points = 0xff, .read = row_read, .grad = row_grad_6, .write = row_write_6};
static const lsi_wino_tile row_tile_4 = {
    .h = 1, .w = 4, .points = 0xff, .read = row_read, .grad = row_grad_4, .write = row_write_4};

static const lsi_wino_kernels wino_6_3 = {
    .tile = &row_tile_6,
    .read_h = 1,
    .read_w = ROW_POINTS,
    .taps_h = 1,
    .taps_w = 3,
    .weights = row_weights_3,
    .dw = row_dw_3,
};

static const lsi_wino_kernels wino_4_5 = {
    .tile = &row_tile_4,
    .read_h = 1,
    .read_w = ROW_POINTS,
    .taps_h = 1,
    .taps_w = 5,
    .weights = row_weights_5,
    .dw = row_dw_5,
};

#endif
