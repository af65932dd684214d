/* interval.c: how sure a ratio of measured rates is.
 *
 * Rates of repeats scatter by factors rather than by amounts, so everything is done with logarithms.  A
 * machine that drifts changes all points of a repeat alike: ratios are taken within a repeat, and their
 * scatter over the repeats gives the interval. */
#include <math.h>

#include "bench/student.h"
#include "study/study_internal.h"

#define LEVEL 0.975 /* of each side: 95 % in between */

ls_spread ls_study_pool(const ls_spread *of, int n)
{
    static const double levels[3] = {0.16, 0.5, 0.84};
    double at[3];

    for (int k = 0; k < 3; k++) {
        double lo = INFINITY, hi = -INFINITY;
        for (int i = 0; i < n; i++) {
            lo = fmin(lo, of[i].p16);
            hi = fmax(hi, of[i].p84);
        }
        /* The quantile of a mixture lies between the smallest and the largest of its parts' quantiles. */
        for (int turn = 0; turn < 100 && lo < hi; turn++) {
            const double mid = 0.5 * (lo + hi);
            double below = 0;
            for (int i = 0; i < n; i++) below += lsi_share_below(&of[i], mid) / n;
            if (below < levels[k])
                lo = mid;
            else
                hi = mid;
        }
        at[k] = n > 0 ? hi : NAN;
    }
    return (ls_spread){at[0], at[1], at[2]};
}

/* Where x lies on the line through (x0, y0) and (x1, y1); a line without length jumps. */
static double on_line(double x, double x0, double y0, double x1, double y1)
{
    if (!(x1 > x0)) return x < x0 ? 0 : 1;
    return y0 + (x - x0) * (y1 - y0) / (x1 - x0);
}

double lsi_share_below(const ls_spread *s, double x)
{
    const double share =
        x < s->p50 ? on_line(x, s->p16, 0.16, s->p50, 0.5) : on_line(x, s->p50, 0.5, s->p84, 0.84);

    return fmin(1, fmax(0, share));
}

lsi_moments lsi_moments_of(const double *x, int n)
{
    double sum = 0, squares = 0;
    lsi_moments m = {.n = n, .mean = NAN, .error = NAN};

    if (n < 1) return m;
    for (int i = 0; i < n; i++) sum += x[i];
    m.mean = sum / n;
    for (int i = 0; i < n; i++) squares += (x[i] - m.mean) * (x[i] - m.mean);
    if (n > 1) m.error = sqrt(squares / (n - 1) / n);
    return m;
}

ls_interval lsi_interval_around(double log_mid, double error, double df)
{
    const double reach = isinf(df) ? 1.959963984540054 * error : ls_student_quantile(LEVEL, df) * error;

    return (ls_interval){exp(log_mid - reach), exp(log_mid), exp(log_mid + reach)};
}

ls_interval ls_study_ratio(const double *log_ratio, int n)
{
    const lsi_moments m = lsi_moments_of(log_ratio, n);

    if (n < 2) return (ls_interval){NAN, exp(m.mean), NAN};
    return lsi_interval_around(m.mean, m.error, n - 1);
}

ls_interval ls_study_ratio_once(double log_ratio, double a, double b)
{
    return lsi_interval_around(log_ratio, sqrt(a * a + b * b), INFINITY);
}

/* Welch: the two scatter each in its own way, and the degrees of freedom follow from how much. */
ls_interval lsi_ratio_unpaired(const lsi_moments *a, const lsi_moments *b)
{
    const double va = a->error * a->error, vb = b->error * b->error, all = va + vb;
    double df = INFINITY;

    if (all > 0 && (a->n > 1 || b->n > 1))
        df = all * all / ((a->n > 1 ? va * va / (a->n - 1) : 0) + (b->n > 1 ? vb * vb / (b->n - 1) : 0));
    return lsi_interval_around(b->mean - a->mean, sqrt(all), df);
}
