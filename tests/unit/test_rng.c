/* Random numbers: known answers, addressing, and moments. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "check.h"

/* philox4x32-10 of the file kat_vectors that comes with Random123. */
static void known_answers(void)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        ls_philox(kat[i].counter, kat[i].key, out);
        CHECK_EQ_MEM(out, kat[i].want, sizeof out);
    }
}

/* Published FNV-1a values: stream numbers are part of a run's identity and must never change. */
static void streams_are_stable(void)
{
    CHECK_EQ_INT(ls_rng_stream(""), 0x811c9dc5u);
    CHECK_EQ_INT(ls_rng_stream("a"), 0xe40c292cu);
    CHECK_EQ_INT(ls_rng_stream("foobar"), 0xbf9cf968u);
}

static void addressing(void)
{
    ls_rng_key key = {.seed_lo = 11, .seed_hi = 22, .step = 33, .sample_base = 40};
    const uint32_t counter[4] = {5, 40 + 7, 33, 99}, k[2] = {11, 22};
    uint32_t want[4], got[4];
    ls_philox(counter, k, want);
    ls_rng_block(&key, 99, 7, 5, got);
    CHECK_EQ_MEM(got, want, sizeof got);
    for (uint64_t i = 0; i < 4; i++) CHECK_EQ_INT(ls_rng_word(&key, 99, 7, 20 + i), want[i]);

    /* Sample 7 of a batch that starts at 40 is sample 0 of a batch that starts at 47. */
    key.sample_base = 47;
    ls_rng_block(&key, 99, 0, 5, got);
    CHECK_EQ_MEM(got, want, sizeof got);
}

static void uniform_ends(void)
{
    CHECK(ls_rng_uniform(0) == 0.0f);
    CHECK(ls_rng_uniform(0xff) == 0.0f);
    CHECK(ls_rng_uniform(0x80000000u) == 0.5f);
    CHECK(ls_rng_uniform(0xffffffffu) == 1.0f - 0x1p-24f);
}

static void normal_ends_and_moments(void)
{
    CHECK(isfinite(ls_rng_normal(0, 0, 0)));
    CHECK(isfinite(ls_rng_normal(0xffffffffu, 0xffffffffu, 1)));
    CHECK_NEAR(ls_rng_normal(0xffffffffu, 123, 0), 0, 0);
    /* Both members of a pair share a radius: cos^2 + sin^2 = 1. */
    double c = ls_rng_normal(1u << 30, 77777777u, 0), s = ls_rng_normal(1u << 30, 77777777u, 1);
    CHECK_NEAR(c * c + s * s, -2.0 * log(((1u << 30) + 1.0) / 4294967296.0), 1e-12);

    const int n = 200000;
    ls_rng_key key = {.seed_lo = 1};
    double m1 = 0, m2 = 0, m4 = 0;
    for (int i = 0; i < n; i++) {
        uint64_t pair = (uint64_t)(i / 2) * 2;
        double z = ls_rng_normal(ls_rng_word(&key, 3, 0, pair), ls_rng_word(&key, 3, 0, pair + 1), i % 2);
        m1 += z;
        m2 += z * z;
        m4 += z * z * z * z;
    }
    /* Five standard deviations of each mean: 1, sqrt(2), sqrt(96) over sqrt(n). */
    CHECK_NEAR(m1 / n, 0, 5 / sqrt(n));
    CHECK_NEAR(m2 / n, 1, 5 * sqrt(2) / sqrt(n));
    CHECK_NEAR(m4 / n, 3, 5 * sqrt(96) / sqrt(n));
}

int main(void)
{
    CHECK_RUN(known_answers);
    CHECK_RUN(streams_are_stable);
    CHECK_RUN(addressing);
    CHECK_RUN(uniform_ends);
    CHECK_RUN(normal_ends_and_moments);
    return CHECK_DONE();
}
