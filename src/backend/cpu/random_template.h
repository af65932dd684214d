/* random_template.h: Philox in vectors; included by random_avx512.c and _avx2.c, which define RANDOM_TABLE.
 *
 * Each lane runs the generator for a block of its own; the four words of a block are then brought next to one
 * another. */
#include <string.h>

#include "backend/cpu/random.h"
#include "backend/cpu/vec.h"
#include "backend/cpu/vec_transpose.h"

#if LSI_VL == 16

typedef __m512i vi;
#define VI(name)                _mm512_##name
#define VI_ALL(x)               _mm512_set1_epi32((int)(x))
#define VI_XOR                  _mm512_xor_si512
#define VI_BLEND_ODD(even, odd) _mm512_mask_mov_epi32(even, 0xaaaa, odd)

LSI_INLINE vi lanes_from(uint32_t first)
{
    return _mm512_add_epi32(VI_ALL(first),
                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
/* 128-bit part i of the vector; parts are constants. */
#define VI_PART(a, i) _mm512_extracti32x4_epi32(a, i)
LSI_INLINE vf v_drop(vf x, vi words, uint32_t limit, vf scale)
{
    const __mmask16 keep = _mm512_cmpge_epu32_mask(_mm512_srli_epi32(words, 8), VI_ALL(limit));

    return _mm512_maskz_mul_ps(keep, x, scale);
}
LSI_INLINE vi vi_load(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}
LSI_INLINE vi vi_of(vf bits)
{
    return _mm512_castps_si512(bits);
}

#else

typedef __m256i vi;
#define VI(name)                _mm256_##name
#define VI_ALL(x)               _mm256_set1_epi32((int)(x))
#define VI_XOR                  _mm256_xor_si256
#define VI_BLEND_ODD(even, odd) _mm256_blend_epi32(even, odd, 0xaa)

LSI_INLINE vi lanes_from(uint32_t first)
{
    return _mm256_add_epi32(VI_ALL(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#define VI_PART(a, i)           _mm256_extracti128_si256(a, i)
LSI_INLINE vf v_drop(vf x, vi words, uint32_t limit, vf scale)
{
    /* Both sides have at most 25 bits, so that comparing signed numbers will do. */
    const vi drop = _mm256_cmpgt_epi32(VI_ALL(limit), _mm256_srli_epi32(words, 8));

    return _mm256_andnot_ps(_mm256_castsi256_ps(drop), _mm256_mul_ps(x, scale));
}
LSI_INLINE vi vi_load(const uint32_t *p)
{
    return _mm256_loadu_si256((const vi *)p);
}
LSI_INLINE vi vi_of(vf bits)
{
    return _mm256_castps_si256(bits);
}

#endif

/* The upper halves of the 64-bit products a * m. */
LSI_INLINE vi mul_high(vi a, vi m)
{
    const vi even = VI(srli_epi64)(VI(mul_epu32)(a, m), 32);

    return VI_BLEND_ODD(even, VI(mul_epu32)(VI(srli_epi64)(a, 32), m));
}

/* LSI_VL blocks from `block` on: 4 * LSI_VL words. */
LSI_INLINE void philox(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint32_t block, uint32_t *out)
{
    const vi m0 = VI_ALL(0xD2511F53u), m1 = VI_ALL(0xCD9E8D57u);
    vi c0 = lanes_from(block), c1 = VI_ALL(key->sample_base + sample), c2 = VI_ALL(key->step);
    vi c3 = VI_ALL(stream);
    uint32_t k0 = key->seed_lo, k1 = key->seed_hi;

    for (int round = 0; round < 10; round++) {
        const vi hi0 = mul_high(c0, m0), lo0 = VI(mullo_epi32)(c0, m0);
        const vi hi1 = mul_high(c2, m1), lo1 = VI(mullo_epi32)(c2, m1);
        c0 = VI_XOR(VI_XOR(hi1, c1), VI_ALL(k0));
        c1 = lo1;
        c2 = VI_XOR(VI_XOR(hi0, c3), VI_ALL(k1));
        c3 = lo0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const vi t0 = VI(unpacklo_epi32)(c0, c1), t1 = VI(unpackhi_epi32)(c0, c1);
    const vi t2 = VI(unpacklo_epi32)(c2, c3), t3 = VI(unpackhi_epi32)(c2, c3);
    /* r[k] holds, in its i-th part of 128 bits, block 4i + k. */
    const vi r[4] = {VI(unpacklo_epi64)(t0, t2), VI(unpackhi_epi64)(t0, t2), VI(unpacklo_epi64)(t1, t3),
                     VI(unpackhi_epi64)(t1, t3)};
    for (int k = 0; k < 4; k++) {
        __m128i *to = (__m128i *)(out + 4 * k);
        _mm_storeu_si128(to, VI_PART(r[k], 0));
        _mm_storeu_si128(to + 4, VI_PART(r[k], 1));
#if LSI_VL == 16
        _mm_storeu_si128(to + 8, VI_PART(r[k], 2));
        _mm_storeu_si128(to + 12, VI_PART(r[k], 3));
#endif
    }
}

static void words(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint32_t block, int64_t n,
                  uint32_t *out)
{
    for (int64_t i = 0; i < n; i += 4 * LSI_VL)
        philox(key, stream, sample, block + (uint32_t)(i / 4), out + i);
}

static void drop(const uint32_t *w, uint32_t limit, float scale, const float *x, float *y, int64_t n)
{
    const vf s = v_set1(scale);
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) v_store(y + i, v_drop(v_load(x + i), vi_load(w + i), limit, s));
    for (; i < n; i++) y[i] = w[i] >> 8 < limit ? 0 : x[i] * scale;
}

static void drop_planes(const uint32_t *w, uint32_t limit, float scale, const float *x, float *y, int64_t n,
                        int64_t pixels)
{
    const vf s = v_set1(scale);

    for (int64_t plane = 0; plane < n; plane++, x += pixels, y += pixels) {
        int64_t i = 0;
        if (w[plane] >> 8 < limit) {
            memset(y, 0, (size_t)pixels * sizeof *y);
            continue;
        }
        for (; i + LSI_VL <= pixels; i += LSI_VL) v_store(y + i, v_mul(v_load(x + i), s));
        if (i < pixels) v_store_n(y + i, v_mul(v_load_n(x + i, pixels - i), s), pixels - i);
    }
}

/* LSI_VL pixels of LSI_VL channels, of which `left` pixels exist: the words lie by channel and are brought
 * into the order of the map. */
LSI_INLINE void drop_square(const uint32_t *w, int64_t stride, uint32_t limit, vf s, const float *x, float *y,
                            int64_t left)
{
    vf r[LSI_VL];

    V_UNROLL
    for (int c = 0; c < LSI_VL; c++)
        r[c] = left == LSI_VL ? v_load((const float *)(w + c * stride))
                              : v_load_n((const float *)(w + c * stride), left);
    v_transpose(r);
    V_UNROLL
    for (int i = 0; i < LSI_VL; i++)
        if (i < left) v_store(y + i * 16, v_drop(v_load(x + i * 16), vi_of(r[i]), limit, s));
}

static void drop16(const uint32_t *w, int64_t stride, uint32_t limit, float scale, const float *x, float *y,
                   int64_t n)
{
    const vf s = v_set1(scale);

    for (int64_t i = 0; i < n; i += LSI_VL)
        for (int half = 0; half < 16; half += LSI_VL) {
            const uint32_t *at = w + half * stride + i;
            const int64_t map = i * 16 + half;
            if (n - i >= LSI_VL)
                drop_square(at, stride, limit, s, x + map, y + map, LSI_VL);
            else
                drop_square(at, stride, limit, s, x + map, y + map, n - i);
        }
}

const lsi_random_table RANDOM_TABLE = {
    .impl = RANDOM_IMPL, .words = words, .drop = drop, .drop_planes = drop_planes, .drop16 = drop16};
