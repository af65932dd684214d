/* conv_vec.h: the vector type of the convolution kernels.
 *
 * The kernel files (*_kernel.h) are compiled once for AVX-512 and once for AVX2 + FMA; this header gives both
 * the same vocabulary.  A channel block (16 floats) is VPB vectors of VW floats: one zmm or two ymm. */
#ifndef LS_BACKEND_CPU_CONV_VEC_H
#define LS_BACKEND_CPU_CONV_VEC_H

#include "backend/cpu/vec.h"

#define VW LSI_VL

#define VPB (16 / VW)

#define V_INLINE LSI_INLINE

V_INLINE vf v_set(float a)
{
    return v_set1(a);
}
/* c - a * b, rounded once. */
V_INLINE vf v_fnma(vf a, vf b, vf c)
{
#if VW == 16
    return _mm512_fnmadd_ps(a, b, c);
#else
    return _mm256_fnmadd_ps(a, b, c);
#endif
}

/* Unrolls the next loop twice and no more: the compiler would otherwise hoist loads over all rounds and
 * spill. */
#if defined(__clang__)
#define V_UNROLL_2 _Pragma("clang loop unroll_count(2)")
#else
#define V_UNROLL_2 _Pragma("GCC unroll 2")
#endif

#endif
