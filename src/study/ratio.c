/* ratio.c: how sure the ratio of two rates is, from what differs between runs and what scatters inside them.
 *
 * The logarithm of the ratio in repeat k is the truth, plus what differs from run to run, plus what the steps
 * inside the two runs leave open.  Repeats show the first two together, steps the last one alone:
 *
 * - The scatter of n repeats gives Student's interval of n - 1 degrees of freedom.  That of the other counts
 *   of the study counts as one repeat more: two repeats alone have one degree of freedom, and intervals that
 *   say nothing.  It can only widen what a count's own repeats say, because larger counts scatter more.
 * - Repeats that agree by chance must not look better than their own steps: the interval is at least that of
 *   the spread inside the runs.
 * - One repeat shows nothing of what differs from run to run.  LS_STUDY_ASSUMED stands in, with the weight of
 *   one degree of freedom: an interval as wide as two repeats have.
 *
 * tests/study/test_intervals.c simulates studies and counts how often the truth is held. */
#include <math.h>

#include "bench/student.h"
#include "study/study_internal.h"

#define LEVEL 0.975 /* of each side: 95 % in between */

static double quantile(double df)
{
    return ls_student_quantile(LEVEL, fmin(df, 1e6)); /* normal by then */
}

void lsi_ratios_add(ls_study_ratios *r, double log_ratio, ls_study_inside a, ls_study_inside b)
{
    const double v = a.variance + b.variance;
    const double df = v * v / (a.variance * a.variance / a.df + b.variance * b.variance / b.df);

    r->log_ratio[r->n++] = log_ratio;
    /* The mean over the repeats so far, and its degrees of freedom: these of independent runs add up. */
    r->inside += (v - r->inside) / r->n;
    if (isfinite(df)) r->inside_df += df;
    if (v > 0 && !isfinite(df)) r->inside_df = INFINITY;
}

double lsi_ratios_scatter(const ls_study_ratios *r)
{
    const double error = ls_mean_of(r->log_ratio, (size_t)r->n).error;

    return r->n > 1 ? error * error * r->n : NAN;
}

/* The variance of one repeat's ratio, its degrees of freedom, and where it comes from. */
static double variance_of(const ls_study_ratios *r, double others, double *df, ls_study_from *from)
{
    const double own = lsi_ratios_scatter(r);

    *df = r->n > 2 ? r->n - 1 : 1;
    *from = r->n > 1 ? LS_STUDY_FROM_REPEATS : LS_STUDY_FROM_ASSUMED;
    if (r->n == 1 && isnan(others)) return 2 * LS_STUDY_ASSUMED * LS_STUDY_ASSUMED;
    if (isnan(others)) return own;
    *from = LS_STUDY_FROM_ALL;
    if (r->n == 1) return others;
    *df = r->n;
    return fmax(own, (own * (r->n - 1) + others) / r->n);
}

ls_interval ls_study_ratio(const ls_study_ratios *r, double others, bool has_others, ls_study_sure *sure)
{
    static const int repeats[] = LS_STUDY_ADVICE;
    const double mid = ls_mean_of(r->log_ratio, (size_t)r->n).mean;
    double v, df, reach, steps = 0;

    *sure = (ls_study_sure){.between = NAN, .inside = NAN, .expected = {NAN, NAN, NAN}};
    if (r->n == 0) return (ls_interval){NAN, NAN, NAN};
    v = variance_of(r, others, &df, &sure->from);
    reach = quantile(df) * sqrt(v / r->n);
    if (r->inside > 0 && r->inside_df > 0) steps = quantile(r->inside_df) * sqrt(r->inside / r->n);
    if (sure->from == LS_STUDY_FROM_ASSUMED) { /* about runs alone: their steps come on top */
        reach = hypot(reach, steps);
        v += r->inside;
    }
    if (steps > reach) {
        reach = steps;
        sure->from = LS_STUDY_FROM_STEPS;
    }
    sure->between = sqrt(v);
    sure->inside = sqrt(r->inside);
    for (int i = 0; i < LS_STUDY_ADVICE_N; i++)
        sure->expected[i] = quantile(repeats[i] - 1 + has_others) * sqrt(fmax(v, r->inside) / repeats[i]);
    return (ls_interval){exp(mid - reach), exp(mid), exp(mid + reach)};
}

const char *ls_study_from_name(ls_study_from from)
{
    static const char *const names[] = {"none", "repeats", "all repeats", "steps", "assumed"};

    return names[from];
}
