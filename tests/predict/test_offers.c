/* test_offers.c: limits, the front of cost against time, and where adding ranks stops paying; by hand. */
#include <math.h>

#include "check.h"
#include "predict/offers.h"

enum { N = 6 };

/* 1, 2, 4, 8 machines on one line, each doubling worth less; another line of 1 and 4. */
static void fill(ls_offer o[N])
{
    static const struct {
        int line, nodes;
        double hours;
    } rows[N] = {{0, 1, 100}, {0, 2, 50}, {0, 4, 30}, {0, 8, 25}, {1, 1, 110}, {1, 4, 28}};

    for (int i = 0; i < N; i++) {
        const double s = 3600 * rows[i].hours;
        o[i] = (ls_offer){.line = rows[i].line,
                          .ranks = rows[i].nodes,
                          .nodes = rows[i].nodes,
                          .seconds = {0.9 * s, s, 1.2 * s},
                          .bytes = 1000.0 / rows[i].nodes};
        ls_offer_price(&o[i], 2);
    }
}

static void money_is_machines_times_hours(void)
{
    ls_offer o[N];

    fill(o);
    CHECK_NEAR(o[2].cost.mid, 4 * 30 * 2, 1e-9);
    CHECK_NEAR(o[2].cost.lo, 4 * 27 * 2, 1e-9);
    CHECK_NEAR(o[2].cost.hi, 4 * 36 * 2, 1e-9);
}

static void bands_multiply(void)
{
    const ls_interval a = {5, 10, 20}, sure = {3, 3, 3}, b = {1, 2, 4};
    const ls_interval scaled = ls_interval_times(a, sure), both = ls_interval_times(a, b);

    CHECK_NEAR(scaled.lo, 15, 1e-9);
    CHECK_NEAR(scaled.mid, 30, 1e-9);
    CHECK_NEAR(scaled.hi, 60, 1e-9);
    CHECK_NEAR(both.lo, 20 * pow(2, -sqrt(2)), 1e-9);
    CHECK_NEAR(both.hi, 20 * pow(2, sqrt(2)), 1e-9);
    CHECK(ls_interval_overlaps(a, (ls_interval){20, 21, 22}));
    CHECK(!ls_interval_overlaps(a, (ls_interval){20.1, 21, 22}));
}

/* Costs are 200, 200, 240, 400, 220, 224. */
static void front_without_limits(void)
{
    ls_offer o[N];

    fill(o);
    ls_offers_judge(o, N, &(ls_limits){{0}});
    CHECK_EQ_INT(ls_offers_cheapest(o, N), 1); /* as cheap as one machine, and faster */
    CHECK_EQ_INT(ls_offers_fastest(o, N), 3);
    for (int i = 0; i < N; i++) CHECK_EQ_INT(o[i].front, i == 1 || i == 3 || i == 5);
}

static void limits_hold_for_the_middle(void)
{
    const ls_limits limits = {{[LS_LIMIT_BUDGET] = 240, [LS_LIMIT_DEADLINE] = 40 * 3600.0}};
    ls_offer o[N];
    double excess;

    fill(o);
    ls_offers_judge(o, N, &limits);
    CHECK_EQ_INT(o[0].beyond, 1 << LS_LIMIT_DEADLINE);
    CHECK_EQ_INT(o[2].beyond, 0);
    CHECK_EQ_INT(o[2].may, 1 << LS_LIMIT_BUDGET); /* up to 288; 36 hours at most */
    CHECK_EQ_INT(o[3].beyond, 1 << LS_LIMIT_BUDGET);
    CHECK_EQ_INT(ls_offers_cheapest(o, N), 5);
    CHECK_EQ_INT(ls_offers_fastest(o, N), 5);
    CHECK(!o[2].front && o[5].front);
    CHECK_EQ_INT(ls_offers_nearest(o, N, &limits, &excess), 1); /* 50 of 40 hours */
    CHECK_NEAR(excess, 1.25, 1e-9);
}

static void nothing_fits(void)
{
    const ls_limits limits = {{[LS_LIMIT_MEMORY] = 100}};
    ls_offer o[N];
    double excess;

    fill(o);
    ls_offers_judge(o, N, &limits);
    CHECK_EQ_INT(ls_offers_cheapest(o, N), -1);
    CHECK_EQ_INT(ls_offers_fastest(o, N), -1);
    CHECK_EQ_INT(ls_offers_nearest(o, N, &limits, &excess), 3);
    CHECK_NEAR(excess, 1.25, 1e-9);
    for (int i = 0; i < N; i++) CHECK(!o[i].front);
}

/* 50 / 100 and 30 / 50 pay; 25 / 30 is more than 3/4. */
static void doubling_stops_paying(void)
{
    ls_offer o[N];
    ls_paying p;

    fill(o);
    CHECK(ls_offers_pay(o, N, 0, &p));
    CHECK_EQ_INT(p.last, 2);
    CHECK_EQ_INT(p.next, 3);
    CHECK_NEAR(p.seconds, 25.0 / 30, 1e-9);
    CHECK_NEAR(p.cost, 400.0 / 240, 1e-9);
    /* Two doublings at once: 28 / 110 is less than (3/4)^2. */
    CHECK(ls_offers_pay(o, N, 1, &p));
    CHECK_EQ_INT(p.last, 5);
    CHECK_EQ_INT(p.next, -1);
    CHECK(!ls_offers_pay(o, 5, 1, &p));
    /* On as many machines it pays to be faster. */
    o[1].nodes = 1;
    CHECK(ls_offers_pay(o, 2, 0, &p));
    CHECK_EQ_INT(p.next, -1);
    o[1].seconds.mid = o[0].seconds.mid;
    CHECK(ls_offers_pay(o, 2, 0, &p));
    CHECK_EQ_INT(p.next, 1);
}

int main(void)
{
    CHECK_RUN(money_is_machines_times_hours);
    CHECK_RUN(bands_multiply);
    CHECK_RUN(front_without_limits);
    CHECK_RUN(limits_hold_for_the_middle);
    CHECK_RUN(nothing_fits);
    CHECK_RUN(doubling_stops_paying);
    return CHECK_DONE();
}
