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

enum { COUNTS_MAX = 4, REPEATS_MAX = 8, STUDIES = 500, BATCHES = 10 };

#define TRUTH 0.87 /* efficiency of the largest count against the smallest */
#define DRIFT 0.25 /* of the machine from repeat to repeat, the same for all points of one */

/* What a simulated machine is like. */
typedef struct machine {
    const char *name;
    int counts;
    double between; /* of a run, relative: what differs from run to run */
    double grows;   /* by this factor from count to count */
    double inside;  /* standard error of a run's median by its own steps */
} machine;

static const machine machines[] = {
    {"two counts", 2, 0.04, 1, 0.01},
    {"four counts", 4, 0.04, 1, 0.01},
    {"a restless machine", 2, 0.1, 1, 0.02},
    {"as much inside as between", 4, 0.02, 1, 0.02},
    {"steps scatter most", 2, 0.01, 1, 0.04},
    {"runs do not differ", 4, 0, 1, 0.03},
    {"large counts scatter more", 4, 0.02, 1.6, 0.01},
};
enum { MACHINES = sizeof machines / sizeof machines[0] };

/* Of a variance that is estimated from so many batches: chi square over its degrees of freedom. */
static double estimated(int df)
{
    double sum = 0;

    for (int i = 0; i < df; i++) {
        const double x = normal();
        sum += x * x;
    }
    return sum / df;
}

static void simulate(const machine *m, int repeats, ls_study_point *of)
{
    for (int k = 0; k < repeats; k++) {
        const double drift = DRIFT * normal() - 0.1 * k;
        for (int i = 0; i < m->counts; i++) {
            const int ranks = 2 << i;
            const double between = m->between * pow(m->grows, i) * normal(), inside = m->inside * normal();
            const double share = i == m->counts - 1 ? TRUTH : 1,
                         rate = 1000 * ranks * share * exp(drift + between + inside);
            of[i * repeats + k] =
                (ls_study_point){.ranks = ranks,
                                 .threads = 1,
                                 .steps = 100,
                                 .rate = {0.99 * rate, rate, 1.01 * rate},
                                 .step_s = {1, 1, 1},
                                 .mean_rate = rate,
                                 .error_rate = m->inside * sqrt(estimated(BATCHES - 1)) * rate / 1.2533,
                                 .batches = BATCHES};
        }
    }
}

static ls_study_row judged(const machine *m, int repeats, ls_study_point *of)
{
    bool there[COUNTS_MAX * REPEATS_MAX];
    ls_study s = {.n_counts = m->counts, .repeats = repeats, .threads = 1, .cores = 64};
    const ls_study_points p = {.of = of, .there = there, .n_there = m->counts * repeats};
    static ls_study_results r;

    for (int i = 0; i < m->counts; i++) s.counts[i] = 2 << i;
    for (int i = 0; i < m->counts * repeats; i++) there[i] = true;
    ls_study_judge(&s, &p, &r);
    return r.rows[m->counts - 1];
}

typedef ls_interval (*formula)(const machine *m, int repeats, ls_study_point *of);

static ls_interval ours(const machine *m, int repeats, ls_study_point *of)
{
    return judged(m, repeats, of).efficiency;
}

/* How often the interval holds the truth, and half its width in logarithms, in the mean. */
typedef struct outcome {
    double covered, half;
} outcome;

static outcome try_formula(formula f, const machine *m, int repeats)
{
    outcome o = {0};

    for (int n = 0; n < STUDIES; n++) {
        ls_study_point of[COUNTS_MAX * REPEATS_MAX];
        ls_interval i;
        simulate(m, repeats, of);
        i = f(m, repeats, of);
        o.covered += (i.lo <= TRUTH && TRUTH <= i.hi) / (double)STUDIES;
        o.half += 0.5 * log(i.hi / i.lo) / STUDIES;
    }
    return o;
}

/* Four standard errors of the count below 95 %; where counts scatter differently, what is borrowed from the
 * smaller ones costs a little. */
static bool is_honest(const machine *m, outcome o)
{
    return o.covered >= (m->grows > 1 ? 0.90 : 0.925);
}

