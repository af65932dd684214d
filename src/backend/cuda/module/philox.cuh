/* philox.cuh: the random numbers of base/rng.h on the device: the same words for the same counters. */
#ifndef LS_BACKEND_CUDA_MODULE_PHILOX_CUH
#define LS_BACKEND_CUDA_MODULE_PHILOX_CUH

#include <stdint.h>

/* The step's key, as it lies in memory: {seed_lo, seed_hi, step, sample_base}. */
struct lsi_key {
    uint32_t seed_lo, seed_hi, step, sample_base;
};

static __device__ __forceinline__ lsi_key lsi_key_at(const int32_t *p)
{
    return {(uint32_t)p[0], (uint32_t)p[1], (uint32_t)p[2], (uint32_t)p[3]};
}

/* ls_rng_block: four words. */
static __device__ __forceinline__ uint4 lsi_draw(const lsi_key &key, uint32_t stream, uint32_t sample,
                                                 uint32_t block)
{
    uint32_t c0 = block, c1 = key.sample_base + sample, c2 = key.step, c3 = stream;
    uint32_t k0 = key.seed_lo, k1 = key.seed_hi;

#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint32_t h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
        const uint32_t h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

/* ls_rng_word: word i % 4 of block i / 4. */
static __device__ __forceinline__ uint32_t lsi_draw_word(const lsi_key &key, uint32_t stream, uint32_t sample,
                                                         uint32_t i)
{
    const uint4 w = lsi_draw(key, stream, sample, i / 4);

    return i % 4 == 0 ? w.x : i % 4 == 1 ? w.y : i % 4 == 2 ? w.z : w.w;
}

#endif
