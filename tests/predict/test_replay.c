/* test_replay.c: programs that are worked out by hand, one rank and many, without jitter and with it. */
#include <math.h>
#include <stdio.h>

#include "base/stats.h"
#include "check.h"
#include "predict/replay_internal.h"

enum { DEEDS = 16, TRANSFERS = 4 };

/* "1 s0 1 w0": seconds, starts and waits. */
typedef struct small_program {
    ls_deed deeds[DEEDS];
    ls_program_transfer transfers[TRANSFERS];
    ls_transfer_cost costs[TRANSFERS];
    bool inside[TRANSFERS];
    ls_program p;
} small_program;

static void begin(small_program *s, int transfers, bool own_exchange)
{
    *s = (small_program){.p = {.own_exchange = own_exchange, .n_transfers = transfers}};
    s->p.deeds = s->deeds;
    s->p.transfers = s->transfers;
}

static void add(small_program *s, ls_deed_kind kind, double seconds, int32_t transfer)
{
    s->deeds[s->p.n_deeds++] = (ls_deed){.kind = kind, .seconds = seconds, .transfer = transfer};
}

static lsi_replay_args args_of(const small_program *s, int32_t copies)
{
    return (lsi_replay_args){.program = &s->p,
                             .costs = s->costs,
                             .inside = s->inside,
                             .ranks = 8,
                             .here = 1,
                             .copies = copies,
                             .crowding = 1,
                             .settle = 3,
                             .steps = 4};
}

/* What a step takes; all of many equal ranks take the same. */
static lsi_replay step_of(const small_program *s, double *seconds)
{
    double one[4], many[4];
    lsi_replay r = {.step_s = one}, all = {.step_s = many};
    const lsi_replay_args a = args_of(s, 1), b = args_of(s, 8);
    ls_err err = {0};

    REQUIRE_OK(lsi_replay_run(&a, &r, &err), &err);
    REQUIRE_OK(lsi_replay_run(&b, &all, &err), &err);
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(one[i], one[0], 1e-12);
        CHECK_NEAR(one[i], many[i], 1e-12);
    }
    CHECK_NEAR(r.compute_s, all.compute_s, 1e-12);
    CHECK_NEAR(r.core_s, all.core_s, 1e-12);
    CHECK_EQ_INT(all.visits, 7 * 8 * (s->p.n_deeds + 1));
    *seconds = one[0];
    return r;
}

static void two_buckets(small_program *s, double first, double second)
{
    begin(s, 2, false);
    s->costs[0].seconds = first;
    s->costs[1].seconds = second;
    add(s, LS_DEED_RUN, 1, -1);
    add(s, LS_DEED_START, 0, 0);
    add(s, LS_DEED_RUN, 1, -1);
    add(s, LS_DEED_START, 0, 1);
    add(s, LS_DEED_RUN, 0.5, -1);
    add(s, LS_DEED_WAIT, 0, 0);
    add(s, LS_DEED_RUN, 0.25, -1);
    add(s, LS_DEED_WAIT, 0, 1);
    add(s, LS_DEED_RUN, 0.25, -1);
}

static void buckets_follow_one_another(void)
{
    small_program s;
    double seconds;

    two_buckets(&s, 2, 1); /* the first from 1 to 3, the second from 3 to 4 */
    CHECK_NEAR(step_of(&s, &seconds).compute_s, 3, 1e-12);
    CHECK_NEAR(seconds, 4.25, 1e-12);
    two_buckets(&s, 0.1, 0.1); /* computing is the bound: all is hidden */
    step_of(&s, &seconds);
    CHECK_NEAR(seconds, 3, 1e-12);
    two_buckets(&s, 10, 5); /* the wire is: what comes before the first bucket and after the last adds up */
    step_of(&s, &seconds);
    CHECK_NEAR(seconds, 1 + 10 + 5 + 0.25, 1e-12);
    two_buckets(&s, 2, 1); /* not on the same links: both at once */
    s.inside[1] = true;
    step_of(&s, &seconds);
    CHECK_NEAR(seconds, 3.5, 1e-12); /* wait to 3, then 0.25 and 0.25 */
}