static const int numbers[] = {1, 2, 3, 5, 8};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static void intervals_hold_the_truth(void)
{
    for (int k = 0; k < MACHINES; k++) {
        double before = INFINITY;
        printf("%s:", machines[k].name);
        for (int i = 0; i < NUMBERS; i++) {
            const outcome o = try_formula(ours, &machines[k], numbers[i]);
            printf(" %d repeats %.3f +-%.3f;", numbers[i], o.covered, o.half);
            CHECK(is_honest(&machines[k], o));
            CHECK(o.half < before); /* one repeat is never worth more than two, nor two more than three */
            before = o.half;
        }
        printf("\n");
    }
}

/* Where what differs from run to run prevails, several repeats are not wasted by caution either. */
static void intervals_are_not_wider_than_needed(void)
{
    for (int i = 2; i < NUMBERS; i++) {
        CHECK(try_formula(ours, &machines[0], numbers[i]).covered < 0.975);
        CHECK(try_formula(ours, &machines[1], numbers[i]).covered < 0.985);
    }
}

/* -- wrong formulas ---------------------------------------------------------------------------------------
 */

static double log_share(const ls_study_point *p)
{
    return log(p->rate.p50 / p->ranks);
}

/* Logarithms of the ratio of the largest count to the smallest, repeat by repeat. */
static ls_estimate ratios(const machine *m, int repeats, const ls_study_point *of)
{
    double x[REPEATS_MAX];

    for (int k = 0; k < repeats; k++)
        x[k] = log_share(&of[(m->counts - 1) * repeats + k]) - log_share(&of[k]);
    return ls_mean_of(x, (size_t)repeats);
}

static double inside_of(const ls_study_point *a, const ls_study_point *b)
{
    const double x = 1.2533 * a->error_rate / a->mean_rate, y = 1.2533 * b->error_rate / b->mean_rate;

    return x * x + y * y;
}

/* The steps of two runs, as if runs did not differ. */
static ls_interval steps_alone(const machine *m, int repeats, ls_study_point *of)
{
    const double v = inside_of(&of[0], &of[(m->counts - 1) * repeats]);

    return ls_interval_around(ratios(m, repeats, of).mean, sqrt(v / repeats), INFINITY);
}

/* As if two repeats were as good as a thousand. */
static ls_interval as_normal(const machine *m, int repeats, ls_study_point *of)
{
    const ls_estimate e = ratios(m, repeats, of);

    return ls_interval_around(e.mean, e.error, INFINITY);
}

/* The spread between runs as what is left of their scatter after that inside: it is nothing half of the time.
 */
static ls_interval sum_of_parts(const machine *m, int repeats, ls_study_point *of)
{
    const ls_estimate e = ratios(m, repeats, of);
    const double inside = inside_of(&of[0], &of[(m->counts - 1) * repeats]);
    const double between = fmax(0, e.error * e.error * repeats - inside);

    return ls_interval_around(e.mean, sqrt((between + inside) / repeats), INFINITY);
}

/* The scatter of all counts as if it were the same for all, and as well known as all of them together. */
static ls_interval as_one_pool(const machine *m, int repeats, ls_study_point *of)
{
    double v = 0;

    for (int i = 1; i < m->counts; i++) {
        const machine upto = {.counts = i + 1};
        const ls_estimate e = ratios(&upto, repeats, of);
        v += e.error * e.error / (m->counts - 1);
    }
    return ls_interval_around(ratios(m, repeats, of).mean, sqrt(v), (m->counts - 1) * (repeats - 1));
}

/* As if the repeats of the two counts had nothing to do with each other. */
static ls_interval unpaired(const machine *m, int repeats, ls_study_point *of)
{
    ls_estimate e[2];

    for (int i = 0; i < 2; i++) {
        double x[REPEATS_MAX];
        for (int k = 0; k < repeats; k++) x[k] = log_share(&of[(i == 0 ? 0 : m->counts - 1) * repeats + k]);
        e[i] = ls_mean_of(x, (size_t)repeats);
    }
    return ls_interval_ratio(e[0], e[1]);
}

