/* vec.h: what kernels need beyond conv_vec.h: partial vectors, sums, selection, exp and tanh.
 *
 * Like conv_vec.h, only for files named *_avx512.c and *_avx2.c and the templates they include, which are
 * called after the processor was asked (isa.h). */
#ifndef LS_BACKEND_CPU_VEC_H
#define LS_BACKEND_CPU_VEC_H

#include "backend/cpu/conv.h"
#include "backend/cpu/conv_vec.h"

#if VW == 16

/* The first n (0..VW) elements; the others are read as zero and not touched. */
V_INLINE vf v_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
V_INLINE void v_store_n(float *p, vf a, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a);
}
V_INLINE vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
V_INLINE float v_sum(vf a)
{
    return _mm512_reduce_add_ps(a);
}
/* yes where a > b, else no. */
V_INLINE vf v_select_gt(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), no, yes);
}
V_INLINE vf v_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
V_INLINE vf v_abs(vf a)
{
    return _mm512_abs_ps(a);
}
/* The size of a with the sign of s. */
V_INLINE vf v_copysign(vf a, vf s)
{
    return _mm512_or_ps(_mm512_abs_ps(a), _mm512_and_ps(s, _mm512_set1_ps(-0.0f)));
}
/* 2^a for whole numbers a in -126..127. */
V_INLINE vf v_exp2_whole(vf a)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_set1_epi32(127)), 23));
}

#else

V_INLINE __m256i v_mask_(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
V_INLINE vf v_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, v_mask_(n));
}
V_INLINE void v_store_n(float *p, vf a, int64_t n)
{
    _mm256_maskstore_ps(p, v_mask_(n), a);
}
V_INLINE vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
V_INLINE float v_sum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
V_INLINE vf v_select_gt(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
V_INLINE vf v_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
V_INLINE vf v_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
V_INLINE vf v_copysign(vf a, vf s)
{
    return _mm256_or_ps(v_abs(a), _mm256_and_ps(s, _mm256_set1_ps(-0.0f)));
}
V_INLINE vf v_exp2_whole(vf a)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127)), 23));
}

#endif

/* e^a to 2 ulp for a in -87..88, clamped outside: a = k ln 2 + r, and a polynomial for e^r, |r| <= ln 2 / 2.
 */
V_INLINE vf v_exp(vf a)
{
    a = v_min(v_max(a, v_set(-87.0f)), v_set(88.0f));
    const vf k = v_round(v_mul(a, v_set(1.44269504f)));
    vf r = v_fma(k, v_set(-0.693359375f), a); /* ln 2 in two parts, the first exact in few bits */
    r = v_fma(k, v_set(2.12194440e-4f), r);
    vf e = v_set(1.9875691500e-4f);
    e = v_fma(e, r, v_set(1.3981999507e-3f));
    e = v_fma(e, r, v_set(8.3334519073e-3f));
    e = v_fma(e, r, v_set(4.1665795894e-2f));
    e = v_fma(e, r, v_set(1.6666665459e-1f));
    e = v_fma(e, r, v_set(5.0000001201e-1f));
    e = v_add(v_fma(e, v_mul(r, r), r), v_set(1.0f));
    return v_mul(e, v_exp2_whole(k));
}

/* tanh to 3 ulp: an odd polynomial near zero, where 1 - 2 / (e^2a + 1) would cancel, that formula elsewhere.
 */
V_INLINE vf v_tanh(vf a)
{
    const vf size = v_abs(a), z = v_mul(a, a);
    const vf far = v_sub(v_set(1.0f), v_div(v_set(2.0f), v_add(v_exp(v_add(size, size)), v_set(1.0f))));
    vf q = v_set(-5.70498872745e-3f);

    q = v_fma(q, z, v_set(2.06390887954e-2f));
    q = v_fma(q, z, v_set(-5.37397155531e-2f));
    q = v_fma(q, z, v_set(1.33314422036e-1f));
    q = v_fma(q, z, v_set(-3.33332819422e-1f));
    const vf near = v_fma(v_mul(q, z), a, a);
    return v_select_gt(size, v_set(0.625f), v_copysign(far, a), near);
}

V_INLINE vf v_act(vf a, lsi_conv_act act, float slope)
{
    switch (act) {
    case LSI_ACT_RELU: return v_max(a, v_zero());
    case LSI_ACT_LEAKY: return v_select_gt(a, v_zero(), a, v_mul(a, v_set(slope)));
    case LSI_ACT_TANH: return v_tanh(a);
    case LSI_ACT_NONE: break;
    }
    return a;
}

#endif
