/* stats.h: order statistics of measured series. */
#ifndef LS_BENCH_STATS_H
#define LS_BENCH_STATS_H

#include <stddef.h>

/* The 16th, 50th and 84th percentile: the median and the central 68 %. */
typedef struct ls_spread {
    double p16, p50, p84;
} ls_spread;

/* Quantile q in [0, 1] of n > 0 numbers in ascending order, linear between the two nearest (NumPy's
 * default). */
double ls_quantile_sorted(const double *x, size_t n, double q);
/* Sorts x in place. */
ls_spread ls_spread_of(double *x, size_t n);
/* `amount` per time: percentiles swap sides. */
ls_spread ls_spread_rate(ls_spread time, double amount);

#endif
