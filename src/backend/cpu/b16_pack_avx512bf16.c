/* b16_pack_avx512bf16.c: numbers into the blocks that products of bf16 want, and sums out of them.
 *
 * Two neighbours in depth make a pair of 32 bits, so everything here moves pairs: 16 rows of 16 pairs are
 * turned round like floats. */
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/vec_math.h"
#include "backend/cpu/vec_transpose.h"

LSI_INLINE __mmask16 first(int64_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

/* bf16 of 16 floats, to nearest even; NaN stays one, and what is too small for a normal number becomes 0. */
LSI_INLINE __m256i narrow(vf a)
{
    return (__m256i)_mm512_cvtneps_pbh(a);
}
/* The same in the low halves of 32 bits. */
LSI_INLINE __m512i rounded(vf a)
{
    return _mm512_cvtepu16_epi32(narrow(a));
}

/* The first n of 16 numbers in the low halves, zeros behind; nothing is read for n <= 0. */
LSI_INLINE __m512i load_16(const void *p, ls_dtype t, int64_t n)
{
    if (n <= 0) return _mm512_setzero_si512();
    if (t == LS_F32) return rounded(_mm512_maskz_loadu_ps(first(n), p));
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(n), p));
}

LSI_INLINE __m512i paired(__m512i low, __m512i high)
{
    return _mm512_or_epi32(low, _mm512_slli_epi32(high, 16));
}

/* The first n of 32 numbers, zeros behind. */
LSI_INLINE __m512i load_32(const void *p, ls_dtype t, int64_t n)
{
    if (t == LS_BF16) {
        const __mmask32 m = n >= 32 ? 0xffffffffu : n <= 0 ? 0 : (1u << n) - 1;
        return _mm512_maskz_loadu_epi16(m, p);
    }
    const vf low = n > 0 ? _mm512_maskz_loadu_ps(first(n), p) : v_zero();
    const vf high = n > 16 ? _mm512_maskz_loadu_ps(first(n - 16), (const float *)p + 16) : v_zero();
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

void lsi_b16_round(const void *from, ls_dtype t, uint16_t *to, int64_t n)
{
    if (t == LS_BF16) {
        memcpy(to, from, (size_t)n * 2);
        return;
    }
    for (int64_t i = 0; i < n; i += 16)
        _mm256_mask_storeu_epi16(to + i, first(n - i),
                                 narrow(_mm512_maskz_loadu_ps(first(n - i), (const float *)from + i)));
}

void lsi_b16_round_every(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)step));

    if (step == 1) {
        lsi_b16_round(from, t, to, n);
        return;
    }
    if (t != LS_F32 || step * 16 > INT32_MAX) {
        for (int64_t i = 0; i < n; i++) to[i] = lsi_b16_get(from, t, i * step);
        return;
    }
    for (int64_t i = 0; i < n; i += 16)
        _mm256_mask_storeu_epi16(
            to + i, first(n - i),
            narrow(_mm512_mask_i32gather_ps(v_zero(), first(n - i), at, (const float *)from + i * step, 4)));
}

/* 16 rows of 16 pairs become 16 rows of 16 pairs. */
LSI_INLINE void turn(__m512i r[16])
{
    vf f[16];

    for (int i = 0; i < 16; i++) f[i] = _mm512_castsi512_ps(r[i]);
    v_transpose(f);
    for (int i = 0; i < 16; i++) r[i] = _mm512_castps_si512(f[i]);
}

/* 16 columns (n of them exist) of a stored (k, n) matrix as rows of 32 numbers each. */
static void turn_columns(const void *from, ls_dtype t, int64_t ld, int64_t n, int64_t k, uint16_t *to,
                         int64_t to_row)
{
    for (int64_t l = 0; l < k; l += 32) {
        __m512i r[16];
        for (int j = 0; j < 16; j++) {
            const int64_t at = l + 2 * j;
            const __m512i low = at < k ? load_16(lsi_b16_at(from, t, at * ld), t, n) : _mm512_setzero_si512();
            const __m512i high =
                at + 1 < k ? load_16(lsi_b16_at(from, t, (at + 1) * ld), t, n) : _mm512_setzero_si512();
            r[j] = paired(low, high);
        }
        turn(r);
        for (int64_t i = 0; i < n && i < 16; i++) _mm512_storeu_si512(to + i * to_row + l, r[i]);
    }
}

void lsi_b16_pack_a(const void *from, ls_dtype t, int64_t ld, bool trans, int64_t rows, int64_t k,
                    uint16_t *to, int64_t to_row)
{
    if (trans) {
        for (int64_t r = 0; r < rows; r += 16)
            turn_columns(lsi_b16_at(from, t, r), t, ld, rows - r, k, to + r * to_row, to_row);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t l = 0; l < k; l += 32)
            _mm512_storeu_si512(to + r * to_row + l, load_32(lsi_b16_at(from, t, r * ld + l), t, k - l));
}

