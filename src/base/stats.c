/* stats.c: order statistics and means of measured series. */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/status.h"

double ls_quantile_sorted(const double *x, size_t n, double q)
{
    double at, part;
    size_t i;

    LS_BUG_IF(n == 0 || !(q >= 0 && q <= 1));
    at = q * (double)(n - 1);
    i = (size_t)floor(at);
    if (i + 1 >= n) return x[n - 1];
    part = at - (double)i;
    return x[i] + part * (x[i + 1] - x[i]);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

ls_spread ls_spread_of(double *x, size_t n)
{
    qsort(x, n, sizeof *x, ascending);
    return (ls_spread){ls_quantile_sorted(x, n, 0.16), ls_quantile_sorted(x, n, 0.5),
                       ls_quantile_sorted(x, n, 0.84)};
}

ls_spread ls_spread_keep(const double *x, size_t n, double *scratch)
{
    memcpy(scratch, x, n * sizeof *x);
    return ls_spread_of(scratch, n);
}

ls_spread ls_spread_rate(ls_spread time, double amount)
{
    return (ls_spread){amount / time.p84, amount / time.p50, amount / time.p16};
}

/* -- means ------------------------------------------------------------------------------------------------
 */

enum { LEAST_BATCHES = 5, MOST_BATCHES = 20 };

ls_estimate ls_mean_of(const double *x, size_t n)
{
    ls_estimate e = {.batches = (int)n};
    double squares = 0;

    if (n == 0) return (ls_estimate){.mean = NAN, .error = NAN};
    for (size_t i = 0; i < n; i++) e.mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++) squares += (x[i] - e.mean) * (x[i] - e.mean);
    e.error = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : NAN;
    return e;
}

static size_t batches_of(size_t n)
{
    const size_t root = (size_t)sqrt((double)n);

    if (n < LEAST_BATCHES) return n;
    return root < LEAST_BATCHES ? LEAST_BATCHES : root > MOST_BATCHES ? MOST_BATCHES : root;
}

ls_estimate ls_batch_means(const double *x, size_t n)
{
    const size_t batches = batches_of(n);
    double means[MOST_BATCHES], all = 0;
    ls_estimate e;

    LS_BUG_IF(n == 0);
    for (size_t i = 0; i < batches; i++) {
        const size_t from = i * n / batches, to = (i + 1) * n / batches;
        double sum = 0;
        for (size_t k = from; k < to; k++) sum += x[k];
        means[i] = sum / (double)(to - from);
        all += sum;
    }
    e = ls_mean_of(means, batches);
    e.mean = all / (double)n; /* batches may differ in length by one */
    return e;
}

ls_estimate ls_estimate_rate(ls_estimate time, double amount)
{
    const double rate = amount / time.mean;

    return (ls_estimate){rate, rate * (time.error / time.mean), time.batches};
}
