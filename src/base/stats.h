/* stats.h: order statistics and means of measured series. */
#ifndef LS_BASE_STATS_H
#define LS_BASE_STATS_H

#include <stddef.h>

/* The 16th, 50th and 84th percentile: the median and the central 68 %. */
typedef struct ls_spread {
    double p16, p50, p84;
} ls_spread;

/* Quantile q in [0, 1] of n > 0 numbers in ascending order, linear between the two nearest (NumPy's
 * default). */
double ls_quantile_sorted(const double *x, size_t n, double q);
/* Sorts x in place: not for series that go on (ls_spread_keep). */
ls_spread ls_spread_of(double *x, size_t n);
/* The same of numbers that stay as they are; `scratch` has room for n. */
ls_spread ls_spread_keep(const double *x, size_t n, double *scratch);
/* `amount` per time: percentiles swap sides. */
ls_spread ls_spread_rate(ls_spread time, double amount);

/* A mean and its standard error. */
typedef struct ls_estimate {
    double mean, error; /* error: NaN where there is but one number */
    int batches;        /* independent numbers behind the error: one less are its degrees of freedom */
} ls_estimate;

/* The mean of n > 0 numbers in the order in which they were measured.  Neighbours are alike (the machine does
 * something else for a while), so that the usual error would be too small: the series is cut into batches,
 * whose means are nearly independent, and the error is that of the mean of these.  There are sqrt(n) batches,
 * at least 5 (n, where there are fewer numbers) and at most 20. */
ls_estimate ls_batch_means(const double *x, size_t n);
/* `amount` per time. */
ls_estimate ls_estimate_rate(ls_estimate time, double amount);
/* The mean of n independent numbers: every one is a batch.  NaN of none. */
ls_estimate ls_mean_of(const double *x, size_t n);

#endif
