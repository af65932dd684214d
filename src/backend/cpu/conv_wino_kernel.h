/* conv_wino_kernel.h: the transforms of Winograd's F(4x4, 3x3), for one instruction set.
 *
 * Toom-Cook with the points 0, a, -a, b, -b and infinity.  The usual a = 1, b = 2 gives neat integers; a =
 * 5/8 and b = 3/2 balance the sizes of the matrices' entries and halve the rounding error at the same cost.
 * All constants but the reciprocals in G are exact in fp32.  Each transform is the one-dimensional one on
 * columns, then on rows. */
#ifndef LS_BACKEND_CPU_CONV_WINO_KERNEL_H
#define LS_BACKEND_CPU_CONV_WINO_KERNEL_H

#include "backend/cpu/conv_gemm_kernel.h"

#define PT_A  0.625f
#define PT_B  1.5f
#define PT_A2 (PT_A * PT_A)
#define PT_B2 (PT_B * PT_B)
#define PT_A3 (PT_A2 * PT_A)
#define PT_B3 (PT_B2 * PT_B)
/* Products of the differences to the other points. */
#define NORM_0 (PT_A2 * PT_B2)
#define NORM_A (2.0f * PT_A2 * (PT_A2 - PT_B2))
#define NORM_B (2.0f * PT_B2 * (PT_B2 - PT_A2))

/* v = B^T d: values of the six samples' polynomial dual at the points. */
V_INLINE void read_1d(const vf d[6], vf v[6])
{
    const vf sum = v_set(PT_A2 + PT_B2), prod = v_set(PT_A2 * PT_B2);
    const vf even_a = v_fnma(v_set(PT_B2), d[2], d[4]);
    const vf odd_a = v_fnma(v_set(PT_A * PT_B2), d[1], v_mul(v_set(PT_A), d[3]));
    const vf even_b = v_fnma(v_set(PT_A2), d[2], d[4]);
    const vf odd_b = v_fnma(v_set(PT_A2 * PT_B), d[1], v_mul(v_set(PT_B), d[3]));

    v[0] = v_fma(prod, d[0], v_fnma(sum, d[2], d[4]));
    v[1] = v_add(even_a, odd_a);
    v[2] = v_sub(even_a, odd_a);
    v[3] = v_add(even_b, odd_b);
    v[4] = v_sub(even_b, odd_b);
    v[5] = v_fma(prod, d[1], v_fnma(sum, d[3], d[5]));
}

/* d = B v, the adjoint of read_1d. */
V_INLINE void spread_1d(const vf v[6], vf d[6])
{
    const vf sum = v_set(PT_A2 + PT_B2), prod = v_set(PT_A2 * PT_B2);
    const vf even_a = v_add(v[1], v[2]), odd_a = v_sub(v[1], v[2]);
    const vf even_b = v_add(v[3], v[4]), odd_b = v_sub(v[3], v[4]);

    d[0] = v_mul(prod, v[0]);
    d[1] = v_fnma(v_set(PT_A * PT_B2), odd_a, v_fnma(v_set(PT_A2 * PT_B), odd_b, v_mul(prod, v[5])));
    d[2] = v_fnma(v_set(PT_B2), even_a, v_fnma(v_set(PT_A2), even_b, v_fnma(sum, v[0], v_zero())));
    d[3] = v_fma(v_set(PT_A), odd_a, v_fnma(sum, v[5], v_mul(v_set(PT_B), odd_b)));
    d[4] = v_add(v[0], v_add(even_a, even_b));
    d[5] = v[5];
}

/* y = A^T m. */
V_INLINE void write_1d(const vf m[6], vf y[4])
{
    const vf sum_a = v_add(m[1], m[2]), dif_a = v_sub(m[1], m[2]);
    const vf sum_b = v_add(m[3], m[4]), dif_b = v_sub(m[3], m[4]);

    y[0] = v_add(m[0], v_add(sum_a, sum_b));
    y[1] = v_fma(v_set(PT_A), dif_a, v_mul(v_set(PT_B), dif_b));
    y[2] = v_fma(v_set(PT_A2), sum_a, v_mul(v_set(PT_B2), sum_b));
    y[3] = v_fma(v_set(PT_A3), dif_a, v_fma(v_set(PT_B3), dif_b, m[5]));
}