static void nothing_is_hidden_where_it_is_waited_for(void)
{
    small_program s;
    double seconds;

    begin(&s, 1, true);
    s.costs[0] = (ls_transfer_cost){.seconds = 2, .core_s = 1};
    add(&s, LS_DEED_RUN, 1, -1);
    add(&s, LS_DEED_START, 0, 0);
    add(&s, LS_DEED_WAIT, 0, 0);
    add(&s, LS_DEED_RUN, 0.5, -1);
    CHECK_NEAR(step_of(&s, &seconds).core_s, 0, 1e-12); /* while one waits the processor is free */
    CHECK_NEAR(seconds, 3.5, 1e-12);
}

/* The last sums travel first, and are needed first: the others are hidden behind the next forward pass. */
static void carried_sums_hide_behind_the_next_step(void)
{
    small_program s;
    double seconds;

    begin(&s, 2, false);
    s.costs[0].seconds = 1;
    s.costs[1].seconds = 2;
    add(&s, LS_DEED_WAIT, 0, 0);
    add(&s, LS_DEED_RUN, 1, -1);
    add(&s, LS_DEED_WAIT, 0, 1);
    add(&s, LS_DEED_RUN, 2, -1);
    add(&s, LS_DEED_START, 0, 1);
    add(&s, LS_DEED_RUN, 1, -1);
    add(&s, LS_DEED_START, 0, 0);
    step_of(&s, &seconds);
    CHECK_NEAR(seconds, 6, 1e-12); /* one after the other: the first is there two seconds after the step */
    s.transfers[0].carried = s.transfers[1].carried = true;
    step_of(&s, &seconds);
    CHECK_NEAR(seconds, 5, 1e-12); /* newest first: a second after it, and the other one a second later */
}

/* A byte takes time of a core: what is computed meanwhile takes longer. */
static void exchanges_take_the_processor(void)
{
    small_program s;
    double seconds;
    lsi_replay r;

    begin(&s, 1, true);
    s.costs[0] = (ls_transfer_cost){.seconds = 2, .core_s = 1};
    add(&s, LS_DEED_RUN, 1, -1);
    add(&s, LS_DEED_START, 0, 0);
    add(&s, LS_DEED_RUN, 3, -1);
    add(&s, LS_DEED_WAIT, 0, 0);
    r = step_of(&s, &seconds);
    CHECK_NEAR(seconds, 5, 1e-12); /* from 1 to 3 at half its speed, then 2 more */
    CHECK_NEAR(r.compute_s, 4, 1e-12);
    CHECK_NEAR(r.core_s, 1, 1e-12);
    s.costs[0].core_s = 2; /* all of it: computing stands still */
    r = step_of(&s, &seconds);
    CHECK_NEAR(seconds, 6, 1e-12);
    CHECK_NEAR(r.core_s, 2, 1e-12);
    s.p.own_exchange = false; /* another processor's */
    r = step_of(&s, &seconds);
    CHECK_NEAR(seconds, 4, 1e-12);
    CHECK_NEAR(r.core_s, 0, 1e-12);
}

static void what_is_divided_becomes_less(void)
{
    small_program s;
    double seconds;

    begin(&s, 0, false);
    add(&s, LS_DEED_RUN, 1, -1);
    s.deeds[0].owned_s[LS_SCOPE_ALL] = 8;
    s.p.rest_s = 0.5;
    step_of(&s, &seconds);
    CHECK_NEAR(seconds, 2.5, 1e-12);
}

/* -- jitter -----------------------------------------------------------------------------------------------
 */

/* Percentiles with a long tail on one side. */
static void fill_jitter(double jitter[LS_JITTER_N])
{
    for (int i = 0; i < LS_JITTER_N; i++) {
        const double q = i / 100.0;
        jitter[i] = 0.9 + 0.2 * q + 0.8 * q * q * q * q * q * q * q * q;
    }
    for (int i = 0; i < LS_JITTER_N; i++) jitter[i] /= 1.003125; /* what it is at the median */
}

