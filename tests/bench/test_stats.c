/* test_stats.c: quantiles of known series, and that the probe measures something. */
#include <math.h>

#include "bench/probe.h"
#include "bench/stats.h"
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

/* No machine that runs this is slower than a million operations or bytes a second, or faster than 10^15. */
static void probe_is_plausible(void)
{
    ls_probe p;
    ls_err err = {0};

    REQUIRE_OK(ls_probe_machine(1, &p, &err), &err);
    CHECK(p.flop_s > 1e6 && p.flop_s < 1e15);
    CHECK(p.read_b_s > 1e6 && p.read_b_s < 1e15);
    CHECK(p.isa != NULL);
}

int main(void)
{
    CHECK_RUN(quantiles_of_known_series);
    CHECK_RUN(spread_sorts);
    CHECK_RUN(probe_is_plausible);
    return CHECK_DONE();
}
