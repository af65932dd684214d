/* probe_avx2.c: fused multiply-adds on 256-bit vectors. */
#include <immintrin.h>

#include "bench/probe_internal.h"

#define CHAINS (LSI_FMA_AVX2 / 8)

float lsi_probe_fma_avx2(int64_t rounds)
{
    __m256 acc[CHAINS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    float lane[8], sum = 0;

    for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_set1_ps((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_fmadd_ps(acc[i], a, b);
    }
    for (int i = 1; i < CHAINS; i++) acc[0] = _mm256_add_ps(acc[0], acc[i]);
    _mm256_storeu_ps(lane, acc[0]);
    for (int i = 0; i < 8; i++) sum += lane[i];
    return sum;
}
