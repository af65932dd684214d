/* vec_math.h: functions of one vector beyond vec.h: logarithm, error function, activations, sums in double.
 *
 * Errors against the exact result, where that is a normal number: exp and log 2 ulp, tanh and sigmoid 3,
 * softplus 4, gelu 4 right of zero (left of it the error is absolute, of the size of rounding x); held by
 * tests/backend/test_vec_math.c.  NaN comes out where NaN went in. */
#ifndef LS_BACKEND_CPU_VEC_MATH_H
#define LS_BACKEND_CPU_VEC_MATH_H

#include <math.h>

#include "backend/cpu/vec.h"
#include "ops/ops.h"

#if LSI_VL == 16

LSI_INLINE vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
/* yes where a is NaN, else no. */
LSI_INLINE vf v_select_nan(vf a, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), no, yes);
}
/* a = m * 2^e with m in [1, 2), for positive normal a. */
LSI_INLINE void v_split(vf a, vf *m, vf *e)
{
    *m = _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
    *e = _mm512_getexp_ps(a);
}
/* acc[i] += a[i], in double. */
LSI_INLINE void v_add_to_double(double *acc, vf a)
{
    const __m512d lo = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    const __m512d hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));

    _mm512_storeu_pd(acc, _mm512_add_pd(_mm512_loadu_pd(acc), lo));
    _mm512_storeu_pd(acc + 8, _mm512_add_pd(_mm512_loadu_pd(acc + 8), hi));
}
LSI_INLINE float v_max_across(vf a)
{
    return _mm512_reduce_max_ps(a);
}
/* a with zeros behind its first n elements. */
LSI_INLINE vf v_keep_n(vf a, int64_t n)
{
    return _mm512_maskz_mov_ps((__mmask16)((1u << n) - 1), a);
}
/* best and at become v and where in the lanes where v is larger, or the first NaN. */
LSI_INLINE void v_contest(vf *best, vf *at, vf v, vf where)
{
    const __mmask16 wins =
        _mm512_cmp_ps_mask(v, *best, _CMP_NLE_UQ) & _mm512_cmp_ps_mask(*best, *best, _CMP_ORD_Q);

    *best = _mm512_mask_mov_ps(*best, wins, v);
    *at = _mm512_mask_mov_ps(*at, wins, where);
}

#else

LSI_INLINE vf v_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
LSI_INLINE vf v_select_nan(vf a, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
LSI_INLINE void v_split(vf a, vf *m, vf *e)
{
    const __m256i bits = _mm256_castps_si256(a);

    *e = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127)));
    *m = _mm256_castsi256_ps(
        _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff)), _mm256_set1_epi32(0x3f800000)));
}
LSI_INLINE void v_add_to_double(double *acc, vf a)
{
    const __m256d lo = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    const __m256d hi = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));

    _mm256_storeu_pd(acc, _mm256_add_pd(_mm256_loadu_pd(acc), lo));
    _mm256_storeu_pd(acc + 4, _mm256_add_pd(_mm256_loadu_pd(acc + 4), hi));
}
LSI_INLINE float v_max_across(vf a)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}
LSI_INLINE vf v_keep_n(vf a, int64_t n)
{
    return _mm256_and_ps(a, _mm256_castsi256_ps(v_mask_(n)));
}
LSI_INLINE void v_contest(vf *best, vf *at, vf v, vf where)
{
    const vf wins =
        _mm256_and_ps(_mm256_cmp_ps(v, *best, _CMP_NLE_UQ), _mm256_cmp_ps(*best, *best, _CMP_ORD_Q));

    *best = _mm256_blendv_ps(*best, v, wins);
    *at = _mm256_blendv_ps(*at, where, wins);
}

#endif

/* KIND_load_upto and KIND_store_upto: the first n elements (n >= 1), n possibly more than a vector holds. */
#define LSI_UPTO(kind, element)                                                                              \
    LSI_INLINE vf kind##_load_upto(const element *p, int64_t n)                                              \
    {                                                                                                        \
        return n >= LSI_VL ? kind##_load(p) : kind##_load_n(p, n);                                           \
    }                                                                                                        \
    LSI_INLINE void kind##_store_upto(element *p, vf a, int64_t n)                                           \
    {                                                                                                        \
        if (n >= LSI_VL)                                                                                     \
            kind##_store(p, a);                                                                              \
        else                                                                                                 \
            kind##_store_n(p, a, n);                                                                         \
    }
LSI_UPTO(v, float)

/* The larger; NaN where either is NaN (max and min of the processor return the second operand then). */
LSI_INLINE vf v_max_nan(vf a, vf b)
{
    return v_select_nan(a, a, v_max(a, b));
}
LSI_INLINE vf v_min_nan(vf a, vf b)
{
    return v_select_nan(a, a, v_min(a, b));
}

/* Sum of the lanes in double, lane by lane: one order whatever the vector's width allows. */
LSI_INLINE double v_sum_double(const double *acc)
{
    double s = 0;

    for (int i = 0; i < LSI_VL; i++) s += acc[i];
    return s;
}

