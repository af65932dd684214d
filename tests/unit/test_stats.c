/* test_stats.c: quantiles, means and errors of known series, and that the probe measures something. */
#include <math.h>
#include <stdint.h>

#include "base/stats.h"
#include "bench/probe.h"
#include "check.h"

static void quantiles_of_known_series(void)
{
    const double ten[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, one[] = {7}, two[] = {1, 3};

    /* As numpy.quantile gives them. */
    CHECK_NEAR(ls_quantile_sorted(ten, 10, 0), 1, 0);
    CHECK_NEAR(ls_quantile_sorted(ten, 10, 1), 10, 0);
    CHECK_NEAR(ls_quantile_sorted(ten, 10, 0.5), 5.5, 1e-12);
    CHECK_NEAR(ls_quantile_sorted(ten, 10, 0.16), 2.44, 1e-12);
    CHECK_NEAR(ls_quantile_sorted(ten, 10, 0.84), 8.56, 1e-12);
    CHECK_NEAR(ls_quantile_sorted(one, 1, 0.3), 7, 0);
    CHECK_NEAR(ls_quantile_sorted(two, 2, 0.25), 1.5, 1e-12);
}

static void spread_sorts(void)
{
    double x[101];
    ls_spread s, rate;

    for (int i = 0; i <= 100; i++) x[i] = (i * 37) % 101;
    s = ls_spread_of(x, 101);
    CHECK_NEAR(s.p16, 16, 1e-12);
    CHECK_NEAR(s.p50, 50, 1e-12);
    CHECK_NEAR(s.p84, 84, 1e-12);
    /* The slow end of times is the low end of rates. */
    rate = ls_spread_rate(s, 84);
    CHECK_NEAR(rate.p16, 1.0, 1e-12);
    CHECK_NEAR(rate.p50, 84.0 / 50, 1e-12);
    CHECK_NEAR(rate.p84, 84.0 / 16, 1e-12);
}

static void means_of_known_series(void)
{
    const double x[] = {1, 2, 3, 4, 5}, one[] = {3};
    double saw[100];
    ls_estimate e = ls_mean_of(x, 5), rate;

    CHECK_NEAR(e.mean, 3, 1e-12);
    CHECK_NEAR(e.error, sqrt(2.5 / 5), 1e-12);
    CHECK_EQ_INT(e.batches, 5);
    e = ls_batch_means(x, 5); /* batches of one */
    CHECK_NEAR(e.error, sqrt(2.5 / 5), 1e-12);
    e = ls_batch_means(x, 3);
    CHECK_EQ_INT(e.batches, 3);
    e = ls_batch_means(one, 1);
    CHECK_NEAR(e.mean, 3, 0);
    CHECK(isnan(e.error));
    /* Ten batches whose means are 0.5 .. 9.5 with a spread inside that must not count. */
    for (int i = 0; i < 100; i++) saw[i] = i / 10 + (i % 2);
    e = ls_batch_means(saw, 100);
    CHECK_EQ_INT(e.batches, 10);
    CHECK_NEAR(e.mean, 5, 1e-12);
    CHECK_NEAR(e.error, sqrt(82.5 / 9 / 10), 1e-12);
    rate = ls_estimate_rate(e, 20);
    CHECK_NEAR(rate.mean, 4, 1e-12);
    CHECK_NEAR(rate.error / rate.mean, e.error / e.mean, 1e-12);
    CHECK_EQ_INT(rate.batches, 10);
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* A series in which a number is 0.7 times the one before plus noise: the true error of its mean is that of
 * independent numbers times sqrt(1.7 / 0.3) = 2.38.  Over many series the estimate must come near it, and
 * near the spread of the means themselves. */
static void errors_of_correlated_series(void)
{
    enum { SERIES = 400, N = 2000 };
    static double x[N], means[SERIES];
    uint64_t state = 1;
    double estimate = 0, naive = 0, truth;

    for (int s = 0; s < SERIES; s++) {
        double at = 0;
        ls_estimate e;
        for (int i = -100; i < N; i++) {
            at = 0.7 * at + uniform(&state) - 0.5;
            if (i >= 0) x[i] = 10 + at;
        }
        e = ls_batch_means(x, N);
        means[s] = e.mean;
        estimate += e.error / SERIES;
        naive += ls_mean_of(x, N).error / SERIES;
    }
    truth = ls_mean_of(means, SERIES).error * sqrt(SERIES);
    CHECK_NEAR(estimate / truth, 1, 0.12);
    CHECK_NEAR(truth / naive, 2.38, 0.25);
}

/* No machine that runs this is slower than a million operations or bytes a second, or faster than 10^15. */
static void probe_is_plausible(void)
{
    ls_probe p;
    ls_err err = {0};

    REQUIRE_OK(ls_probe_machine(1, NULL, &p, &err), &err);
    CHECK(p.flop_s > 1e6 && p.flop_s < 1e15);
    CHECK(p.read_b_s > 1e6 && p.read_b_s < 1e15);
    CHECK(p.copy_b_s > 1e6 && p.copy_b_s < 1e15);
    CHECK(p.isa != NULL);
}

int main(void)
{
    CHECK_RUN(quantiles_of_known_series);
    CHECK_RUN(spread_sorts);
    CHECK_RUN(means_of_known_series);
    CHECK_RUN(errors_of_correlated_series);
    CHECK_RUN(probe_is_plausible);
    return CHECK_DONE();
}
