/* b16_emulated.h: the instructions for bf16 numbers and tiles, made of AVX-512's common ones.
 *
 * Included before the sources of the backend's bf16 kernels, which are compiled once more with it: so that a
 * processor that has neither can test their packing, their drivers and the order in which tiles are used.
 * Sums are those of the instructions: pairs in order, fp32, numbers too small to be normal are zero. */
#ifndef LS_TEST_B16_EMULATED_H
#define LS_TEST_B16_EMULATED_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline __m512i emulated_round(__m512 a)
{
    const __m512i u = _mm512_castps_si512(a), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd));
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __mmask16 tiny = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
    __m512i r = _mm512_srli_epi32(up, 16);

    r = _mm512_mask_or_epi32(r, nan, _mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
    return _mm512_mask_and_epi32(r, tiny, _mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x8000));
}

static inline __m256bh emulated_narrow(__m512 a)
{
    return (__m256bh)_mm512_cvtepi32_epi16(emulated_round(a));
}

static inline __m512bh emulated_narrow_both(__m512 high, __m512 low)
{
    const __m256i h = _mm512_cvtepi32_epi16(emulated_round(high)),
                  l = _mm512_cvtepi32_epi16(emulated_round(low));

    return (__m512bh)_mm512_inserti64x4(_mm512_castsi256_si512(l), h, 1);
}

static inline __m512 emulated_pairs(__m512 sum, __m512i a, __m512i b)
{
    const __m512i top = _mm512_set1_epi32((int)0xffff0000u);
    const __m512 a0 = _mm512_castsi512_ps(_mm512_slli_epi32(a, 16)),
                 b0 = _mm512_castsi512_ps(_mm512_slli_epi32(b, 16));
    const __m512 a1 = _mm512_castsi512_ps(_mm512_and_si512(a, top)),
                 b1 = _mm512_castsi512_ps(_mm512_and_si512(b, top));

    return _mm512_fmadd_ps(a1, b1, _mm512_fmadd_ps(a0, b0, sum));
}

#define _mm512_cvtneps_pbh(a)          emulated_narrow(a)
#define _mm512_cvtne2ps_pbh(high, low) emulated_narrow_both(high, low)
#define _mm512_dpbf16_ps(sum, a, b)    emulated_pairs(sum, (__m512i)(a), (__m512i)(b))

static _Thread_local struct {
    _Alignas(64) unsigned char row[16][64];
} emulated_tiles[8];

static inline void emulated_tile_load(int tile, const void *from, size_t stride)
{
    for (size_t r = 0; r < 16; r++) memcpy(emulated_tiles[tile].row[r], (const char *)from + r * stride, 64);
}

static inline void emulated_tile_store(int tile, void *to, size_t stride)
{
    for (size_t r = 0; r < 16; r++) memcpy((char *)to + r * stride, emulated_tiles[tile].row[r], 64);
}

static inline void emulated_tile_multiply(int sum, int a, int b)
{
    for (int m = 0; m < 16; m++) {
        __m512 c = _mm512_load_ps(emulated_tiles[sum].row[m]);
        for (int k = 0; k < 16; k++) {
            int32_t pair;
            memcpy(&pair, emulated_tiles[a].row[m] + 4 * k, sizeof pair);
            c = emulated_pairs(c, _mm512_set1_epi32(pair), _mm512_load_si512(emulated_tiles[b].row[k]));
        }
        _mm512_store_ps(emulated_tiles[sum].row[m], c);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config)        ((void)(config))
#define _tile_release()                 ((void)0)
#define _tile_zero(tile)                memset(emulated_tiles[tile].row, 0, 1024)
#define _tile_loadd(tile, from, stride) emulated_tile_load(tile, from, stride)
#define _tile_stored(tile, to, stride)  emulated_tile_store(tile, to, stride)
#define _tile_dpbf16ps(sum, a, b)       emulated_tile_multiply(sum, a, b)

#endif
