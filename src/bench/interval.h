/* interval.h: how sure a ratio of measured rates is, and what may be said of it.
 *
 * Rates of repeats scatter by factors rather than by amounts, so everything is done with logarithms: an
 * ls_estimate here is that of the mean of logarithms, and its error a relative one. */
#ifndef LS_BENCH_INTERVAL_H
#define LS_BENCH_INTERVAL_H

#include "base/stats.h"

/* 95 %; NaN for what is not known. */
typedef struct ls_interval {
    double lo, mid, hi;
} ls_interval;

/* exp(log_mid), and the interval of `df` degrees of freedom (INFINITY: of the normal distribution). */
ls_interval ls_interval_around(double log_mid, double error, double df);
/* exp of a mean of logarithms with its Student interval; lo = hi = NaN where there is but one number. */
ls_interval ls_interval_mean(ls_estimate e);
/* exp(b - a) of two means that have nothing to do with each other (Welch): both scatter, each in its own
 * way, and the degrees of freedom follow from how much.  An error of one batch is taken as known. */
ls_interval ls_interval_ratio(ls_estimate a, ls_estimate b);

/* What the spread allows to say of B beside A, from the interval of rate B over rate A. */
typedef enum ls_verdict { LS_SAME, LS_FASTER, LS_SLOWER, LS_UNKNOWN } ls_verdict;
ls_verdict ls_verdict_of(ls_interval ratio);
/* "faster", "slower", "no difference that the spread allows", "not measured". */
const char *ls_verdict_text(ls_verdict v);

#endif