void lsi_b16_pack_b(const void *from, ls_dtype t, int64_t ld, bool trans, int64_t cols, int64_t k,
                    uint16_t *to)
{
    for (int64_t l = 0; l < k; l += 32, to += LSI_B16_BLOCK) {
        if (trans) {
            __m512i r[16];
            for (int64_t i = 0; i < 16; i++)
                r[i] = i < cols ? load_32(lsi_b16_at(from, t, i * ld + l), t, k - l) : _mm512_setzero_si512();
            turn(r);
            for (int j = 0; j < 16; j++) _mm512_storeu_si512(to + 32 * j, r[j]);
            continue;
        }
        for (int64_t j = 0; j < 16; j++) {
            const int64_t at = l + 2 * j;
            const __m512i low =
                at < k ? load_16(lsi_b16_at(from, t, at * ld), t, cols) : _mm512_setzero_si512();
            const __m512i high =
                at + 1 < k ? load_16(lsi_b16_at(from, t, (at + 1) * ld), t, cols) : _mm512_setzero_si512();
            _mm512_storeu_si512(to + 32 * j, paired(low, high));
        }
    }
}

void lsi_b16_pack_strided(const void *from, ls_dtype t, int64_t step, int64_t col, int64_t cols, int64_t k,
                          uint16_t *to)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)col));
    const __mmask16 m = first(cols);
    const int64_t whole = (k + LSI_B16_DEEP - 1) / LSI_B16_DEEP * LSI_B16_DEEP;

    if (t == LS_F32 && col * 16 < INT32_MAX) {
        for (int64_t l = 0; l < whole; l += 2, to += 32) {
            const float *p = (const float *)from + l * step;
            const vf low = _mm512_mask_i32gather_ps(v_zero(), l < k ? m : 0, at, p, 4);
            const vf high = _mm512_mask_i32gather_ps(v_zero(), l + 1 < k ? m : 0, at, p + step, 4);
            _mm512_storeu_si512(to, paired(rounded(low), rounded(high)));
        }
        return;
    }
    for (int64_t l = 0; l < whole; l++)
        for (int64_t c = 0; c < LSI_B16_COLS; c++)
            to[l / 2 * 32 + 2 * c + l % 2] = l < k && c < cols ? lsi_b16_get(from, t, l * step + c * col) : 0;
}

/* 16 taps of 16 columns of one depth: columns as rows become taps as rows. */
LSI_INLINE void load_taps(const float *from, int64_t col, int64_t cols, int64_t taps, vf *r)
{
    for (int64_t c = 0; c < 16; c++)
        r[c] = c < cols ? _mm512_maskz_loadu_ps(first(taps), from + c * col) : v_zero();
    v_transpose(r);
}

void lsi_b16_pack_taps(const void *from, ls_dtype t, int64_t step, int64_t col, int64_t cols, int64_t k,
                       int taps, uint16_t *const *to)
{
    enum { FEW = 4 }; /* would fill too little of a vector */

    if (t != LS_F32 || taps < FEW) {
        for (int i = 0; i < taps; i++)
            lsi_b16_pack_strided(lsi_b16_at(from, t, i), t, step, col, cols, k, to[i]);
        return;
    }
    for (int64_t l = 0; l < LSI_B16_DEEP; l += 2)
        for (int first_tap = 0; first_tap < taps; first_tap += 16) {
            const float *p = (const float *)from + l * step + first_tap;
            vf low[16], high[16];
            load_taps(p, col, l < k ? cols : 0, taps - first_tap, low);
            load_taps(p + step, col, l + 1 < k ? cols : 0, taps - first_tap, high);
            for (int i = 0; i < 16 && first_tap + i < taps; i++)
                _mm512_storeu_si512(to[first_tap + i] + l * 16, paired(rounded(low[i]), rounded(high[i])));
        }
}

void lsi_b16_give(const float *const *from, int64_t n, int64_t cols, int parts, int64_t part, ls_dtype t,
                  void *to, int64_t to_row)
{
    const __mmask16 m = first(n);
    vf r[16];

    for (int64_t i = 0; i < 16; i++) {
        r[i] = v_zero();
        for (int p = 0; i < n && p < parts; p++) r[i] = v_add(r[i], v_load(from[i] + p * part));
    }
    v_transpose(r);
    for (int64_t c = 0; c < cols; c++)
        if (t == LS_F32)
            _mm512_mask_storeu_ps((float *)to + c * to_row, m, r[c]);
        else
            _mm256_mask_storeu_epi16((uint16_t *)to + c * to_row, m, narrow(r[c]));
}