static void draws_have_the_percentiles(void)
{
    enum { N = 20000 };
    static double x[N];
    double jitter[LS_JITTER_N];

    fill_jitter(jitter);
    for (int i = 0; i < N; i++) x[i] = lsi_replay_draw(jitter, 7, 3, (uint32_t)i);
    CHECK_NEAR(x[5], lsi_replay_draw(jitter, 7, 3, 5), 0); /* the same again */
    CHECK(x[5] != lsi_replay_draw(jitter, 8, 3, 5) && x[5] != lsi_replay_draw(jitter, 7, 4, 5));
    ls_spread_of(x, N);
    for (int i = 1; i < 100; i += 7)
        CHECK_NEAR(ls_quantile_sorted(x, N, i / 100.0), jitter[i], 0.02 * jitter[i]);
}

/* The mean of the largest of n draws: the integral of x over F^n, where F is linear between percentiles. */
static double mean_of_largest(const double *jitter, int n)
{
    double sum = 0, before = 0;

    for (int i = 1; i <= 100000; i++) {
        const double f = i / 100000.0, at = (f - 0.5e-5) * 100, after = pow(f, n);
        const int k = (int)at;
        sum += (jitter[k] + (jitter[k + 1] - jitter[k]) * (at - k)) * (after - before);
        before = after;
    }
    return sum;
}

static void ranks_wait_for_the_slowest(void)
{
    enum { STEPS = 2000 };
    static double took[STEPS];
    static const int32_t ranks[] = {1, 2, 8, 64};
    double jitter[LS_JITTER_N], last = 0;
    small_program s;

    fill_jitter(jitter);
    begin(&s, 1, false);
    add(&s, LS_DEED_RUN, 1, -1);
    add(&s, LS_DEED_START, 0, 0);
    add(&s, LS_DEED_WAIT, 0, 0);
    for (size_t k = 0; k < sizeof ranks / sizeof ranks[0]; k++) {
        lsi_replay_args a = args_of(&s, ranks[k]);
        lsi_replay r = {.step_s = took};
        ls_estimate e;
        ls_err err = {0};
        a.jitter = jitter;
        a.seed = 11;
        a.steps = STEPS;
        REQUIRE_OK(lsi_replay_run(&a, &r, &err), &err);
        e = ls_mean_of(took, STEPS);
        CHECK_NEAR(e.mean, mean_of_largest(jitter, ranks[k]), 4 * e.error);
        CHECK(e.mean > last);
        last = e.mean;
    }
}

/* Who is slow in one step may be fast in the next: with time between, ranks need not wait for each other's
 * every step. */
static void slack_hides_jitter(void)
{
    enum { STEPS = 400 };
    static double tight[STEPS], loose[STEPS];
    double jitter[LS_JITTER_N];
    small_program s;
    lsi_replay_args a;
    lsi_replay r = {.step_s = tight};
    ls_err err = {0};

    fill_jitter(jitter);
    begin(&s, 1, false);
    add(&s, LS_DEED_RUN, 1, -1);
    add(&s, LS_DEED_START, 0, 0);
    add(&s, LS_DEED_WAIT, 0, 0);
    a = args_of(&s, 32);
    a.jitter = jitter;
    a.steps = STEPS;
    REQUIRE_OK(lsi_replay_run(&a, &r, &err), &err);
    begin(&s, 1, false); /* the same work, but what is summed is needed half a step later */
    add(&s, LS_DEED_RUN, 0.5, -1);
    add(&s, LS_DEED_WAIT, 0, 0);
    add(&s, LS_DEED_RUN, 0.5, -1);
    add(&s, LS_DEED_START, 0, 0);
    s.transfers[0].carried = true;
    r.step_s = loose;
    REQUIRE_OK(lsi_replay_run(&a, &r, &err), &err);
    CHECK(ls_mean_of(loose, STEPS).mean < ls_mean_of(tight, STEPS).mean);
    CHECK(ls_mean_of(loose, STEPS).mean > 1);
}

int main(void)
{
    CHECK_RUN(buckets_follow_one_another);
    CHECK_RUN(nothing_is_hidden_where_it_is_waited_for);
    CHECK_RUN(carried_sums_hide_behind_the_next_step);
    CHECK_RUN(exchanges_take_the_processor);
    CHECK_RUN(what_is_divided_becomes_less);
    CHECK_RUN(draws_have_the_percentiles);
    CHECK_RUN(ranks_wait_for_the_slowest);
    CHECK_RUN(slack_hides_jitter);
    return CHECK_DONE();
}
