/* move_template.h: conversions and transposes in vectors; included by move_avx512.c and _avx2.c, which define
 * MOVE_TABLE. */
#include "backend/cpu/move.h"
#include "backend/cpu/stored.h"
#include "backend/cpu/vec_transpose.h"

static void bf16_to_f32(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) v_store(to + i, v_of_bf16(vn_load(from + i)));
    for (; i < n; i++) to[i] = ls_bf16_to_f32(from[i]);
}

static void bf16_from_f32(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) vn_store(to + i, v_to_bf16(v_load(from + i)));
    for (; i < n; i++) to[i] = ls_bf16_from_f32(from[i]);
}

static void f16_to_f32(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) v_store(to + i, v_of_f16(vn_load(from + i)));
    for (; i < n; i++) to[i] = ls_f16_to_f32(from[i]);
}

static void f16_from_f32(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) vn_store(to + i, v_to_f16(v_load(from + i)));
    for (; i < n; i++) to[i] = ls_f16_from_f32(from[i]);
}

static void transpose(float *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t na,
                      int64_t nb)
{
    const int64_t whole_a = na - na % LSI_VL, whole_b = nb - nb % LSI_VL;

    for (int64_t b = 0; b < whole_b; b += LSI_VL)
        for (int64_t a = 0; a < whole_a; a += LSI_VL) {
            vf r[LSI_VL];
            for (int i = 0; i < LSI_VL; i++) r[i] = v_load(from + (a + i) * from_stride + b);
            v_transpose(r);
            for (int i = 0; i < LSI_VL; i++) v_store(to + (b + i) * to_stride + a, r[i]);
        }
    for (int64_t b = 0; b < nb; b++)
        for (int64_t a = b < whole_b ? whole_a : 0; a < na; a++)
            to[b * to_stride + a] = from[a * from_stride + b];
}

const lsi_move_table MOVE_TABLE = {.impl = MOVE_IMPL,
                                   .bf16_to_f32 = bf16_to_f32,
                                   .bf16_from_f32 = bf16_from_f32,
                                   .f16_to_f32 = f16_to_f32,
                                   .f16_from_f32 = f16_from_f32,
                                   .transpose = transpose};
