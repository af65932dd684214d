/* axis.c: where an axis begins and ends, where its ticks are, and how their numbers are written.
 *
 * Ticks of a linear axis are multiples of 1, 2 or 5 times a power of ten; those of a logarithmic one are
 * powers of its base, with 2 and 5 in between on a short axis of base ten. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_internal.h"

/* Of an axis, relative to its values.  Sums of 32-bit numbers are exact to about 1e-6. */
static const double LEAST_LENGTH = 1e-4;

static bool is_log(ls_chart_scale scale)
{
    return scale == LS_SCALE_LOG2 || scale == LS_SCALE_LOG10;
}

bool lsi_drawable(ls_chart_scale scale, double v)
{
    /* Beyond 1e300 differences of values are not finite any more. */
    return isfinite(v) && fabs(v) < 1e300 && (!is_log(scale) || v > 0);
}

/* The position of a value on an axis before it is stretched to pixels. */
static double along(ls_chart_scale scale, double v)
{
    return scale == LS_SCALE_LOG2 ? log2(v) : scale == LS_SCALE_LOG10 ? log10(v) : v;
}

static double value_at(ls_chart_scale scale, double t)
{
    return scale == LS_SCALE_LOG2 ? exp2(t) : scale == LS_SCALE_LOG10 ? pow(10, t) : t;
}

double lsi_axis_at(const lsi_axis *a, double v)
{
    const double lo = along(a->scale, a->lo), hi = along(a->scale, a->hi);

    return a->from + (along(a->scale, v) - lo) / (hi - lo) * (a->to - a->from);
}

/* -- ticks -------------------------------------------------------------------------------------------------
 */

