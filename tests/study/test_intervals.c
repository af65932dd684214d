/* test_intervals.c: the statistics of studies: known quantiles, and that an interval of 95 % holds the truth
 * in about 95 of 100 simulated studies, which a wrong formula does not. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "bench/student.h"
#include "check.h"
#include "study/study.h"

/* -- numbers ----------------------------------------------------------------------------------------------
 */

static uint64_t drawn; /* every draw of the test has its own number */

static double normal(void)
{
    static const ls_rng_key key = {.seed_lo = 20240607};
    const uint32_t stream = ls_rng_stream("test_intervals");
    const uint32_t a = ls_rng_word(&key, stream, 0, 2 * drawn),
                   b = ls_rng_word(&key, stream, 0, 2 * drawn + 1);

    drawn++;
    return ls_rng_normal(a, b, 0);
}

/* From tables of the distribution. */
static void student_quantiles(void)
{
    static const struct {
        double p, df, t;
    } known[] = {{0.975, 1, 12.70620474},  {0.975, 2, 4.30265273}, {0.975, 3, 3.18244631},
                 {0.975, 4, 2.77644511},   {0.975, 7, 2.36462425}, {0.975, 30, 2.04227246},
                 {0.975, 1e7, 1.95996398}, {0.95, 1, 6.31375151},  {0.995, 10, 3.16927267},
                 {0.84, 5, 1.10366755},    {0.025, 3, -3.18244631}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        CHECK_NEAR(ls_student_quantile(known[i].p, known[i].df), known[i].t, 2e-6 * fabs(known[i].t));
    CHECK_NEAR(ls_student_quantile(0.5, 3), 0, 1e-7);
    /* One degree of freedom is Cauchy's distribution. */
    CHECK_NEAR(ls_student_below(1, 1), 0.75, 1e-12);
    CHECK_NEAR(ls_student_below(-2, 1), 0.5 - atan(2) / 3.14159265358979324, 1e-12);
}

/* Series of uniform numbers are what the percentiles say they are: the pool's are those of all numbers. */
static void pool_of_known_series(void)
{
    enum { N = 2001 };
    static double all[3 * N];
    ls_spread of[3], pooled, want;

    for (int k = 0; k < 3; k++) {
        double one[N];
        for (int i = 0; i < N; i++) one[i] = all[k * N + i] = 10 + 0.4 * k + 3.0 * i / (N - 1);
        of[k] = ls_spread_of(one, N);
    }
    pooled = ls_study_pool(of, 3);
    want = ls_spread_of(all, 3 * N);
    CHECK_NEAR(pooled.p16, want.p16, 2e-3);
    CHECK_NEAR(pooled.p50, want.p50, 2e-3);
    CHECK_NEAR(pooled.p84, want.p84, 2e-3);
    pooled = ls_study_pool(of, 1);
    CHECK_NEAR(pooled.p16, of[0].p16, 1e-9);
    CHECK_NEAR(pooled.p84, of[0].p84, 1e-9);
    of[0] = of[1] = (ls_spread){5, 5, 5}; /* no spread at all */
    CHECK_NEAR(ls_study_pool(of, 2).p50, 5, 1e-9);
    of[1] = (ls_spread){7, 7, 7};
    CHECK_NEAR(ls_study_pool(of, 2).p16, 5, 1e-9);
    CHECK_NEAR(ls_study_pool(of, 2).p84, 7, 1e-9);
}

/* -- simulated studies ------------------------------------------------------------------------------------
 */

enum { COUNTS = 2, REPEATS_MAX = 8, STUDIES = 1500 };

#define TRUTH 0.87 /* efficiency of 8 ranks against 2 */
#define NOISE 0.04 /* of a point, relative */
#define DRIFT 0.25 /* of the machine from repeat to repeat, the same for all points of one */

static ls_study study_of(int repeats)
{
    return (ls_study){.counts = {2, 8}, .n_counts = COUNTS, .repeats = repeats, .threads = 1, .cores = 64};
}

static void simulate(int repeats, ls_study_point *of)
{
    for (int k = 0; k < repeats; k++) {
        const double drift = DRIFT * normal() - 0.1 * k;
        for (int i = 0; i < COUNTS; i++) {
            const int ranks = i == 0 ? 2 : 8;
            const double rate = 1000 * ranks * (i == 0 ? 1 : TRUTH) * exp(drift + NOISE * normal());
            of[i * repeats + k] = (ls_study_point){.ranks = ranks,
                                                   .threads = 1,
                                                   .steps = 100,
                                                   .rate = {0.99 * rate, rate, 1.01 * rate},
                                                   .step_s = {1, 1, 1},
                                                   .mean_rate = rate,
                                                   .error_rate = NOISE * rate / 1.2533};
        }
    }
}

static ls_interval efficiency(int repeats, ls_study_point *of)
{
    static bool there[COUNTS * REPEATS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const ls_study s = study_of(repeats);
    const ls_study_points p = {.of = of, .there = there, .n_there = COUNTS * repeats};
    ls_study_results r;

    ls_study_judge(&s, &p, &r);
    return r.rows[1].efficiency;
}

/* As if the repeats of the two counts had nothing to do with each other. */
static ls_interval unpaired(int repeats, const ls_study_point *of)
{
    double mean[COUNTS] = {0}, variance = 0, mid, reach;

    for (int i = 0; i < COUNTS; i++) {
        double squares = 0;
        for (int k = 0; k < repeats; k++)
            mean[i] += log(of[i * repeats + k].rate.p50 / (i == 0 ? 2 : 8)) / repeats;
        for (int k = 0; k < repeats; k++)
            squares += pow(log(of[i * repeats + k].rate.p50 / (i == 0 ? 2 : 8)) - mean[i], 2);
        variance += squares / (repeats - 1) / repeats;
    }
    mid = mean[1] - mean[0];
    reach = ls_student_quantile(0.975, 2 * repeats - 2) * sqrt(variance);
    return (ls_interval){exp(mid - reach), exp(mid), exp(mid + reach)};
}

/* As if two repeats were as good as a thousand. */
static ls_interval as_normal(const ls_study_point *of)
{
    const double a = log(of[2].rate.p50 / of[0].rate.p50 / 4), b = log(of[3].rate.p50 / of[1].rate.p50 / 4);
    const double mid = 0.5 * (a + b), reach = 1.96 * 0.5 * fabs(a - b);

    return (ls_interval){exp(mid - reach), exp(mid), exp(mid + reach)};
}

static bool holds(ls_interval i)
{
    return i.lo <= TRUTH && TRUTH <= i.hi;
}

static bool is_credible(double covered)
{
    return covered >= 0.90 && covered <= 0.97;
}

static void interval_holds_the_truth(void)
{
    static const int repeats[] = {2, 3, 5, 8};

    for (size_t i = 0; i < sizeof repeats / sizeof repeats[0]; i++) {
        int right = 0;
        for (int n = 0; n < STUDIES; n++) {
            ls_study_point of[COUNTS * REPEATS_MAX];
            simulate(repeats[i], of);
            right += holds(efficiency(repeats[i], of));
        }
        printf("%d repeats: %d of %d intervals hold the truth\n", repeats[i], right, STUDIES);
        CHECK(is_credible((double)right / STUDIES));
    }
}

/* The check above can fail: two formulas that look right do not pass it. */
static void wrong_formulas_are_found(void)
{
    int loose = 0, tight = 0;

    for (int n = 0; n < STUDIES; n++) {
        ls_study_point of[COUNTS * REPEATS_MAX];
        simulate(5, of);
        loose += holds(unpaired(5, of));
        simulate(2, of);
        tight += holds(as_normal(of));
    }
    printf("unpaired: %d of %d, normal with two repeats: %d\n", loose, STUDIES, tight);
    CHECK(!is_credible((double)loose / STUDIES));
    CHECK(!is_credible((double)tight / STUDIES));
}

/* One repeat: the steps of the two runs are all there is.  Their times are drawn, and everything follows from
 * them as a benchmark would say it. */
static void single_repeat(void)
{
    enum { STEPS = 150 };
    int right = 0;

    for (int n = 0; n < STUDIES; n++) {
        ls_study_point of[COUNTS];
        for (int i = 0; i < COUNTS; i++) {
            const int ranks = i == 0 ? 2 : 8;
            double rate[STEPS], mean = 0, squares = 0;
            for (int k = 0; k < STEPS; k++) {
                rate[k] = 1000 * ranks * (i == 0 ? 1 : TRUTH) * exp(0.1 * normal());
                mean += rate[k] / STEPS;
            }
            for (int k = 0; k < STEPS; k++) squares += (rate[k] - mean) * (rate[k] - mean);
            of[i] =
                (ls_study_point){.ranks = ranks,
                                 .threads = 1,
                                 .steps = STEPS,
                                 .rate = ls_spread_of(rate, STEPS),
                                 .step_s = {1, 1, 1},
                                 .mean_rate = n % 2 == 0 ? mean : NAN, /* without it the spread stands in */
                                 .error_rate = n % 2 == 0 ? sqrt(squares / (STEPS - 1) / STEPS) : NAN};
        }
        right += holds(efficiency(1, of));
    }
    printf("one repeat: %d of %d intervals hold the truth\n", right, STUDIES);
    CHECK(is_credible((double)right / STUDIES));
}

static void ratios_by_hand(void)
{
    const double two[] = {log(0.8), log(0.9)};
    const ls_interval i = ls_interval_mean(ls_mean_of(two, 2)),
                      once = ls_study_ratio_once(log(0.5), 0.03, 0.04);
    const double mid = 0.5 * (two[0] + two[1]), error = 0.5 * (two[1] - two[0]);

    CHECK_NEAR(log(i.mid), mid, 1e-12);
    CHECK_NEAR(log(i.hi), mid + 12.7062047 * error, 1e-6);
    CHECK_NEAR(log(i.lo), mid - 12.7062047 * error, 1e-6);
    CHECK_NEAR(log(once.hi), log(0.5) + 1.95996398 * 0.05, 1e-6);
    CHECK(isnan(ls_interval_mean(ls_mean_of(two, 1)).lo));
    CHECK_NEAR(ls_interval_mean(ls_mean_of(two, 1)).mid, 0.8, 1e-12);
}

int main(void)
{
    CHECK_RUN(student_quantiles);
    CHECK_RUN(pool_of_known_series);
    CHECK_RUN(ratios_by_hand);
    CHECK_RUN(interval_holds_the_truth);
    CHECK_RUN(wrong_formulas_are_found);
    CHECK_RUN(single_repeat);
    return CHECK_DONE();
}
