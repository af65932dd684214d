/* vec.h: one vector of floats, as wide as the file that includes it was compiled for.
 *
 * Only files named *_avx512.c and *_avx2.c (and the templates they include) may include this: the same kernel
 * source is compiled once per instruction set and called after the processor was asked (isa.h).  FMA is asked
 * for by name, because the build forbids the compiler to contract on its own. */
#ifndef LS_BACKEND_CPU_VEC_H
#define LS_BACKEND_CPU_VEC_H

#include <immintrin.h>
#include <stdint.h>

#include "backend/cpu/conv.h"

#define LSI_INLINE static inline __attribute__((always_inline))

/* Fully unrolls the next loop: accumulators indexed by its counter must live in registers. */
#if defined(__clang__)
#define V_UNROLL _Pragma("unroll")
#else
#define V_UNROLL _Pragma("GCC unroll 64")
#endif

#if defined(__AVX512F__)

#define LSI_VL 16
typedef __m512 vf;

LSI_INLINE vf v_zero(void)
{
    return _mm512_setzero_ps();
}
LSI_INLINE vf v_set1(float a)
{
    return _mm512_set1_ps(a);
}
LSI_INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
LSI_INLINE void v_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}
/* Past the caches; p is aligned to the vector.  The writer ends with v_stream_done. */
LSI_INLINE void v_stream(float *p, vf a)
{
    _mm512_stream_ps(p, a);
}
/* The first n (0..LSI_VL) elements; the others are read as zero and not touched. */
LSI_INLINE vf v_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
LSI_INLINE void v_store_n(float *p, vf a, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a);
}
/* a * b + c, rounded once. */
LSI_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
LSI_INLINE vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
LSI_INLINE vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
LSI_INLINE vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
LSI_INLINE vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
/* Where either is NaN, b: so v_max(v_zero(), x) is a ReLU that lets NaN pass. */
LSI_INLINE vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
LSI_INLINE vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
LSI_INLINE float v_sum(vf a)
{
    return _mm512_reduce_add_ps(a);
}
/* yes where a > b, else no. */
LSI_INLINE vf v_select_gt(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), no, yes);
}
LSI_INLINE vf v_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LSI_INLINE vf v_abs(vf a)
{
    return _mm512_abs_ps(a);
}
/* The size of a with the sign of s. */
LSI_INLINE vf v_copysign(vf a, vf s)
{
    return _mm512_or_ps(_mm512_abs_ps(a), _mm512_and_ps(s, _mm512_set1_ps(-0.0f)));
}
/* a * 2^k for whole numbers k, with gradual underflow. */
LSI_INLINE vf v_scale2(vf a, vf k)
{
    return _mm512_scalef_ps(a, k);
}

#elif defined(__AVX2__) && defined(__FMA__)

#define LSI_VL 8
typedef __m256 vf;

LSI_INLINE vf v_zero(void)
{
    return _mm256_setzero_ps();
}
LSI_INLINE vf v_set1(float a)
{
    return _mm256_set1_ps(a);
}
LSI_INLINE vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
LSI_INLINE void v_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}
LSI_INLINE void v_stream(float *p, vf a)
{
    _mm256_stream_ps(p, a);
}
LSI_INLINE __m256i v_mask_(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LSI_INLINE vf v_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, v_mask_(n));
}
LSI_INLINE void v_store_n(float *p, vf a, int64_t n)
{
    _mm256_maskstore_ps(p, v_mask_(n), a);
}
LSI_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
LSI_INLINE vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
LSI_INLINE vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
LSI_INLINE vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
LSI_INLINE vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
LSI_INLINE vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
LSI_INLINE vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
LSI_INLINE float v_sum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
LSI_INLINE vf v_select_gt(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
LSI_INLINE vf v_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LSI_INLINE vf v_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
LSI_INLINE vf v_copysign(vf a, vf s)
{
    return _mm256_or_ps(v_abs(a), _mm256_and_ps(s, _mm256_set1_ps(-0.0f)));
}
LSI_INLINE vf v_exp2_whole_(__m256i k)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23));
}
LSI_INLINE vf v_scale2(vf a, vf k)
{
    /* In two steps, because 2^k alone may lie outside the range of normal numbers. */
    const __m256i all = _mm256_cvtps_epi32(k), half = _mm256_srai_epi32(all, 1);

    return _mm256_mul_ps(_mm256_mul_ps(a, v_exp2_whole_(half)), v_exp2_whole_(_mm256_sub_epi32(all, half)));
}

#else
#error "vec.h needs AVX-512 or AVX2 with FMA"
#endif

/* Makes streamed stores visible before whatever the thread does next. */
LSI_INLINE void v_stream_done(void)
{
    _mm_sfence();
}

/* e^a to 2 ulp, with the limits 0 and infinity; NaN stays NaN.  a = k ln 2 + r, and a polynomial for e^r,
 * |r| <= ln 2 / 2. */
LSI_INLINE vf v_exp(vf a)
{
    a = v_min(v_set1(90.0f), v_max(v_set1(-105.0f), a)); /* in this order a NaN passes */
    const vf k = v_round(v_mul(a, v_set1(1.44269504f)));
    vf r = v_fma(k, v_set1(-0.693359375f), a); /* ln 2 in two parts, the first exact in few bits */
    r = v_fma(k, v_set1(2.12194440e-4f), r);
    vf e = v_set1(1.9875691500e-4f);
    e = v_fma(e, r, v_set1(1.3981999507e-3f));
    e = v_fma(e, r, v_set1(8.3334519073e-3f));
    e = v_fma(e, r, v_set1(4.1665795894e-2f));
    e = v_fma(e, r, v_set1(1.6666665459e-1f));
    e = v_fma(e, r, v_set1(5.0000001201e-1f));
    e = v_add(v_fma(e, v_mul(r, r), r), v_set1(1.0f));
    return v_scale2(e, k);
}

/* tanh to 3 ulp: an odd polynomial near zero, where 1 - 2 / (e^2a + 1) would cancel, that formula elsewhere.
 */
LSI_INLINE vf v_tanh(vf a)
{
    const vf size = v_abs(a), z = v_mul(a, a);
    const vf far = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(v_exp(v_add(size, size)), v_set1(1.0f))));
    vf q = v_set1(-5.70498872745e-3f);

    q = v_fma(q, z, v_set1(2.06390887954e-2f));
    q = v_fma(q, z, v_set1(-5.37397155531e-2f));
    q = v_fma(q, z, v_set1(1.33314422036e-1f));
    q = v_fma(q, z, v_set1(-3.33332819422e-1f));
    const vf near = v_fma(v_mul(q, z), a, a);
    return v_select_gt(size, v_set1(0.625f), v_copysign(far, a), near);
}

LSI_INLINE vf v_act(vf a, lsi_conv_act act, float slope)
{
    switch (act) {
    case LSI_ACT_RELU: return v_max(v_zero(), a);
    case LSI_ACT_LEAKY: return v_select_gt(a, v_zero(), a, v_mul(a, v_set1(slope)));
    case LSI_ACT_TANH: return v_tanh(a);
    case LSI_ACT_NONE: break;
    }
    return a;
}

#endif
