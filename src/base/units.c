/* units.c: rates and times for people. */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"

/* Digits behind the point that make four of a number that is rounded to them; none from 999.95 on. */
static int decimals(double v)
{
    return v < 9.9995 ? 3 : v < 99.995 ? 2 : v < 999.95 ? 1 : 0;
}

const char *ls_units_rate(double per_s, char *buf)
{
    if (!isfinite(per_s)) {
        snprintf(buf, LS_UNITS_TEXT, "-");
    } else if (fabs(per_s) >= 999.95 && fabs(per_s) < 1e15) {
        ls_text_count((int64_t)(per_s < 0 ? per_s - 0.5 : per_s + 0.5), buf);
    } else if (fabs(per_s) >= 0.99995 && fabs(per_s) < 1e15) {
        snprintf(buf, LS_UNITS_TEXT, "%.*f", decimals(fabs(per_s)), per_s);
    } else {
        snprintf(buf, LS_UNITS_TEXT, "%.4g", per_s);
    }
    return buf;
}

const char *ls_units_seconds(double s, char *buf)
{
    static const struct {
        double below, per_s;
        const char *name;
    } units[] = {{0.99995e-3, 1e6, "us"}, {0.99995, 1e3, "ms"}, {INFINITY, 1, "s"}};
    int i = 0;

    if (!isfinite(s)) {
        snprintf(buf, LS_UNITS_TEXT, "-");
        return buf;
    }
    while (fabs(s) >= units[i].below) i++;
    if (s == 0) i = 2;
    snprintf(buf, LS_UNITS_TEXT, "%.*f %s", s == 0 ? 0 : decimals(fabs(s) * units[i].per_s),
             s * units[i].per_s, units[i].name);
    return buf;
}

const char *ls_units_clock(double s, char *buf)
{
    const int64_t n = (int64_t)(s + 0.5);

    if (!isfinite(s) || s < 0 || s > 1e15)
        snprintf(buf, LS_UNITS_TEXT, "-");
    else if (n >= 24 * 3600)
        snprintf(buf, LS_UNITS_TEXT, "%" PRId64 "d %02d:%02d h", n / 86400, (int)(n / 3600 % 24),
                 (int)(n / 60 % 60));
    else if (n >= 3600)
        snprintf(buf, LS_UNITS_TEXT, "%d:%02d:%02d", (int)(n / 3600), (int)(n / 60 % 60), (int)(n % 60));
    else
        snprintf(buf, LS_UNITS_TEXT, "%d:%02d", (int)(n / 60), (int)(n % 60));
    return buf;
}