/* z = A y. */
V_INLINE void grad_1d(const vf y[4], vf z[6])
{
    const vf even_a = v_fma(v_set(PT_A2), y[2], y[0]);
    const vf odd_a = v_fma(v_set(PT_A3), y[3], v_mul(v_set(PT_A), y[1]));
    const vf even_b = v_fma(v_set(PT_B2), y[2], y[0]);
    const vf odd_b = v_fma(v_set(PT_B3), y[3], v_mul(v_set(PT_B), y[1]));

    z[0] = y[0];
    z[1] = v_add(even_a, odd_a);
    z[2] = v_sub(even_a, odd_a);
    z[3] = v_add(even_b, odd_b);
    z[4] = v_sub(even_b, odd_b);
    z[5] = y[3];
}

/* u = G g. */
V_INLINE void weights_1d(const vf g[3], vf u[6])
{
    const vf even_a = v_mul(v_set(1.0f / NORM_A), v_fma(v_set(PT_A2), g[2], g[0]));
    const vf odd_a = v_mul(v_set(PT_A / NORM_A), g[1]);
    const vf even_b = v_mul(v_set(1.0f / NORM_B), v_fma(v_set(PT_B2), g[2], g[0]));
    const vf odd_b = v_mul(v_set(PT_B / NORM_B), g[1]);

    u[0] = v_mul(v_set(1.0f / NORM_0), g[0]);
    u[1] = v_add(even_a, odd_a);
    u[2] = v_sub(even_a, odd_a);
    u[3] = v_add(even_b, odd_b);
    u[4] = v_sub(even_b, odd_b);
    u[5] = g[2];
}

/* g = G^T u. */
V_INLINE void dw_1d(const vf u[6], vf g[3])
{
    const vf sum_a = v_mul(v_set(1.0f / NORM_A), v_add(u[1], u[2]));
    const vf sum_b = v_mul(v_set(1.0f / NORM_B), v_add(u[3], u[4]));

    g[0] = v_fma(v_set(1.0f / NORM_0), u[0], v_add(sum_a, sum_b));
    g[1] = v_fma(v_set(PT_A / NORM_A), v_sub(u[1], u[2]), v_mul(v_set(PT_B / NORM_B), v_sub(u[3], u[4])));
    g[2] = v_fma(v_set(PT_A2), sum_a, v_fma(v_set(PT_B2), sum_b, u[5]));
}

/* What bounds the transforms to points is storing 36 lines that are in no first-level cache; intermediate
 * lines on the stack cost nothing beside that, so the loops are plain. */
static void tile_read(const float *x, int64_t row, int64_t col, float *v, int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[6][6];
        for (int j = 0; j < 6; j++) {
            const float *p = x + j * col + h;
            vf d[6], e[6];
            V_UNROLL
            for (int i = 0; i < 6; i++, p += row) d[i] = v_load(p);
            read_1d(d, e);
            V_UNROLL
            for (int i = 0; i < 6; i++) t[i][j] = e[i];
        }
        float *to = v + h;
        for (int i = 0; i < 6; i++) {
            vf e[6];
            read_1d(t[i], e);
            V_UNROLL
            for (int j = 0; j < 6; j++, to += plane) v_store(to, e[j]);
        }
    }
}

static void tile_grad(const float *y, int64_t row, int64_t col, float *z, int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[6][4];
        for (int j = 0; j < 4; j++) {
            const float *p = y + j * col + h;
            vf d[4], e[6];
            V_UNROLL
            for (int i = 0; i < 4; i++, p += row) d[i] = v_load(p);
            grad_1d(d, e);
            V_UNROLL
            for (int i = 0; i < 6; i++) t[i][j] = e[i];
        }
        float *to = z + h;
        for (int i = 0; i < 6; i++) {
            vf e[6];
            grad_1d(t[i], e);
            V_UNROLL
            for (int j = 0; j < 6; j++, to += plane) v_store(to, e[j]);
        }
    }
}

/* The first step of the write: m's columns to four values each. */
V_INLINE void tile_write_columns(const float *m, int64_t plane, vf t[4][6])
{
    V_UNROLL
    for (int j = 0; j < 6; j++) {
        const float *p = m + j * plane;
        vf d[6], e[4];
        V_UNROLL
        for (int i = 0; i < 6; i++, p += 6 * plane) d[i] = v_load(p);
        write_1d(d, e);
        V_UNROLL
        for (int i = 0; i < 4; i++) t[i][j] = e[i];
    }
}

/* A whole tile with an activation known at compile time: nothing but the results is stored. */
V_INLINE void tile_write_whole(const float *m, int64_t plane, const lsi_wino_out *o, const lsi_conv_act act)
{
    for (int h = 0; h < 16; h += VW) {
        const vf bias = o->bias ? v_load(o->bias + h) : v_zero();
        vf t[4][6];
        float *y = o->y + h;
        tile_write_columns(m + h, plane, t);
        V_UNROLL
        for (int i = 0; i < 4; i++, y += o->row) {
            vf e[4];
            write_1d(t[i], e);
            V_UNROLL
            for (int j = 0; j < 4; j++) v_store(y + j * o->col, v_act(v_add(e[j], bias), act, o->slope));
        }
    }
}

