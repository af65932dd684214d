/* rng.c: Philox 4x32-10 and what is made of its words. */
#include "base/rng.h"

#include <math.h>

/* Constants of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11. */
#define PHILOX_M0     UINT32_C(0xD2511F53)
#define PHILOX_M1     UINT32_C(0xCD9E8D57)
#define PHILOX_W0     UINT32_C(0x9E3779B9)
#define PHILOX_W1     UINT32_C(0xBB67AE85)
#define PHILOX_ROUNDS 10

void ls_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
        uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* FNV-1a with 32 bits: short, public, and the same on every machine for ever. */
uint32_t ls_rng_stream(const char *name)
{
    uint32_t h = UINT32_C(2166136261);
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) h = (h ^ *p) * UINT32_C(16777619);
    return h;
}

void ls_rng_block(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint32_t block, uint32_t out[4])
{
    const uint32_t counter[4] = {block, key->sample_base + sample, key->step, stream};
    const uint32_t k[2] = {key->seed_lo, key->seed_hi};
    ls_philox(counter, k, out);
}

uint32_t ls_rng_word(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint64_t i)
{
    uint32_t out[4];
    ls_rng_block(key, stream, sample, (uint32_t)(i / 4), out);
    return out[i % 4];
}

float ls_rng_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

double ls_rng_normal(uint32_t word_a, uint32_t word_b, int which)
{
    const double two_pi = 6.283185307179586476925;
    /* (a + 1) / 2^32 lies in (0, 1]: the logarithm is always finite. */
    double radius = sqrt(-2.0 * log(((double)word_a + 1.0) * 0x1p-32));
    double angle = two_pi * ((double)word_b * 0x1p-32);
    return radius * (which ? sin(angle) : cos(angle));
}
