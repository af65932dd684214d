/* move_template.h: conversions and transposes in vectors; included by move_avx512.c and _avx2.c, which define
 * MOVE_TABLE. */
#include "backend/cpu/move.h"
#include "backend/cpu/vec_math.h"
#include "backend/cpu/vec_transpose.h"
#include "lockstep/tensor.h"

#if LSI_VL == 16

LSI_INLINE vf widen_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
LSI_INLINE void narrow_bf16(uint16_t *p, vf a)
{
    const __m512i bits = _mm512_castps_si512(a),
                  odd = _mm512_and_epi32(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_epi32(bits, _mm512_set1_epi32(0x400000));
    const __m512i out = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), quiet);

    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(out, 16)));
}
LSI_INLINE vf widen_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
LSI_INLINE void narrow_f16(uint16_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#else

LSI_INLINE vf widen_bf16(const uint16_t *p)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
LSI_INLINE void narrow_bf16(uint16_t *p, vf a)
{
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i out = _mm256_srli_epi32(
        _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q))), 16);

    _mm_storeu_si128((__m128i *)p,
                     _mm_packus_epi32(_mm256_castsi256_si128(out), _mm256_extracti128_si256(out, 1)));
}
LSI_INLINE vf widen_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
LSI_INLINE void narrow_f16(uint16_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#endif

static void bf16_to_f32(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) v_store(to + i, widen_bf16(from + i));
    for (; i < n; i++) to[i] = ls_bf16_to_f32(from[i]);
}

static void bf16_from_f32(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) narrow_bf16(to + i, v_load(from + i));
    for (; i < n; i++) to[i] = ls_bf16_from_f32(from[i]);
}

static void f16_to_f32(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) v_store(to + i, widen_f16(from + i));
    for (; i < n; i++) to[i] = ls_f16_to_f32(from[i]);
}

static void f16_from_f32(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) narrow_f16(to + i, v_load(from + i));
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
