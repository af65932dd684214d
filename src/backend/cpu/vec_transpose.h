/* vec_transpose.h: reordering between vectors: transposition of LSI_VL x LSI_VL floats, and interleaving. */
#ifndef LS_BACKEND_CPU_VEC_TRANSPOSE_H
#define LS_BACKEND_CPU_VEC_TRANSPOSE_H

#include "backend/cpu/vec.h"

#if LSI_VL == 16

LSI_INLINE void v_transpose(vf r[16])
{
    vf t[16];

    /* Exchange single elements, then pairs, within 128-bit lanes; then the lanes themselves. */
    V_UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    V_UNROLL
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    V_UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    V_UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* to[0..2*LSI_VL) = a0 b0 a1 b1 ... */
LSI_INLINE void v_interleave(float *to, vf a, vf b)
{
    const __m512i lo = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i hi = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);

    v_store(to, _mm512_permutex2var_ps(a, lo, b));
    v_store(to + LSI_VL, _mm512_permutex2var_ps(a, hi, b));
}

#else

LSI_INLINE void v_transpose(vf r[8])
{
    vf t[8];

    V_UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    V_UNROLL
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    V_UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    V_UNROLL
    for (int i = 0; i < 8; i++) r[i] = t[i];
}

LSI_INLINE void v_interleave(float *to, vf a, vf b)
{
    const vf lo = _mm256_unpacklo_ps(a, b), hi = _mm256_unpackhi_ps(a, b);

    v_store(to, _mm256_permute2f128_ps(lo, hi, 0x20));
    v_store(to + LSI_VL, _mm256_permute2f128_ps(lo, hi, 0x31));
}

#endif
#endif