void lsi_b16_sum_parts(const float *from, int64_t n, int parts, int64_t part, float *to)
{
    for (int64_t i = 0; i < n; i += 16) {
        vf sum = v_load(from + i);
        for (int p = 1; p < parts; p++) sum = v_add(sum, v_load(from + p * part + i));
        v_store(to + i, sum);
    }
}

void lsi_b16_pick(const float *from, const int32_t *places, int64_t n, ls_dtype t, void *to)
{
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);
        const __m512i at = _mm512_maskz_loadu_epi32(m, places + i);
        const vf v = _mm512_mask_i32gather_ps(v_zero(), m, at, from, 4);
        if (t == LS_F32)
            _mm512_mask_storeu_ps((float *)to + i, m, v);
        else
            _mm256_mask_storeu_epi16((uint16_t *)to + i, m, narrow(v));
    }
}

/* act and type are compile-time constants wherever this is inlined. */
LSI_INLINE void store_rows(const float *c, int64_t c_row, int64_t rows, int64_t cols, void *to,
                           int64_t to_row, vf bias, const lsi_conv_act act, float slope, const ls_dtype type)
{
    const __mmask16 m = first(cols);

    for (int64_t r = 0; r < rows; r++) {
        const vf v = v_act(v_add(v_load(c + r * c_row), bias), act, slope);
        if (type == LS_F32)
            _mm512_mask_storeu_ps((float *)to + r * to_row, m, v);
        else
            _mm256_mask_storeu_epi16((uint16_t *)to + r * to_row, m, narrow(v));
    }
}

void lsi_b16_store(const lsi_b16_end *e, const float *c, int64_t c_row, int64_t rows, int64_t cols, void *to,
                   int64_t to_row)
{
    vf bias = v_zero();

    if (e->bias != NULL && e->bias_type == LS_F32)
        bias = _mm512_maskz_loadu_ps(first(cols), e->bias);
    else if (e->bias != NULL)
        bias = _mm512_castsi512_ps(_mm512_slli_epi32(load_16(e->bias, LS_BF16, cols), 16));
    switch (e->act) {
#define STORE(ACT)                                                                                           \
    if (e->type == LS_F32)                                                                                   \
        store_rows(c, c_row, rows, cols, to, to_row, bias, ACT, e->slope, LS_F32);                           \
    else                                                                                                     \
        store_rows(c, c_row, rows, cols, to, to_row, bias, ACT, e->slope, LS_BF16);                          \
    break
    case LSI_ACT_RELU: STORE(LSI_ACT_RELU);
    case LSI_ACT_LEAKY: STORE(LSI_ACT_LEAKY);
    case LSI_ACT_TANH: STORE(LSI_ACT_TANH);
    case LSI_ACT_NONE: STORE(LSI_ACT_NONE);
#undef STORE
    }
}

void lsi_b16_copy_lines(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to, int64_t to_step)
{
    if (t == LS_BF16)
        for (int64_t p = 0; p < n; p++)
            _mm256_storeu_si256(
                (__m256i *)(void *)(to + p * to_step),
                _mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)from + p * step)));
    else
        for (int64_t p = 0; p < n; p++)
            _mm256_storeu_si256((__m256i *)(void *)(to + p * to_step),
                                narrow(v_load((const float *)from + p * step)));
}

void lsi_b16_pair_lines(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to)
{
    for (int64_t p = 0; p < n; p += 2) {
        const __m512i low = load_16(lsi_b16_at(from, t, p * step), t, 16);
        const __m512i high =
            p + 1 < n ? load_16(lsi_b16_at(from, t, (p + 1) * step), t, 16) : _mm512_setzero_si512();
        _mm512_storeu_si512(to + 16 * p, paired(low, high));
    }
}

void lsi_b16_turn_lines(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to, int64_t to_row)
{
    for (int64_t p = 0; p < n; p += 32) {
        __m512i r[16];
        const int64_t left = n - p;
        const __mmask32 m = left >= 32 ? 0xffffffffu : (1u << left) - 1;
        for (int64_t j = 0; j < 16; j++) {
            const int64_t at = p + 2 * j;
            const __m512i low =
                at < n ? load_16(lsi_b16_at(from, t, at * step), t, 16) : _mm512_setzero_si512();
            const __m512i high =
                at + 1 < n ? load_16(lsi_b16_at(from, t, (at + 1) * step), t, 16) : _mm512_setzero_si512();
            r[j] = paired(low, high);
        }
        turn(r);
        for (int i = 0; i < 16; i++) _mm512_mask_storeu_epi16(to + i * to_row + p, m, r[i]);
    }
}
