/* interval.c: intervals of ratios of rates. */
#include "bench/interval.h"

#include <math.h>

#include "bench/student.h"

#define LEVEL  0.975 /* of each side: 95 % in between */
#define NORMAL 1.959963984540054

ls_interval ls_interval_around(double log_mid, double error, double df)
{
    const double reach = isinf(df) ? NORMAL * error : ls_student_quantile(LEVEL, df) * error;

    return (ls_interval){exp(log_mid - reach), exp(log_mid), exp(log_mid + reach)};
}

ls_interval ls_interval_mean(ls_estimate e)
{
    if (e.batches < 2) return (ls_interval){NAN, exp(e.mean), NAN};
    return ls_interval_around(e.mean, e.error, e.batches - 1);
}

ls_interval ls_interval_ratio(ls_estimate a, ls_estimate b)
{
    const double va = a.error * a.error, vb = b.error * b.error, all = va + vb;
    double df = INFINITY;

    if (all > 0 && (a.batches > 1 || b.batches > 1))
        df = all * all /
             ((a.batches > 1 ? va * va / (a.batches - 1) : 0) +
              (b.batches > 1 ? vb * vb / (b.batches - 1) : 0));
    return ls_interval_around(b.mean - a.mean, sqrt(all), df);
}

ls_verdict ls_verdict_of(ls_interval ratio)
{
    if (isnan(ratio.lo) || isnan(ratio.hi)) return LS_UNKNOWN;
    return ratio.lo > 1 ? LS_FASTER : ratio.hi < 1 ? LS_SLOWER : LS_SAME;
}

const char *ls_verdict_text(ls_verdict v)
{
    switch (v) {
    case LS_SAME: return "no difference that the spread allows";
    case LS_FASTER: return "faster";
    case LS_SLOWER: return "slower";
    default: return "not measured";
    }
}
