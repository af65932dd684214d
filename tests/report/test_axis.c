/* test_axis.c: ends and ticks of axes, where values lie on them, and how numbers are written. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "report/report_internal.h"

static void check_ticks(const lsi_axis *a, int n, const double *want)
{
    CHECK_EQ_INT(a->n_ticks, n);
    for (int i = 0; i < n && i < a->n_ticks; i++) CHECK_NEAR(a->tick[i], want[i], 1e-9 * (1 + fabs(want[i])));
}

static lsi_axis fit(ls_chart_scale scale, double lo, double hi, int wanted, bool round)
{
    return lsi_axis_fit(scale, (lsi_extent){lo, hi, false}, wanted, round, 0);
}

static void linear_axes(void)
{
    lsi_axis a = fit(LS_SCALE_FITTED, 0.13, 0.97, 5, true);
    check_ticks(&a, 6, (double[]){0, 0.2, 0.4, 0.6, 0.8, 1});
    CHECK_NEAR(a.lo, 0, 1e-12);
    CHECK_NEAR(a.hi, 1, 1e-12);

    a = fit(LS_SCALE_FITTED, 18960, 37000, 5, true);
    check_ticks(&a, 6, (double[]){15000, 20000, 25000, 30000, 35000, 40000});
    a = fit(LS_SCALE_FROM_ZERO, 18960, 37000, 5, true);
    CHECK_NEAR(a.lo, 0, 0);
    CHECK_NEAR(a.hi, 40000, 0);
    a = fit(LS_SCALE_FROM_ZERO, -3, 4, 7, true);
    CHECK_NEAR(a.lo, -3, 0);

    /* Without rounding the ends are the values, and ticks lie inside. */
    a = fit(LS_SCALE_FITTED, 0.5, 9.7, 5, false);
    CHECK_NEAR(a.lo, 0.5, 0);
    CHECK_NEAR(a.hi, 9.7, 0);
    check_ticks(&a, 4, (double[]){2, 4, 6, 8});
    /* Whole numbers have no ticks between them. */
    a = lsi_axis_fit(LS_SCALE_FITTED, (lsi_extent){1, 3, true}, 7, false, 0);
    check_ticks(&a, 3, (double[]){1, 2, 3});
}

static void logarithmic_axes(void)
{
    lsi_axis a = fit(LS_SCALE_LOG2, 1, 16, 7, false);
    check_ticks(&a, 5, (double[]){1, 2, 4, 8, 16});
    a.from = 100;
    a.to = 500;
    CHECK_NEAR(lsi_axis_at(&a, 4), 300, 1e-9);

    a = fit(LS_SCALE_LOG10, 0.004, 700, 5, true);
    check_ticks(&a, 7, (double[]){0.001, 0.01, 0.1, 1, 10, 100, 1000});
    a = fit(LS_SCALE_LOG10, 12, 450, 5, true);
    check_ticks(&a, 6, (double[]){10, 20, 50, 100, 200, 500});
    /* Many powers are shown as some of them. */
    a = fit(LS_SCALE_LOG2, 1, 1048576, 7, false);
    CHECK(a.n_ticks >= 6 && a.n_ticks <= 11);
    CHECK(!lsi_drawable(LS_SCALE_LOG2, 0) && !lsi_drawable(LS_SCALE_LOG10, -1) &&
          lsi_drawable(LS_SCALE_FITTED, -1));
    CHECK(!lsi_drawable(LS_SCALE_FITTED, NAN) && !lsi_drawable(LS_SCALE_FITTED, INFINITY));
}

