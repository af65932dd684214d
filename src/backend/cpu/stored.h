/* stored.h: vectors of tensors' elements, which may be stored in 16 bits: read as floats, rounded when
 * written.
 *
 * A template that includes this is compiled once per instruction set and type: with LSI_STORED_BF16 or
 * LSI_STORED_F16 defined, `stored` is one such element, else a float. */
#ifndef LS_BACKEND_CPU_STORED_H
#define LS_BACKEND_CPU_STORED_H

#include <string.h>

#include "backend/cpu/vec_math.h"
#include "lockstep/tensor.h"

/* -- conversions of a vector
 * ------------------------------------------------------------------------------------ */

#if LSI_VL == 16

typedef __m256i vn; /* as many elements of 16 bits as a vector has floats */

LSI_INLINE vn vn_load(const uint16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
LSI_INLINE void vn_store(uint16_t *p, vn a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}
LSI_INLINE vn vn_load_n(const uint16_t *p, int64_t n)
{
    return _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
}
LSI_INLINE void vn_store_n(uint16_t *p, vn a, int64_t n)
{
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), a);
}
LSI_INLINE vf v_of_bf16(vn a)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16));
}
/* To nearest, ties to even; NaN stays one. */
LSI_INLINE vn v_to_bf16(vf a)
{
    const __m512i bits = _mm512_castps_si512(a),
                  odd = _mm512_and_epi32(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_epi32(bits, _mm512_set1_epi32(0x400000));
    const __m512i out = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), quiet);

    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(out, 16));
}
LSI_INLINE vf v_of_f16(vn a)
{
    return _mm512_cvtph_ps(a);
}
LSI_INLINE vn v_to_f16(vf a)
{
    return _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#else

typedef __m128i vn;

LSI_INLINE vn vn_load(const uint16_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
LSI_INLINE void vn_store(uint16_t *p, vn a)
{
    _mm_storeu_si128((__m128i *)(void *)p, a);
}
LSI_INLINE vn vn_load_n(const uint16_t *p, int64_t n)
{
    uint16_t all[LSI_VL] = {0};

    memcpy(all, p, (size_t)n * sizeof *p);
    return vn_load(all);
}
LSI_INLINE void vn_store_n(uint16_t *p, vn a, int64_t n)
{
    uint16_t all[LSI_VL];

    vn_store(all, a);
    memcpy(p, all, (size_t)n * sizeof *p);
}
LSI_INLINE vf v_of_bf16(vn a)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(a), 16));
}
LSI_INLINE vn v_to_bf16(vf a)
{
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i out = _mm256_srli_epi32(
        _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q))), 16);

    return _mm_packus_epi32(_mm256_castsi256_si128(out), _mm256_extracti128_si256(out, 1));
}
LSI_INLINE vf v_of_f16(vn a)
{
    return _mm256_cvtph_ps(a);
}
LSI_INLINE vn v_to_f16(vf a)
{
    return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#endif

/* -- elements
 * --------------------------------------------------------------------------------------------------- */

#if defined(LSI_STORED_BF16) || defined(LSI_STORED_F16)

typedef uint16_t stored;

#if defined(LSI_STORED_BF16)
#define S_WIDE   v_of_bf16
#define S_NARROW v_to_bf16
#define s_get(p) ls_bf16_to_f32(*(p))
#define s_of(x)  ls_bf16_from_f32(x)
#else
#define S_WIDE   v_of_f16
#define S_NARROW v_to_f16
#define s_get(p) ls_f16_to_f32(*(p))
#define s_of(x)  ls_f16_from_f32(x)
#endif

LSI_INLINE vf s_load(const stored *p)
{
    return S_WIDE(vn_load(p));
}
LSI_INLINE vf s_load_n(const stored *p, int64_t n)
{
    return S_WIDE(vn_load_n(p, n));
}
LSI_INLINE void s_store(stored *p, vf a)
{
    vn_store(p, S_NARROW(a));
}
LSI_INLINE void s_store_n(stored *p, vf a, int64_t n)
{
    vn_store_n(p, S_NARROW(a), n);
}

#else

typedef float stored;

#define s_get(p) (*(p))
#define s_of(x)  (x)

LSI_INLINE vf s_load(const stored *p)
{
    return v_load(p);
}
LSI_INLINE vf s_load_n(const stored *p, int64_t n)
{
    return v_load_n(p, n);
}
LSI_INLINE void s_store(stored *p, vf a)
{
    v_store(p, a);
}
LSI_INLINE void s_store_n(stored *p, vf a, int64_t n)
{
    v_store_n(p, a, n);
}

#endif

LSI_UPTO(s, stored)

#endif
