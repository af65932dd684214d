/* Point clouds: box and subset against values worked out by hand. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "data/points.h"

static void box(void)
{
    ls_box b;
    ls_err err = {0};
    float x[] = {-20, -10, 0, 20, 60};
    const float want[] = {0, 0.125f, 0.25f, 0.5f, 1};

    REQUIRE_OK(ls_box_parse(&b, "-20:60", &err), &err);
    ls_box_apply(&b, x, 5);
    CHECK_EQ_MEM(x, want, sizeof x);
    REQUIRE_OK(ls_box_parse(&b, "0.5:1e3", &err), &err);
    CHECK(b.on && b.lo == 0.5f && b.hi == 1000.0f);

    static const char *const bad[] = {"", "3", "3:", ":3", "3:3", "4:3", "0:inf", "nan:1", "0:1x", "0 : 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err = (ls_err){0};
        CHECK_STATUS(ls_box_parse(&b, bad[i], &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, "LO:HI");
    }
}

static void take(void)
{
    const float in[] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
    const int64_t chosen[] = {1, 3};
    const float want[] = {1, 3, 11, 13, 21, 23};
    float out[6];

    ls_points_take(in, 3, 4, chosen, 2, out);
    CHECK_EQ_MEM(out, want, sizeof out);
}

/* The rule itself, step by step, with the words of the generator. */
static void choice_follows_the_words(void)
{
    const ls_rng_key key = {.seed_lo = 1, .seed_hi = 2, .step = 3, .sample_base = 4};
    const uint32_t stream = ls_rng_stream("data.points");
    int64_t chosen[3];
    int k = 0;

    ls_points_choose(&key, 5, 7, 3, chosen);
    for (int i = 0; i < 7 && k < 3; i++) {
        double u = (double)ls_rng_word(&key, stream, 5, (uint64_t)i) / 4294967296.0;
        if (u * (7 - i) < 3 - k) CHECK_EQ_INT(chosen[k++], i);
    }
    CHECK_EQ_INT(k, 3);
}

/* All 10 choices of 2 out of 5 come up about equally often; 1000 each are expected, and four deviations are
 * 120. */
static void every_choice_is_equally_likely(void)
{
    int count[5][5] = {{0}};

    for (uint32_t epoch = 0; epoch < 100; epoch++) {
        for (uint32_t sample = 0; sample < 100; sample++) {
            int64_t c[2];
            ls_points_choose(&(ls_rng_key){.seed_lo = 9, .step = epoch, .sample_base = sample}, 0, 5, 2, c);
            REQUIRE(0 <= c[0] && c[0] < c[1] && c[1] < 5);
            count[c[0]][c[1]]++;
        }
    }
    for (int a = 0; a < 5; a++)
        for (int b = a + 1; b < 5; b++) CHECK_NEAR(count[a][b], 1000, 120);
}

static void all_and_none(void)
{
    int64_t c[4] = {-1, -1, -1, -1};

    ls_points_choose(&(ls_rng_key){0}, 0, 4, 0, c);
    CHECK_EQ_INT(c[0], -1);
    ls_points_choose(&(ls_rng_key){0}, 0, 4, 4, c);
    for (int i = 0; i < 4; i++) CHECK_EQ_INT(c[i], i);
}

int main(void)
{
    CHECK_RUN(box);
    CHECK_RUN(take);
    CHECK_RUN(choice_follows_the_words);
    CHECK_RUN(every_choice_is_equally_likely);
    CHECK_RUN(all_and_none);
    return CHECK_DONE();
}
