/* conv_vec.h: the vector type of the convolution kernels.
 *
 * The kernel files (*_kernel.h) are compiled once for AVX-512 and once for AVX2 + FMA; this header gives both
 * the same vocabulary.  A channel block (16 floats) is VPB vectors of VW floats: one zmm or two ymm. */
#ifndef LS_BACKEND_CPU_CONV_VEC_H
#define LS_BACKEND_CPU_CONV_VEC_H

#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define VW 16
typedef __m512 vf;
static inline vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void v_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}
static inline vf v_set(float a)
{
    return _mm512_set1_ps(a);
}
static inline vf v_zero(void)
{
    return _mm512_setzero_ps();
}
/* a * b + c and c - a * b, rounded once. */
static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf v_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
static inline vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
static inline vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
#else
#define VW 8
typedef __m256 vf;
static inline vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void v_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}
static inline vf v_set(float a)
{
    return _mm256_set1_ps(a);
}
static inline vf v_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf v_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
static inline vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
#endif

#define VPB (16 / VW)

#define V_INLINE static inline __attribute__((always_inline))

/* Fully unrolls the next loop: accumulators indexed by its counter must live in registers. */
#if defined(__clang__)
#define V_UNROLL _Pragma("unroll")
#else
#define V_UNROLL _Pragma("GCC unroll 64")
#endif

/* Unrolls the next loop twice and no more: the compiler would otherwise hoist loads over all rounds and
 * spill. */
#if defined(__clang__)
#define V_UNROLL_2 _Pragma("clang loop unroll_count(2)")
#else
#define V_UNROLL_2 _Pragma("GCC unroll 2")
#endif

#endif
