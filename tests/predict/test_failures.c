/* test_failures.c: the expected time of runs whose machines fail, by hand and against a simulation. */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "predict/failures.h"

/* Two segments of 60 s: 2 x 1000 e^0.02 (e^0.06 - 1). */
static void expected_time_by_hand(void)
{
    const ls_failures f = {.mtbf_s = 1000, .checkpoint_s = 10, .restart_s = 20};
    const ls_failures_cost c = ls_failures_expect(&f, 100, 50);

    CHECK_NEAR(c.seconds, 126.171456, 1e-5);
    CHECK_NEAR(c.checkpoints_s, 20, 0);
    CHECK_NEAR(c.lost_s, 6.171456, 1e-5);
    CHECK_NEAR(c.failures, 0.126171456, 1e-8);
    /* A last segment that is shorter has its checkpoint, too. */
    CHECK_NEAR(ls_failures_expect(&f, 75, 50).seconds, 1000 * exp(0.02) * (expm1(0.06) + expm1(0.035)), 1e-9);
    CHECK_NEAR(ls_failures_expect(&f, 30, 50).seconds, 1000 * exp(0.02) * expm1(0.04), 1e-9);
}

static void intervals_by_hand(void)
{
    /* sqrt(2 x 50 x 10000) = 1000; x = 0.0025: 1000 (1 + 0.05/3 + 0.0025/9) - 50 */
    const ls_failures f = {.mtbf_s = 10000, .checkpoint_s = 50, .restart_s = 1};
    const ls_failures often = {.mtbf_s = 10, .checkpoint_s = 25, .restart_s = 1};

    CHECK_NEAR(ls_failures_young(&f), 1000, 1e-9);
    CHECK_NEAR(ls_failures_daly(&f), 1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50, 1e-9);
    CHECK_NEAR(ls_failures_daly(&often), 10, 0);
}

static void rare_failures_cost_nothing(void)
{
    const ls_failures f = {.mtbf_s = 1e15, .checkpoint_s = 1e-3, .restart_s = 1};
    const ls_failures_cost c = ls_failures_expect(&f, 1e5, 1e5);

    CHECK_NEAR(c.seconds, 1e5 + 1e-3, 1e-3);
    CHECK(c.lost_s < 1e-3);
    CHECK(c.scatter_s >= 0 && c.scatter_s < 1e3);
}

static void what_never_ends_is_infinite(void)
{
    const ls_failures f = {.mtbf_s = 1, .checkpoint_s = 2000, .restart_s = 1};

    CHECK(isinf(ls_failures_expect(&f, 100, 1).seconds));
}

/* -- simulated --------------------------------------------------------------------------------------------
 */

typedef struct dice {
    uint64_t at;
} dice;

/* Exponential: splitmix64 for the uniform number. */
static double next_failure(dice *d, double mtbf)
{
    uint64_t z = d->at += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return -mtbf * log(((double)(z >> 11) + 0.5) / 9007199254740992.0);
}

/* A try of so many seconds, again and again, with what follows a failure. */
static double until_done(dice *d, double seconds, double mtbf, double restart)
{
    double t = 0;

    for (;;) {
        const double failure = next_failure(d, mtbf);
        if (failure >= seconds) return t + seconds;
        t += failure;
        if (restart > 0) t += until_done(d, restart, mtbf, 0);
    }
}

static double simulate(dice *d, const ls_failures *f, double training, double interval)
{
    double t = 0;

    for (double left = training; left > 1e-9 * training; left -= interval)
        t += until_done(d, fmin(left, interval) + f->checkpoint_s, f->mtbf_s, f->restart_s);
    return t;
}

typedef struct regime {
    ls_failures f;
    double training, interval; /* 0: Daly's */
} regime;

static void simulated(const regime *r, int n)
{
    const double interval = r->interval > 0 ? r->interval : ls_failures_daly(&r->f);
    const ls_failures_cost c = ls_failures_expect(&r->f, r->training, interval);
    double sum = 0, squares = 0, mean, deviation;
    dice d = {42};

    for (int i = 0; i < n; i++) {
        const double t = simulate(&d, &r->f, r->training, interval) - c.seconds;
        sum += t;
        squares += t * t;
    }
    mean = sum / n;
    deviation = sqrt(squares / n - mean * mean);
    CHECK_NEAR(mean, 0, 4 * deviation / sqrt(n)); /* of 5 such checks one fails by chance in 3,000 seeds */
    CHECK_NEAR(deviation / c.scatter_s, 1, 0.05);
    CHECK_NEAR(c.seconds, r->training + c.checkpoints_s + c.lost_s, 1e-6 * c.seconds);
}

/* From failures that are rare to a mean time between them that a checkpoint takes, or a restart. */
static void simulations_agree(void)
{
    static const regime regimes[] = {
        {{.mtbf_s = 1e5, .checkpoint_s = 30, .restart_s = 120}, 1e5, 0},
        {{.mtbf_s = 1000, .checkpoint_s = 30, .restart_s = 100}, 4321, 0},
        {{.mtbf_s = 100, .checkpoint_s = 50, .restart_s = 20}, 1000, 0},
        {{.mtbf_s = 10, .checkpoint_s = 10, .restart_s = 15}, 60, 0},
        {{.mtbf_s = 100, .checkpoint_s = 1, .restart_s = 5}, 500, 500}, /* one checkpoint, at the end */
    };

    for (size_t i = 0; i < sizeof regimes / sizeof regimes[0]; i++)
        simulated(&regimes[i], check_is_slow_build() ? 4000 : 20000);
}

/* Of all intervals Daly's is the best but for a hundredth of the time, and nowhere worse than Young's. */
static void the_interval_is_the_best(void)
{
    static const double checkpoints[] = {0.1, 1, 10, 50, 100};

    for (size_t i = 0; i < sizeof checkpoints / sizeof checkpoints[0]; i++) {
        const ls_failures f = {.mtbf_s = 100, .checkpoint_s = checkpoints[i], .restart_s = 10};
        /* of very many segments, so that their number need not be whole */
        const double training = 1e7;
        const double daly = ls_failures_expect(&f, training, ls_failures_daly(&f)).seconds;
        double best = INFINITY;
        for (double interval = 0.1; interval < 1000; interval *= 1.01)
            best = fmin(best, ls_failures_expect(&f, training, interval).seconds);
        CHECK(daly <= 1.01 * best);
        CHECK(daly <= ls_failures_expect(&f, training, ls_failures_young(&f)).seconds * (1 + 1e-9));
    }
}

int main(void)
{
    CHECK_RUN(expected_time_by_hand);
    CHECK_RUN(intervals_by_hand);
    CHECK_RUN(rare_failures_cost_nothing);
    CHECK_RUN(what_never_ends_is_infinite);
    CHECK_RUN(simulations_agree);
    CHECK_RUN(the_interval_is_the_best);
    return CHECK_DONE();
}
