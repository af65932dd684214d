/* attention_rows_avx512bf16.c: what happens to rows of scores between two products. */
#include <math.h>

#include "backend/cpu/attention_b16.h"
#include "backend/cpu/vec_math.h"

LSI_INLINE __mmask16 first(int64_t n)
{
    return n >= 16 ? (__mmask16)0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* Numbers i.. of a row of n, zeros behind them. */
LSI_INLINE void round_to(uint16_t *to, vf a, int64_t i, int64_t n)
{
    const __m256i low = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_mov_ps(first(n - i), a));

    _mm256_storeu_si256((__m256i *)(void *)(to + i), low);
}

float lsi_attention_softmax_row(float *x, float scale, int64_t n, int64_t whole, uint16_t *p)
{
    const vf by = v_set1(scale), lowest = v_set1(-INFINITY);
    vf top = lowest, sum = v_zero();
    float most, all;

    for (int64_t i = 0; i < n; i += 16)
        top = v_max(top, _mm512_mask_mul_ps(lowest, first(n - i), v_load(x + i), by));
    most = v_max_across(top);
    top = v_set1(most);
    for (int64_t i = 0; i < n; i += 16) {
        const vf e = v_exp(v_sub(v_mul(v_load(x + i), by), top));
        v_store(x + i, e);
        sum = _mm512_mask_add_ps(sum, first(n - i), sum, e);
    }
    all = _mm512_reduce_add_ps(sum);
    for (int64_t i = 0; i < whole; i += 16) round_to(p, v_mul(v_load(x + i), v_set1(1 / all)), i, n);
    return most + logf(all);
}

void lsi_attention_back_row(const float *x, const float *dp, float scale, float lse, float delta, int64_t n,
                            int64_t whole, uint16_t *p, uint16_t *ds)
{
    const vf by = v_set1(scale), from = v_set1(lse), shift = v_set1(-scale * delta);

    for (int64_t i = 0; i < whole; i += 16) {
        const vf e = v_exp(v_sub(v_mul(v_load(x + i), by), from));
        round_to(p, e, i, n);
        round_to(ds, v_mul(e, v_fma(v_load(dp + i), by, shift)), i, n);
    }
}

LSI_INLINE vf wide(const uint16_t *p, int64_t n)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(n), p)), 16));
}

float lsi_attention_dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    vf sum = v_zero();

    for (int64_t i = 0; i < n; i += 16) sum = v_fma(wide(a + i, n - i), wide(b + i, n - i), sum);
    return _mm512_reduce_add_ps(sum);
}