static void wrong_formulas_are_found(void)
{
    CHECK(!is_honest(&machines[0], try_formula(steps_alone, &machines[0], 1)));
    CHECK(!is_honest(&machines[0], try_formula(steps_alone, &machines[0], 5)));
    CHECK(!is_honest(&machines[0], try_formula(as_normal, &machines[0], 2)));
    CHECK(!is_honest(&machines[3], try_formula(sum_of_parts, &machines[3], 2)));
    CHECK(!is_honest(&machines[6], try_formula(as_one_pool, &machines[6], 5)));
    CHECK(try_formula(unpaired, &machines[0], 5).covered > 0.985); /* three times as wide as needed */
}

/* -- by hand ----------------------------------------------------------------------------------------------
 */

static ls_study_ratios ratios_of(int n, const double *x, double inside)
{
    ls_study_ratios r = {.n = n, .inside = inside * inside, .inside_df = 1e9};

    for (int i = 0; i < n; i++) r.log_ratio[i] = x[i];
    return r;
}

static void ratios_by_hand(void)
{
    const double x[] = {log(0.8), log(0.9), log(0.85)}, alike[] = {0.1, 0.1};
    const double mid = 0.5 * (x[0] + x[1]), error = 0.5 * (x[1] - x[0]), v = 2 * error * error;
    ls_study_ratios r = ratios_of(2, x, 0.01);
    ls_study_sure sure;
    ls_interval i = ls_study_ratio(&r, NAN, false, &sure);

    CHECK_NEAR(log(i.mid), mid, 1e-12);
    CHECK_NEAR(log(i.hi), mid + 12.7062047 * error, 1e-6);
    CHECK_NEAR(log(i.lo), mid - 12.7062047 * error, 1e-6);
    CHECK_EQ_STR(ls_study_from_name(sure.from), "repeats");
    CHECK_NEAR(sure.expected[0], 4.30265273 * sqrt(v / 3), 1e-6); /* 3 repeats */
    CHECK_NEAR(sure.expected[2], 2.36462425 * sqrt(v / 8), 1e-6);
    /* Other counts that scatter twice as much: one degree of freedom more, and half of their variance. */
    i = ls_study_ratio(&r, 2 * v, true, &sure);
    CHECK_NEAR(log(i.hi), mid + 4.30265273 * sqrt(1.5 * v / 2), 1e-6);
    CHECK_EQ_STR(ls_study_from_name(sure.from), "all repeats");
    /* Those that scatter less do not make it surer of itself than its own repeats are. */
    i = ls_study_ratio(&r, 0.01 * v, true, &sure);
    CHECK_NEAR(log(i.hi), mid + 4.30265273 * error, 1e-6);
    /* Two repeats that agree by chance. */
    r = ratios_of(2, alike, 0.03);
    i = ls_study_ratio(&r, NAN, false, &sure);
    CHECK_NEAR(log(i.hi), 0.1 + 1.95996398 * 0.03 / sqrt(2), 1e-6);
    CHECK_EQ_STR(ls_study_from_name(sure.from), "steps");
    /* One alone, and one beside others. */
    r = ratios_of(1, x, 0.03);
    i = ls_study_ratio(&r, NAN, true, &sure);
    CHECK_NEAR(log(i.hi), x[0] + hypot(12.7062047 * sqrt(2) * LS_STUDY_ASSUMED, 1.95996398 * 0.03), 1e-6);
    CHECK_EQ_STR(ls_study_from_name(sure.from), "assumed");
    i = ls_study_ratio(&r, 0.01, true, &sure);
    CHECK_NEAR(log(i.hi), x[0] + 12.7062047 * 0.1, 1e-6);
    CHECK_EQ_STR(ls_study_from_name(sure.from), "all repeats");
    r = (ls_study_ratios){0};
    CHECK(isnan(ls_study_ratio(&r, NAN, false, &sure).lo) && isnan(sure.expected[0]));
    CHECK_EQ_STR(ls_study_from_name(sure.from), "none");
}

int main(void)
{
    CHECK_RUN(student_quantiles);
    CHECK_RUN(pool_of_known_series);
    CHECK_RUN(ratios_by_hand);
    CHECK_RUN(intervals_hold_the_truth);
    CHECK_RUN(intervals_are_not_wider_than_needed);
    CHECK_RUN(wrong_formulas_are_found);
    return CHECK_DONE();
}