/* Whatever the values, an axis has a length and ticks. */
static void degenerate_axes(void)
{
    static const double values[] = {0, 1, -5, 1e-30, -1e-30, 1e30, 1e299, -1e299, 0.1};

    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
        for (int scale = LS_SCALE_FITTED; scale <= LS_SCALE_LOG10; scale++) {
            if (!lsi_drawable((ls_chart_scale)scale, values[k])) continue;
            for (int round = 0; round < 2; round++) {
                const lsi_axis a = fit((ls_chart_scale)scale, values[k], values[k], 5, round);
                char buf[LSI_NUMBER_MAX];
                CHECK(a.hi > a.lo && a.n_ticks >= 1);
                CHECK(isfinite(lsi_axis_at(&a, values[k])));
                for (int i = 0; i < a.n_ticks; i++) CHECK(strlen(lsi_tick_text(&a, i, buf)) > 0);
            }
        }
    }
    for (int scale = LS_SCALE_FITTED; scale <= LS_SCALE_LOG10; scale++) {
        const lsi_axis a = fit((ls_chart_scale)scale, 1, 0, 5, true); /* of nothing */
        CHECK(a.hi > a.lo && a.n_ticks >= 2);
    }
}

/* Rounding is no climb: an axis is never much shorter than its values are exact, and its ticks stay short.
 */
static void rounding_is_flat(void)
{
    char buf[LSI_NUMBER_MAX];
    lsi_axis a = fit(LS_SCALE_FITTED, 0.0960000001, 0.0960000006, 5, true);

    CHECK(a.hi - a.lo > 0.01);
    a.from = 250;
    a.to = 0;
    CHECK(fabs(lsi_axis_at(&a, 0.0960000001) - lsi_axis_at(&a, 0.0960000006)) < 0.01);
    for (int i = 0; i < a.n_ticks; i++) CHECK(strlen(lsi_tick_text(&a, i, buf)) <= 6);
    a = fit(LS_SCALE_FITTED, -3.00001, -3, 5, true);
    CHECK(a.lo < -3.05 && a.hi > -2.95);
    /* What differs by more fills the axis, as do counts, which are exact. */
    a = fit(LS_SCALE_FITTED, 0.0960, 0.0961, 5, true);
    CHECK(a.hi - a.lo < 0.0003);
    a = lsi_axis_fit(LS_SCALE_FITTED, (lsi_extent){1000000, 1000005, true}, 5, false, 0);
    CHECK_NEAR(a.hi - a.lo, 5, 1e-6);
}

static void numbers(void)
{
    static const struct {
        double v;
        int digits;
        const char *want;
    } cases[] = {
        {0, 4, "0"},           {12345.6, 4, "12,346"}, {1234567, 4, "1,234,567"}, {-9876.5, 3, "-9,876"},
        {0.98765, 3, "0.988"}, {3e-5, 3, "3e-5"},      {1.5e-7, 3, "1.5e-7"},     {2.5e13, 3, "2.5e13"},
        {100, 3, "100"},       {99.96, 3, "100"}};
    char buf[LSI_NUMBER_MAX];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_EQ_STR(lsi_number_text(cases[i].v, cases[i].digits, buf), cases[i].want);

    lsi_axis a = fit(LS_SCALE_FROM_ZERO, 0, 62000, 5, true);
    CHECK_EQ_STR(lsi_tick_text(&a, 1, buf), "10,000");
    a = fit(LS_SCALE_FROM_ZERO, 0, 0.5, 5, true);
    CHECK_EQ_STR(lsi_tick_text(&a, 1, buf), "0.1");
    a = fit(LS_SCALE_FROM_ZERO, 0, 2.5e7, 5, true);
    CHECK_EQ_STR(lsi_tick_text(&a, 1, buf), "5 M");
    a = fit(LS_SCALE_LOG10, 1e-5, 10, 5, true);
    CHECK_EQ_STR(lsi_tick_text(&a, 0, buf), "1e-5");
}

int main(void)
{
    CHECK_RUN(linear_axes);
    CHECK_RUN(logarithmic_axes);
    CHECK_RUN(degenerate_axes);
    CHECK_RUN(rounding_is_flat);
    CHECK_RUN(numbers);
    return CHECK_DONE();
}
