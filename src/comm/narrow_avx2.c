/* narrow_avx2.c: the loops of narrow.c on 256-bit vectors: the same bits for every number and every NaN. */
#include <immintrin.h>

#include "comm/comm_internal.h"

enum { LANES = 8 };

static __m128i load_narrow(const uint16_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static void store_narrow(uint16_t *to, __m128i x)
{
    _mm_storeu_si128((__m128i *)(void *)to, x);
}

static __m128i bf16_of(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x),
                  odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1)),
                  rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
                  quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)),
                  is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)),
                  half = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);

    return _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* The processor would set the quiet bit of a NaN: where all exponent bits are set, the rest is moved as it
 * is.
 */
static __m256 of_f16_lanes(__m128i x)
{
    const __m256i bits = _mm256_cvtepu16_epi32(x), all = _mm256_set1_epi32(0x7c00),
                  no_number = _mm256_cmpeq_epi32(_mm256_and_si256(bits, all), all),
                  sign = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x8000)), 16),
                  rest = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x3ff)), 13),
                  moved = _mm256_or_si256(_mm256_or_si256(sign, rest), _mm256_set1_epi32(0x7f800000));

    return _mm256_blendv_ps(_mm256_cvtph_ps(x), _mm256_castsi256_ps(moved), _mm256_castsi256_ps(no_number));
}

static void to_bf16(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) store_narrow(to + i, bf16_of(_mm256_loadu_ps(from + i)));
    lsi_narrow_loops_plain(LS_WIRE_BF16)->narrow(to + i, from + i, n - i);
}

static void of_bf16(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(
            to + i, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_narrow(from + i)), 16)));
    lsi_narrow_loops_plain(LS_WIRE_BF16)->widen(to + i, from + i, n - i);
}

static void to_f16(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        store_narrow(to + i, _mm256_cvtps_ph(_mm256_loadu_ps(from + i),
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    lsi_narrow_loops_plain(LS_WIRE_F16)->narrow(to + i, from + i, n - i);
}

static void of_f16(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) _mm256_storeu_ps(to + i, of_f16_lanes(load_narrow(from + i)));
    lsi_narrow_loops_plain(LS_WIRE_F16)->widen(to + i, from + i, n - i);
}

const lsi_narrow_loops lsi_narrow_bf16_avx2 = {to_bf16, of_bf16}, lsi_narrow_f16_avx2 = {to_f16, of_f16};
