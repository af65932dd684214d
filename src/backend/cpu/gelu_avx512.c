/* gelu_avx512.c: 16 numbers at a time are looked up. */
#include "backend/cpu/gelu.h"
#include "backend/cpu/stored.h"

LSI_INLINE vf look_up(vn x, const float *table)
{
    return _mm512_i32gather_ps(_mm512_cvtepu16_epi32(x), table, sizeof *table);
}

void lsi_look_up_avx512(uint16_t *y, const uint16_t *x, const float *table, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) vn_store(y + i, v_to_bf16(look_up(vn_load(x + i), table)));
    if (i < n) vn_store_n(y + i, v_to_bf16(look_up(vn_load_n(x + i, n - i), table)), n - i);
}

void lsi_times_looked_up_avx512(uint16_t *y, const uint16_t *dy, const uint16_t *x, const float *table,
                                int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL)
        vn_store(y + i, v_to_bf16(v_mul(v_of_bf16(vn_load(dy + i)), look_up(vn_load(x + i), table))));
    if (i < n)
        vn_store_n(
            y + i,
            v_to_bf16(v_mul(v_of_bf16(vn_load_n(dy + i, n - i)), look_up(vn_load_n(x + i, n - i), table))),
            n - i);
}