/* 1, 2 or 5 times a power of ten, such that `length` has about `wanted` of it. */
static double nice_step(double length, int wanted)
{
    const double raw = length / wanted, power = pow(10, floor(log10(raw))), lead = raw / power;

    return (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power;
}

static void add_tick(lsi_axis *a, double v)
{
    /* A hair beyond the end is the end. */
    const double slack = 1e-9 * (along(a->scale, a->hi) - along(a->scale, a->lo));

    if (a->n_ticks < LSI_TICKS && along(a->scale, v) >= along(a->scale, a->lo) - slack &&
        along(a->scale, v) <= along(a->scale, a->hi) + slack)
        a->tick[a->n_ticks++] = v;
}

static void linear_ticks(lsi_axis *a, lsi_extent e, int wanted, bool round)
{
    double step = nice_step(a->hi - a->lo, wanted);

    if (e.whole && step < 1) step = 1;
    if (round) {
        a->lo = step * floor(a->lo / step + 1e-9);
        a->hi = step * ceil(a->hi / step - 1e-9);
    }
    a->step = step;
    const double first = ceil(a->lo / step - 1e-9);
    for (int i = 0; i < LSI_TICKS; i++) {
        const double v = (first + i) * step;
        add_tick(a, v == 0 ? 0 : v); /* no negative zero */
    }
}

/* The tick of a logarithmic axis number k: powers of the base, `parts` to a power (1, or 3: 1, 2 and 5). */
static double log_tick(ls_chart_scale scale, long k, int parts)
{
    static const double lead[] = {1, 2, 5};
    const long power = k >= 0 ? k / parts : -((parts - 1 - k) / parts);

    return lead[k - power * parts] * value_at(scale, (double)power);
}

static void log_ticks(lsi_axis *a, int wanted, bool round)
{
    const double lo = along(a->scale, a->lo), hi = along(a->scale, a->hi);
    const int parts = a->scale == LS_SCALE_LOG10 && hi - lo < 2.5 ? 3 : 1;
    const long first = (long)floor(lo) * parts, last = (long)ceil(hi) * parts;
    long stride = 1, from = first, to = last;

    while (parts == 1 && (last - first) / stride > wanted + 2) stride++;
    if (round) {
        while (from + 1 <= to && along(a->scale, log_tick(a->scale, from + 1, parts)) <= lo + 1e-9) from++;
        while (to - 1 > from && along(a->scale, log_tick(a->scale, to - 1, parts)) >= hi - 1e-9) to--;
        a->lo = log_tick(a->scale, from, parts);
        a->hi = log_tick(a->scale, to, parts);
    }
    for (long k = from; k <= to; k += stride) add_tick(a, log_tick(a->scale, k, parts));
}

/* An axis for what has no length: nothing, or one value. */
static void widen(lsi_axis *a, lsi_extent e)
{
    if (e.lo > e.hi) {
        a->lo = is_log(a->scale) ? 1 : 0;
        a->hi = is_log(a->scale) ? 10 : 1;
    } else if (is_log(a->scale)) {
        a->lo = e.lo / 2;
        a->hi = e.lo * 2;
    } else {
        const double middle = e.lo + (e.hi - e.lo) / 2, by = middle == 0 ? 1 : fabs(middle) * 0.1;
        a->lo = middle - by;
        a->hi = middle + by;
    }
}

lsi_axis lsi_axis_fit(ls_chart_scale scale, lsi_extent e, int wanted, bool round, double margin)
{
    lsi_axis a = {.scale = scale, .lo = e.lo, .hi = e.hi};

    if (scale == LS_SCALE_FROM_ZERO && e.lo <= e.hi) {
        a.lo = e.lo < 0 ? e.lo : 0;
        a.hi = e.hi > 0 ? e.hi : 0;
    }
    /* Values that differ by less than they are exact to are equal: an axis of that length would show
     * rounding as a climb.  Counts are exact. */
    if (!(a.hi - a.lo > (e.whole ? 1e-12 : LEAST_LENGTH) * fmax(fabs(a.lo), fabs(a.hi)))) widen(&a, e);
    if (scale == LS_SCALE_FROM_ZERO && e.lo >= 0) a.lo = 0;
    if (!round && margin > 0) {
        const double lo = along(scale, a.lo), hi = along(scale, a.hi), by = margin * (hi - lo);
        a.lo = value_at(scale, lo - by);
        a.hi = value_at(scale, hi + by);
    }
    if (is_log(scale))
        log_ticks(&a, wanted, round);
    else
        linear_ticks(&a, e, wanted, round);
    return a;
}

/* -- numbers -----------------------------------------------------------------------------------------------
 */

/* Commas between thousands of "-12345.67", in place. */
static void separate(char *buf, size_t size)
{
    const size_t sign = buf[0] == '-' ? 1 : 0, whole = strspn(buf + sign, "0123456789");
    size_t length = strlen(buf);

    for (size_t i = whole; i > 3 && length + 2 < size; i -= 3) {
        char *at = buf + sign + i - 3;
        memmove(at + 1, at, strlen(at) + 1);
        *at = ',';
        length++;
    }
}

static const char *fixed(double v, int decimals, char *buf)
{
    snprintf(buf, LSI_NUMBER_MAX, "%.*f", decimals, v);
    separate(buf, LSI_NUMBER_MAX);
    return buf;
}

/* Without zeros at the end of decimals: 25.00 is 25. */
static const char *trimmed(char *buf)
{
    char *end = buf + strlen(buf);

    if (strchr(buf, '.') == NULL) return buf;
    while (end[-1] == '0') *--end = '\0';
    if (end[-1] == '.') end[-1] = '\0';
    return buf;
}

/* 3e-05 is 3e-5. */
static const char *scientific(double v, int digits, char *buf)
{
    char *e;

    snprintf(buf, LSI_NUMBER_MAX, "%.*e", digits > 0 ? digits - 1 : 0, v);
    e = strchr(buf, 'e');
    if (e == NULL) return buf; /* not finite */
    const int power = atoi(e + 1);
    *e = '\0';
    trimmed(buf);
    const size_t n = strlen(buf);
    snprintf(buf + n, LSI_NUMBER_MAX - n, "e%d", power);
    return buf;
}

const char *lsi_number_text(double v, int digits, char buf[LSI_NUMBER_MAX])
{
    int decimals;

    if (v == 0) return fixed(0, 0, buf);
    if (!isfinite(v) || fabs(v) >= 1e12 || fabs(v) < 1e-4) return scientific(v, digits, buf);
    decimals = digits - 1 - (int)floor(log10(fabs(v)));
    fixed(v, decimals > 0 ? decimals : 0, buf);
    return trimmed(buf);
}

/* Large numbers of one axis share their unit: 0, 5 M, 10 M. */
static const char *in_thousands(double v, double most, char *buf)
{
    static const char unit[] = "kMGTP";
    const int k = (int)fmin(5, floor(log10(most) / 3 + 1e-9));

    if (v == 0) return fixed(0, 0, buf);
    snprintf(buf, LSI_NUMBER_MAX, "%.6g %c", v / pow(1000, k), unit[k - 1]);
    return buf;
}

const char *lsi_tick_text(const lsi_axis *a, int i, char buf[LSI_NUMBER_MAX])
{
    const double v = a->tick[i], most = fmax(fabs(a->lo), fabs(a->hi));

    if (most >= 1e7 && most < 1e17) return in_thousands(v, most, buf);
    if (a->step == 0) { /* 1, 2 and 5 times powers, and powers of two, are short as they are */
        if (v < 1e-4 || v >= 1e17) return scientific(v, 3, buf);
        snprintf(buf, LSI_NUMBER_MAX, "%.10g", v);
        separate(buf, LSI_NUMBER_MAX);
        return buf;
    }
    if (most >= 1e17 || most < 1e-4) return v == 0 ? fixed(0, 0, buf) : scientific(v, 3, buf);
    return fixed(v, a->step >= 1 ? 0 : (int)ceil(-log10(a->step) - 1e-9), buf);
}
