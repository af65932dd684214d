/* stats.c: order statistics of measured series. */
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

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

ls_spread ls_spread_rate(ls_spread time, double amount)
{
    return (ls_spread){amount / time.p84, amount / time.p50, amount / time.p16};
}
