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

/* A tile at the end of an axis may have fewer than 4 results.  It needs fewer points: 0, a, -a, b and
 * infinity for 3, 0, a, -a and infinity for 2 (and 1).  Weights are transformed once, for all six; leaving
 * points out changes the products of differences that normalise them, and that factor goes into the read
 * transform. `n` is the number of results, a constant where these are inlined; points keep their numbers. */
#define CUT_POINTS(n) ((n) == 4 ? 0x3fu : (n) == 3 ? 0x2fu : 0x27u)

/* v = B^T d: values of the n + 2 samples' polynomial dual at the points. */
V_INLINE void read_1d(const int n, const vf *d, vf v[6])
{
    if (n == 4) {
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
    } else if (n == 3) {
        const vf b3 = v_fnma(v_set(PT_A2), d[1], d[3]);          /* d3 - a^2 d1 */
        const vf b2 = v_fnma(v_set(PT_A2), d[0], d[2]);          /* d2 - a^2 d0 */
        const vf low_a = v_fma(v_set(PT_A - PT_B), d[2], d[3]);  /* d3 + (a - b) d2 */
        const vf low_m = v_fnma(v_set(PT_A + PT_B), d[2], d[3]); /* d3 - (a + b) d2 */
        const vf b4 = v_fnma(v_set(PT_A2), d[2], d[4]);          /* d4 - a^2 d2 */
        v[0] = v_mul(v_set(PT_B), v_fnma(v_set(PT_B), b2, b3));
        v[1] = v_mul(v_set(PT_A + PT_B), v_fnma(v_set(PT_A * PT_B), d[1], low_a));
        v[2] = v_mul(v_set(PT_B - PT_A), v_fma(v_set(PT_A * PT_B), d[1], low_m));
        v[3] = v_mul(v_set(2.0f * PT_B), b3);
        v[5] = v_fnma(v_set(PT_B), b3, b4);
    } else {
        const vf scale = v_set(PT_A2 - PT_B2), odd = v_mul(v_set(PT_A), d[1]);
        v[0] = v_mul(v_set(-PT_B2), v_fnma(v_set(PT_A2), d[0], d[2]));
        v[1] = v_mul(scale, v_add(d[2], odd));
        v[2] = v_mul(scale, v_sub(d[2], odd));
        v[5] = v_fnma(v_set(PT_A2), d[1], d[3]);
    }
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
V_INLINE void write_1d(const int n, const vf m[6], vf *y)
{
    const vf sum_a = v_add(m[1], m[2]), dif_a = v_sub(m[1], m[2]);

    if (n == 4) {
        const vf sum_b = v_add(m[3], m[4]), dif_b = v_sub(m[3], m[4]);
        y[0] = v_add(m[0], v_add(sum_a, sum_b));
        y[1] = v_fma(v_set(PT_A), dif_a, v_mul(v_set(PT_B), dif_b));
        y[2] = v_fma(v_set(PT_A2), sum_a, v_mul(v_set(PT_B2), sum_b));
        y[3] = v_fma(v_set(PT_A3), dif_a, v_fma(v_set(PT_B3), dif_b, m[5]));
    } else if (n == 3) {
        y[0] = v_add(m[0], v_add(sum_a, m[3]));
        y[1] = v_fma(v_set(PT_A), dif_a, v_mul(v_set(PT_B), m[3]));
        y[2] = v_fma(v_set(PT_A2), sum_a, v_fma(v_set(PT_B2), m[3], m[5]));
    } else {
        y[0] = v_add(m[0], sum_a);
        y[1] = v_fma(v_set(PT_A), dif_a, m[5]);
    }
}

/* z = A y. */
V_INLINE void grad_1d(const int n, const vf *y, vf z[6])
{
    const vf odd_a = n == 4 ? v_fma(v_set(PT_A3), y[3], v_mul(v_set(PT_A), y[1])) : v_mul(v_set(PT_A), y[1]);
    const vf even_a = n >= 3 ? v_fma(v_set(PT_A2), y[2], y[0]) : y[0];

    z[0] = y[0];
    z[1] = v_add(even_a, odd_a);
    z[2] = v_sub(even_a, odd_a);
    if (n >= 3) {
        const vf odd_b =
            n == 4 ? v_fma(v_set(PT_B3), y[3], v_mul(v_set(PT_B), y[1])) : v_mul(v_set(PT_B), y[1]);
        const vf even_b = v_fma(v_set(PT_B2), y[2], y[0]);
        z[3] = v_add(even_b, odd_b);
        if (n == 4) z[4] = v_sub(even_b, odd_b);
    }
    z[5] = y[n - 1];
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

/* Points as lines: each (rows, cols) pair of tile sizes has transforms of its own. */
V_INLINE void store_points(const int n, int row, const vf e[6], float *to, int64_t plane)
{
    V_UNROLL
    for (int j = 0; j < 6; j++)
        if (CUT_POINTS(n) >> j & 1) v_store(to + (row * 6 + j) * plane, e[j]);
}

/* What bounds the transforms to points is storing 36 lines that are in no first-level cache; intermediate
 * lines on the stack cost nothing beside that, so the loops are plain. */
V_INLINE void tile_read(const int ny, const int nx, const float *x, int64_t row, int64_t col, float *v,
                        int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[6][6];
        for (int j = 0; j < nx + 2; j++) {
            const float *p = x + j * col + h;
            vf d[6], e[6];
            V_UNROLL
            for (int i = 0; i < ny + 2; i++, p += row) d[i] = v_load(p);
            read_1d(ny, d, e);
            V_UNROLL
            for (int i = 0; i < 6; i++)
                if (CUT_POINTS(ny) >> i & 1) t[i][j] = e[i];
        }
        for (int i = 0; i < 6; i++) {
            vf e[6];
            if (!(CUT_POINTS(ny) >> i & 1)) continue;
            read_1d(nx, t[i], e);
            store_points(nx, i, e, v + h, plane);
        }
    }
}

V_INLINE void tile_grad(const int ny, const int nx, const float *y, int64_t row, int64_t col, float *z,
                        int64_t plane)
{
    for (int h = 0; h < 16; h += VW) {
        vf t[6][4];
        for (int j = 0; j < nx; j++) {
            const float *p = y + j * col + h;
            vf d[4], e[6];
            V_UNROLL
            for (int i = 0; i < ny; i++, p += row) d[i] = v_load(p);
            grad_1d(ny, d, e);
            V_UNROLL
            for (int i = 0; i < 6; i++)
                if (CUT_POINTS(ny) >> i & 1) t[i][j] = e[i];
        }
        for (int i = 0; i < 6; i++) {
            vf e[6];
            if (!(CUT_POINTS(ny) >> i & 1)) continue;
            grad_1d(nx, t[i], e);
            store_points(nx, i, e, z + h, plane);
        }
    }
}

/* The first step of the write: m's columns to ny values each. */
V_INLINE void tile_write_columns(const int ny, const int nx, const float *m, int64_t plane, vf t[4][6])
{
    V_UNROLL
    for (int j = 0; j < 6; j++) {
        vf d[6], e[4];
        if (!(CUT_POINTS(nx) >> j & 1)) continue;
        V_UNROLL
        for (int i = 0; i < 6; i++)
            if (CUT_POINTS(ny) >> i & 1) d[i] = v_load(m + (i * 6 + j) * plane);
        write_1d(ny, d, e);
        V_UNROLL
        for (int i = 0; i < ny; i++) t[i][j] = e[i];
    }
}

/* A whole tile with an activation known at compile time: nothing but the results is stored. */
V_INLINE void tile_write_whole(const int ny, const int nx, const float *m, int64_t plane,
                               const lsi_wino_out *o, const lsi_conv_act act)
{
    for (int h = 0; h < 16; h += VW) {
        const vf bias = o->bias ? v_load(o->bias + h) : v_zero();
        vf t[4][6];
        float *y = o->y + h;
        tile_write_columns(ny, nx, m + h, plane, t);
        V_UNROLL
        for (int i = 0; i < ny; i++, y += o->row) {
            vf e[4];
            write_1d(nx, t[i], e);
            V_UNROLL
            for (int j = 0; j < nx; j++) v_store(y + j * o->col, v_act(v_add(e[j], bias), act, o->slope));
        }
    }
}

V_INLINE void tile_write(const int ny, const int nx, const float *m, int64_t plane, const lsi_wino_out *o)
{
    if (o->rows == ny && o->cols == nx && o->act == LSI_ACT_NONE) {
        tile_write_whole(ny, nx, m, plane, o, LSI_ACT_NONE);
        return;
    }
    if (o->rows == ny && o->cols == nx && o->act == LSI_ACT_RELU) {
        tile_write_whole(ny, nx, m, plane, o, LSI_ACT_RELU);
        return;
    }
    for (int h = 0; h < 16; h += VW) {
        const vf bias = o->bias ? v_load(o->bias + h) : v_zero();
        vf t[4][6];
        tile_write_columns(ny, nx, m + h, plane, t);
        for (int i = 0; i < ny && i < o->rows; i++) {
            float *y = o->y + i * o->row + h;
            vf e[4];
            write_1d(nx, t[i], e);
            for (int j = 0; j < nx && j < o->cols; j++)
                v_store(y + j * o->col, v_act(v_add(e[j], bias), o->act, o->slope));
        }
    }
}

#define CUT_ROW(ny, i) ((uint64_t)CUT_POINTS(ny) >> (i)&1)
#define TILE_POINTS(ny, nx)                                                                                  \
    ((uint64_t)CUT_POINTS(nx) * (CUT_ROW(ny, 0) | CUT_ROW(ny, 1) << 6 | CUT_ROW(ny, 2) << 12 |               \
                                 CUT_ROW(ny, 3) << 18 | CUT_ROW(ny, 4) << 24 | CUT_ROW(ny, 5) << 30))

#define WINO_TILE(ny, nx)                                                                                    \
    static void read_##ny##x##nx(const float *x, int64_t row, int64_t col, float *v, int64_t plane)          \
    {                                                                                                        \
        tile_read(ny, nx, x, row, col, v, plane);                                                            \
    }                                                                                                        \
    static void grad_##ny##x##nx(const float *y, int64_t row, int64_t col, float *z, int64_t plane)          \
    {                                                                                                        \
        tile_grad(ny, nx, y, row, col, z, plane);                                                            \
    }                                                                                                        \
    static void write_##ny##x##nx(const float *m, int64_t plane, const lsi_wino_out *o)                      \
    {                                                                                                        \
        tile_write(ny, nx, m, plane, o);                                                                     \
    }                                                                                                        \
    static const lsi_wino_tile tile_##ny##x##nx = {                                                          \
        .h = (ny),                                                                                           \
        .w = (nx),                                                                                           \
        .points = TILE_POINTS(ny, nx),                                                                       \
        .read = read_##ny##x##nx,                                                                            \
        .grad = grad_##ny##x##nx,                                                                            \
        .write = write_##ny##x##nx,                                                                          \
    }

WINO_TILE(4, 4);
WINO_TILE(4, 3);
WINO_TILE(4, 2);
WINO_TILE(3, 4);
WINO_TILE(3, 3);
WINO_TILE(3, 2);
WINO_TILE(2, 4);
WINO_TILE(2, 3);
WINO_TILE(2, 2);

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
    .tile = &tile_4x4,
    .read_h = 6,
    .read_w = 6,
    .taps_h = 3,
    .taps_w = 3,
    .cut = {{&tile_2x2, &tile_2x2, &tile_2x3, &tile_2x4},
            {&tile_2x2, &tile_2x2, &tile_2x3, &tile_2x4},
            {&tile_3x2, &tile_3x2, &tile_3x3, &tile_3x4},
            {&tile_4x2, &tile_4x2, &tile_4x3, &tile_4x4}},
    .spread = tile_spread,
    .weights = tile_weights,
    .dw = tile_dw,
};

#endif