/* Natural logarithm: a = m * 2^e with m in [sqrt(1/2), sqrt(2)), a polynomial for log m (Cephes). */
LSI_INLINE vf v_log(vf a)
{
    const vf small = v_set1(1.17549435e-38f), zero = v_zero(), one = v_set1(1.0f);
    const vf scaled = v_select_gt(small, a, v_mul(a, v_set1(8388608.0f)), a); /* subnormals: times 2^23 */
    vf m, e;

    v_split(scaled, &m, &e);
    e = v_select_gt(small, a, v_sub(e, v_set1(23.0f)), e);
    e = v_select_gt(m, v_set1(1.41421356f), v_add(e, one), e);
    m = v_sub(v_select_gt(m, v_set1(1.41421356f), v_mul(m, v_set1(0.5f)), m), one);
    const vf z = v_mul(m, m);
    vf y = v_set1(7.0376836292e-2f);
    y = v_fma(y, m, v_set1(-1.1514610310e-1f));
    y = v_fma(y, m, v_set1(1.1676998740e-1f));
    y = v_fma(y, m, v_set1(-1.2420140846e-1f));
    y = v_fma(y, m, v_set1(1.4249322787e-1f));
    y = v_fma(y, m, v_set1(-1.6668057665e-1f));
    y = v_fma(y, m, v_set1(2.0000714765e-1f));
    y = v_fma(y, m, v_set1(-2.4999993993e-1f));
    y = v_fma(y, m, v_set1(3.3333331174e-1f));
    y = v_mul(v_mul(y, m), z);
    y = v_fma(e, v_set1(-2.12194440e-4f), y);
    y = v_fma(z, v_set1(-0.5f), y);
    y = v_fma(e, v_set1(0.693359375f), v_add(m, y));
    /* The ends of the range. */
    y = v_select_gt(a, v_set1(3.40282347e38f), a, y);
    y = v_select_gt(small, v_abs(a), v_select_gt(v_abs(a), zero, y, v_set1(-INFINITY)), y);
    y = v_select_gt(zero, a, v_set1(NAN), y);
    return v_select_nan(a, a, y);
}

/* log(1 + u) for u in [0, 1]: the rounding of 1 + u is divided out. */
LSI_INLINE vf v_log1p(vf u)
{
    const vf one = v_set1(1.0f), w = v_add(one, u), d = v_sub(w, one);

    return v_select_gt(d, v_zero(), v_mul(v_log(w), v_div(u, d)), u);
}

/* Error function: an odd polynomial up to 0.93, beyond it 1 - e^P. */
LSI_INLINE vf v_erf(vf a)
{
    const vf t = v_abs(a), s = v_mul(a, a);
    vf far = v_fma(v_set1(-1.72853470e-5f), t, v_set1(3.83197126e-4f)), near = v_set1(-5.96761703e-4f);

    far = v_fma(far, s, v_fma(v_set1(-3.88396438e-3f), t, v_set1(2.42546219e-2f)));
    far = v_fma(far, t, v_set1(-1.06777877e-1f));
    far = v_fma(far, t, v_set1(-6.34846687e-1f));
    far = v_fma(far, t, v_set1(-1.28717512e-1f));
    far = v_fma(far, t, v_sub(v_zero(), t));
    far = v_sub(v_set1(1.0f), v_exp(far));
    far = v_select_gt(t, v_set1(4.0f), v_set1(1.0f), far); /* the polynomial turns around further out */
    near = v_fma(near, s, v_set1(4.99119423e-3f));
    near = v_fma(near, s, v_set1(-2.67681349e-2f));
    near = v_fma(near, s, v_set1(1.12819925e-1f));
    near = v_fma(near, s, v_set1(-3.76125336e-1f));
    near = v_fma(near, s, v_set1(1.28379166e-1f));
    near = v_fma(near, a, a);
    return v_select_gt(t, v_set1(0.927734375f), v_copysign(far, a), near);
}

LSI_INLINE vf v_sigmoid(vf a)
{
    return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_sub(v_zero(), a))));
}

LSI_INLINE vf v_softplus(vf a)
{
    const vf tail = v_log1p(v_exp(v_sub(v_zero(), v_abs(a))));

    return v_add(v_max(v_zero(), a), tail);
}

LSI_INLINE vf v_gelu(vf a)
{
    const vf half = v_mul(a, v_set1(0.5f));

    return v_fma(half, v_erf(v_mul(a, v_set1(0.70710678118f))), half);
}

LSI_INLINE vf v_gelu_grad(vf dy, vf x)
{
    const vf cdf = v_fma(v_set1(0.5f), v_erf(v_mul(x, v_set1(0.70710678118f))), v_set1(0.5f));
    const vf density = v_mul(v_exp(v_mul(v_mul(x, x), v_set1(-0.5f))), v_set1(0.39894228040f));

    return v_mul(dy, v_fma(x, density, cdf));
}

/* dy where y > 0, else `slope` times dy. */
LSI_INLINE vf v_leaky_grad(vf dy, vf y, vf slope)
{
    return v_select_gt(y, v_zero(), dy, v_mul(slope, dy));
}

/* An activation of the graph, and its gradient from its result; `act` should be a constant. */
LSI_INLINE vf v_graph_act(vf a, ls_act act, float slope)
{
    switch (act) {
    case LS_ACT_RELU: return v_max(v_zero(), a);
    case LS_ACT_LEAKY: return v_select_gt(a, v_zero(), a, v_mul(a, v_set1(slope)));
    case LS_ACT_TANH: return v_tanh(a);
    case LS_ACT_GELU: return v_gelu(a);
    case LS_ACT_NONE: break;
    }
    return a;
}
LSI_INLINE vf v_graph_act_grad(vf dy, vf y, ls_act act, float slope)
{
    switch (act) {
    case LS_ACT_RELU: return v_select_gt(y, v_zero(), dy, v_zero());
    case LS_ACT_LEAKY: return v_leaky_grad(dy, y, v_set1(slope));
    case LS_ACT_TANH: return v_mul(dy, v_fma(v_sub(v_zero(), y), y, v_set1(1.0f)));
    default: return dy;
    }
}

#endif