static void tile_write(const float *m, int64_t plane, const lsi_wino_out *o)
{
    if (o->rows == 4 && o->cols == 4 && o->act == LSI_ACT_NONE) {
        tile_write_whole(m, plane, o, LSI_ACT_NONE);
        return;
    }
    if (o->rows == 4 && o->cols == 4 && o->act == LSI_ACT_RELU) {
        tile_write_whole(m, plane, o, LSI_ACT_RELU);
        return;
    }
    for (int h = 0; h < 16; h += VW) {
        const vf bias = o->bias ? v_load(o->bias + h) : v_zero();
        vf t[4][6];
        tile_write_columns(m + h, plane, t);
        for (int i = 0; i < o->rows; i++) {
            float *y = o->y + i * o->row + h;
            vf e[4];
            write_1d(t[i], e);
            for (int j = 0; j < o->cols; j++)
                v_store(y + j * o->col, v_act(v_add(e[j], bias), o->act, o->slope));
        }
    }
}

static void tile_spread(const float *m, int64_t plane, const lsi_wino_out *o)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[6][6];
        for (int j = 0; j < 6; j++) {
            const float *p = m + j * plane + h;
            vf v[6], d[6];
            V_UNROLL
            for (int i = 0; i < 6; i++, p += 6 * plane) v[i] = v_load(p);
            spread_1d(v, d);
            V_UNROLL
            for (int i = 0; i < 6; i++) t[i][j] = d[i];
        }
        for (int i = 0; i < o->rows; i++) {
            float *y = o->y + i * o->row + h;
            vf d[6];
            spread_1d(t[i], d);
            if (o->cols == 6) {
                V_UNROLL
                for (int j = 0; j < 6; j++) v_store(y + j * o->col, v_add(v_load(y + j * o->col), d[j]));
            } else {
                for (int j = 0; j < o->cols; j++)
                    v_store(y + j * o->col, v_add(v_load(y + j * o->col), d[j]));
            }
        }
    }
}

static void tile_weights(const float *const *g, float *u, int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[6][3];
        for (int j = 0; j < 3; j++) {
            vf d[3], e[6];
            V_UNROLL
            for (int i = 0; i < 3; i++) d[i] = v_load(g[i * 3 + j] + h);
            weights_1d(d, e);
            V_UNROLL
            for (int i = 0; i < 6; i++) t[i][j] = e[i];
        }
        float *to = u + h;
        for (int i = 0; i < 6; i++) {
            vf e[6];
            weights_1d(t[i], e);
            V_UNROLL
            for (int j = 0; j < 6; j++, to += plane) v_store(to, e[j]);
        }
    }
}

static void tile_dw(const float *u, int64_t plane, float *const *g)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[3][6];
        for (int j = 0; j < 6; j++) {
            const float *p = u + j * plane + h;
            vf d[6], e[3];
            V_UNROLL
            for (int i = 0; i < 6; i++, p += 6 * plane) d[i] = v_load(p);
            dw_1d(d, e);
            V_UNROLL
            for (int i = 0; i < 3; i++) t[i][j] = e[i];
        }
        for (int i = 0; i < 3; i++) {
            vf e[3];
            dw_1d(t[i], e);
            V_UNROLL
            for (int j = 0; j < 3; j++) v_store(g[i * 3 + j] + h, e[j]);
        }
    }
}

static void wino_fill(const lsi_wino_part *part, float *to)
{
    for (int y = 0; y < part->h; y++) {
        const bool row_exists = y >= part->y_lo && y < part->y_hi;
        const float *from = part->at + y * part->row;
        for (int x = 0; x < part->w; x++, to += LSI_LINE) {
            const bool exists = row_exists && x >= part->x_lo && x < part->x_hi;
            for (int h = 0; h < 16; h += VW)
                v_store(to + h, exists ? v_load(from + x * part->col + h) : v_zero());
        }
    }
}

static const lsi_wino_kernels wino_4x4_3x3 = {
    .tile_h = 4,
    .tile_w = 4,
    .read_h = 6,
    .read_w = 6,
    .taps_h = 3,
    .taps_w = 3,
    .read = tile_read,
    .grad = tile_grad,
    .write = tile_write,
    .spread = tile_spread,
    .weights = tile_weights,
    .dw = tile_dw,
};

#endif
