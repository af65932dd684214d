/* student.c: Student's t by the incomplete beta function, whose continued fraction is evaluated by Lentz's
 * method; the quantile by Newton's, kept between bounds that are halved where it would leave them. */
#include "bench/student.h"

#include <math.h>

#include "lockstep/status.h"

/* The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), f;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    f = d;
    for (int m = 1; m < 500; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step;
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        f *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / (fabs(c) < tiny ? tiny : c);
        d = 1 / (fabs(d) < tiny ? tiny : d);
        step = d * c;
        f *= step;
        if (fabs(step - 1) < 1e-15) break;
    }
    return f;
}

/* The regularised incomplete beta function I_x(a, b). */
static double beta_below(double x, double a, double b)
{
    double front;

    if (x <= 0) return 0;
    if (x >= 1) return 1;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double ls_student_below(double t, double df)
{
    const double tail = 0.5 * beta_below(df / (df + t * t), df / 2, 0.5);

    LS_BUG_IF(!(df > 0));
    return t > 0 ? 1 - tail : tail;
}

static double density(double t, double df)
{
    const double pi = 3.14159265358979324;

    return exp(lgamma(0.5 * (df + 1)) - lgamma(0.5 * df) - 0.5 * (df + 1) * log1p(t * t / df)) /
           sqrt(df * pi);
}

double ls_student_quantile(double p, double df)
{
    double lo = -1, hi = 1, t;

    LS_BUG_IF(!(p > 0 && p < 1));
    while (ls_student_below(lo, df) > p && lo > -1e150) lo *= 2;
    while (ls_student_below(hi, df) < p && hi < 1e150) hi *= 2;
    t = 0.5 * (lo + hi);
    for (int i = 0; i < 200 && hi - lo > 1e-13 * (fabs(lo) + fabs(hi)); i++) {
        const double off = ls_student_below(t, df) - p;
        double next;
        if (off < 0)
            lo = t;
        else
            hi = t;
        next = t - off / density(t, df);
        if (fabs(next - t) <= 1e-13 * fabs(t)) break;
        t = next > lo && next < hi ? next : 0.5 * (lo + hi);
    }
    return t;
}
