/* interval.c: what the percentiles of several points say together. */
#include <math.h>

#include "study/study_internal.h"

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

/* A distribution that is known at three points, straight between them, and beyond them as straight as far as
 * 0 and 1: tails are not known, and a wrong one would only move what lies outside of p16 to p84. */
double lsi_share_below(const ls_spread *s, double x)
{
    const double share =
        x < s->p50 ? on_line(x, s->p16, 0.16, s->p50, 0.5) : on_line(x, s->p50, 0.5, s->p84, 0.84);

    return fmin(1, fmax(0, share));
}
