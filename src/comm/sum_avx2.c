/* sum_avx2.c: sums on 256-bit vectors (wider ones gain nothing, memory is the limit), and writing around
 * caches.
 *
 * A plain store reads the line first; a result that does not fit the caches is written 1.1 to 1.5 times as
 * fast without (2 inputs of 16 MiB and more, cache of 32 MiB).  Results that fit are slower that way, by up
 * to 1.8 times. */
#include <immintrin.h>

#define SUM_LOOPS lsi_sum_loops_avx2
#include "comm/sum_template.h"

static void scale_past_cache(float *out, const float *a, float w, int64_t n)
{
    const __m256 ws = _mm256_set1_ps(w);
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) _mm256_stream_ps(out + i, _mm256_mul_ps(ws, _mm256_loadu_ps(a + i)));
    _mm_sfence(); /* before anybody is told that the result is there */
    scale(out + i, a + i, w, n - i);
}

static void pair_past_cache(float *out, const float *a, float wa, const float *b, float wb, int64_t n)
{
    const __m256 was = _mm256_set1_ps(wa), wbs = _mm256_set1_ps(wb);
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_stream_ps(out + i, _mm256_add_ps(_mm256_mul_ps(was, _mm256_loadu_ps(a + i)),
                                                _mm256_mul_ps(wbs, _mm256_loadu_ps(b + i))));
    _mm_sfence();
    pair(out + i, a + i, wa, b + i, wb, n - i);
}

const lsi_sum_loops lsi_sum_loops_avx2_past_cache = {scale,          pair, add_scaled, add, scale_past_cache,
                                                     pair_past_cache};
