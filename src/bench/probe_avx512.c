/* probe_avx512.c: fused multiply-adds on 512-bit vectors. */
#include <immintrin.h>

#include "bench/probe_internal.h"

float lsi_probe_fma_avx512(int64_t rounds)
{
    __m512 acc[LSI_PROBE_CHAINS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);

    for (int i = 0; i < LSI_PROBE_CHAINS; i++) acc[i] = _mm512_set1_ps((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 24
        for (int i = 0; i < LSI_PROBE_CHAINS; i++) acc[i] = _mm512_fmadd_ps(acc[i], a, b);
    }
    for (int i = 1; i < LSI_PROBE_CHAINS; i++) acc[0] = _mm512_add_ps(acc[0], acc[i]);
    return _mm512_reduce_add_ps(acc[0]);
}
