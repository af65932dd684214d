/* units.c: rates and times for people. */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* H:MM:SS or D-HH:MM:SS. */
static bool read_clock(const char *text, double *out)
{
    const size_t n = strlen(text);
    int days = 0, hours, minutes, seconds;

    if (n < 7 || n > 20 || strspn(text, "0123456789:-") != n || text[n - 3] != ':' || text[n - 6] != ':')
        return false;
    if (strchr(text, '-') == NULL) {
        if (sscanf(text, "%9d:%2d:%2d", &hours, &minutes, &seconds) != 3) return false;
    } else if (sscanf(text, "%9d-%2d:%2d:%2d", &days, &hours, &minutes, &seconds) != 4 || hours > 23) {
        return false;
    }
    *out = ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds;
    return hours >= 0 && minutes >= 0 && minutes < 60 && seconds >= 0 && seconds < 60;
}

ls_status ls_units_parse_seconds(const char *text, const char *what, double *out, ls_err *err)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    const bool digits = (text[0] >= '0' && text[0] <= '9') || text[0] == '.';
    char *end;
    double s = 0;
    const double number = strtod(text, &end);
    const char *unit = end + strspn(end, " ");

    for (size_t i = 0; digits && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0) s = number * units[i].seconds;
    if ((s > 0 || (digits && read_clock(text, &s))) && s > 0 && s <= 1e12) {
        *out = s;
        return LS_OK;
    }
    return ls_fail(err, LS_INVALID,
                   "%s: \"%s\" is no time; write a number above 0 and a unit, 90s, 45min, 6h or 3d, or "
                   "HH:MM:SS",
                   what, text);
}
