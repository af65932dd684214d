/* test_periods.c: when periods are due, in every unit. */
#include "check.h"
#include "train/periods.h"

static bool due(ls_period p, int64_t s0, int64_t n0, int64_t s1, int64_t n1)
{
    return ls_period_due(p, 1000, (ls_moment){(double)s0, n0, 0}, (ls_moment){(double)s1, n1, 0});
}

static void steps_and_samples(void)
{
    const ls_period st = {5, LS_PERIOD_STEPS}, sa = {100, LS_PERIOD_SAMPLES}, none = {0, LS_PERIOD_NONE};

    CHECK(!due(st, 3, 0, 4, 0));
    CHECK(due(st, 4, 0, 5, 0));
    CHECK(!due(st, 5, 0, 6, 0));
    CHECK(!due(sa, 0, 0, 1, 64));
    CHECK(due(sa, 1, 64, 2, 128));
    CHECK(!due(none, 4, 0, 5, 0));
}

static void epochs_also_in_parts(void)
{
    const ls_period whole = {1, LS_PERIOD_EPOCHS}, tenth = {0.1, LS_PERIOD_EPOCHS},
                    three = {3, LS_PERIOD_EPOCHS};
    int n = 0;

    CHECK(!due(whole, 14, 896, 15, 960));
    CHECK(due(whole, 15, 960, 16, 1000));
    CHECK(!due(three, 15, 960, 16, 1000));
    CHECK(due(three, 47, 2960, 48, 3000));
    for (int64_t i = 0; i < 100; i++) n += due(tenth, i, i * 10, i + 1, (i + 1) * 10);
    CHECK_EQ_INT(n, 10);
}

static void minutes_since_the_last_time(void)
{
    const ls_period p = {2, LS_PERIOD_MINUTES};

    CHECK(!ls_period_due(p, 10, (ls_moment){0, 0, 1}, (ls_moment){5, 5, 2.9}));
    CHECK(ls_period_due(p, 10, (ls_moment){0, 0, 1}, (ls_moment){5, 5, 3}));
}

static void a_time_since_the_beginning(void)
{
    const ls_moment begun = {10, 640, 3}, now = {12, 768, 4};

    CHECK(ls_period_over((ls_period){2, LS_PERIOD_STEPS}, 128, begun, now));
    CHECK(!ls_period_over((ls_period){3, LS_PERIOD_STEPS}, 128, begun, now));
    CHECK(ls_period_over((ls_period){128, LS_PERIOD_SAMPLES}, 128, begun, now));
    CHECK(!ls_period_over((ls_period){129, LS_PERIOD_SAMPLES}, 128, begun, now));
    CHECK(ls_period_over((ls_period){1, LS_PERIOD_EPOCHS}, 128, begun, now));
    CHECK(!ls_period_over((ls_period){1.5, LS_PERIOD_EPOCHS}, 128, begun, now));
    CHECK(ls_period_over((ls_period){1, LS_PERIOD_MINUTES}, 128, begun, now));
    CHECK(!ls_period_over((ls_period){2, LS_PERIOD_MINUTES}, 128, begun, now));
    CHECK(!ls_period_over((ls_period){0, LS_PERIOD_NONE}, 128, begun, now));
}

static const ls_ruler ruler = {7500, 64}; /* 118 steps, the last of 12 samples */

static void lengths_in_steps(void)
{
    CHECK_EQ_INT(ls_period_steps((ls_period){3, LS_PERIOD_EPOCHS}, &ruler), 3 * 118);
    CHECK_EQ_INT(ls_period_steps((ls_period){500, LS_PERIOD_STEPS}, &ruler), 500);
    CHECK_EQ_INT(ls_period_steps((ls_period){65, LS_PERIOD_SAMPLES}, &ruler), 2);
    CHECK_EQ_INT(ls_period_steps((ls_period){0, LS_PERIOD_NONE}, &ruler), 0);
    for (int unit = 0; unit < 3; unit++) { /* more than an integer holds */
        static const ls_period_unit units[] = {LS_PERIOD_EPOCHS, LS_PERIOD_STEPS, LS_PERIOD_SAMPLES};
        CHECK_EQ_INT(ls_period_steps((ls_period){1e30, units[unit]}, &ruler), 1000000000000000);
    }
    CHECK_EQ_INT(ls_period_steps((ls_period){1, LS_PERIOD_MINUTES}, &ruler), -1);
}

/* A run of the ruler's own batch has made as many steps as the ruler says, short last ones included, and is
 * after so many where the ruler says. */
static void samples_seen_are_steps(void)
{
    int64_t seen = 0;

    for (int step = 0; step < 3 * 118 + 5; step++) {
        const int64_t left = 7500 - seen % 7500;
        CHECK(ls_ruler_steps(&ruler, seen) == step);
        CHECK_EQ_INT(ls_ruler_samples(&ruler, step), seen);
        CHECK_EQ_INT(ls_ruler_updates(&ruler, 0, seen, 64), step);
        seen += left < 64 ? left : 64;
    }
    CHECK(ls_ruler_steps(&ruler, 7500 + 96) == 118 + 1.5);
    CHECK_EQ_INT(ls_ruler_samples(&ruler, 118 + 1.5), 7500 + 96);
}

/* Updates of any size from anywhere: as many as a loop over the epochs' batches makes. */
static void updates_that_are_left(void)
{
    const ls_ruler small = {150, 16};

    for (int64_t update = 1; update <= 150; update += 13)
        for (int64_t from = 0; from < 320; from += 9)
            for (int64_t to = 0; to < 470; to += 47) {
                int64_t n = 0;
                for (int64_t at = from; at < to; n++) at += 150 - at % 150 < update ? 150 - at % 150 : update;
                CHECK_EQ_INT(ls_ruler_updates(&small, from, to, update), n);
            }
}

int main(void)
{
    CHECK_RUN(steps_and_samples);
    CHECK_RUN(epochs_also_in_parts);
    CHECK_RUN(minutes_since_the_last_time);
    CHECK_RUN(a_time_since_the_beginning);
    CHECK_RUN(lengths_in_steps);
    CHECK_RUN(samples_seen_are_steps);
    CHECK_RUN(updates_that_are_left);
    return CHECK_DONE();
}
