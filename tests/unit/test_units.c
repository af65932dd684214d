/* test_units.c: rates and times as people read them. */
#include <math.h>

#include "base/units.h"
#include "check.h"

static void rates(void)
{
    char buf[LS_UNITS_TEXT];

    CHECK_EQ_STR(ls_units_rate(0, buf), "0");
    CHECK_EQ_STR(ls_units_rate(0.012345, buf), "0.01235");
    CHECK_EQ_STR(ls_units_rate(0.99994, buf), "0.9999");
    CHECK_EQ_STR(ls_units_rate(0.99996, buf), "1.000");
    CHECK_EQ_STR(ls_units_rate(9.8714, buf), "9.871");
    CHECK_EQ_STR(ls_units_rate(9.99951, buf), "10.00");
    CHECK_EQ_STR(ls_units_rate(812.44, buf), "812.4");
    CHECK_EQ_STR(ls_units_rate(999.96, buf), "1,000");
    CHECK_EQ_STR(ls_units_rate(12345.4, buf), "12,345");
    CHECK_EQ_STR(ls_units_rate(2.5e9, buf), "2,500,000,000");
    CHECK_EQ_STR(ls_units_rate(1e20, buf), "1e+20");
    CHECK_EQ_STR(ls_units_rate(-1234.5, buf), "-1,235");
    CHECK_EQ_STR(ls_units_rate(NAN, buf), "-");
    CHECK_EQ_STR(ls_units_rate(INFINITY, buf), "-");
}

static void measured(void)
{
    char buf[LS_UNITS_TEXT];

    CHECK_EQ_STR(ls_units_seconds(0, buf), "0 s");
    CHECK_EQ_STR(ls_units_seconds(3e-9, buf), "0.003 us");
    CHECK_EQ_STR(ls_units_seconds(12.3e-6, buf), "12.30 us");
    CHECK_EQ_STR(ls_units_seconds(999.96e-6, buf), "1.000 ms");
    CHECK_EQ_STR(ls_units_seconds(0.81244, buf), "812.4 ms");
    CHECK_EQ_STR(ls_units_seconds(1.2344, buf), "1.234 s");
    CHECK_EQ_STR(ls_units_seconds(83.2149, buf), "83.21 s");
    CHECK_EQ_STR(ls_units_seconds(86400, buf), "86400 s");
    CHECK_EQ_STR(ls_units_seconds(NAN, buf), "-");
}

static void waited(void)
{
    char buf[LS_UNITS_TEXT];

    CHECK_EQ_STR(ls_units_clock(0.4, buf), "0:00");
    CHECK_EQ_STR(ls_units_clock(41.5, buf), "0:42");
    CHECK_EQ_STR(ls_units_clock(723, buf), "12:03");
    CHECK_EQ_STR(ls_units_clock(3599.6, buf), "1:00:00");
    CHECK_EQ_STR(ls_units_clock(3723, buf), "1:02:03");
    CHECK_EQ_STR(ls_units_clock(2 * 86400 + 3 * 3600 + 240, buf), "2d 03:04 h");
    CHECK_EQ_STR(ls_units_clock(-1, buf), "-");
    CHECK_EQ_STR(ls_units_clock(NAN, buf), "-");
}

static void read_back(void)
{
    static const struct {
        const char *text;
        double s;
    } good[] = {{"90s", 90},           {"1.5h", 5400},         {"45 min", 2700},
                {"3d", 259200},        {"250ms", 0.25},        {"0:01:30", 90},
                {"100:00:00", 360000}, {"1-12:00:00", 129600}, {".5s", 0.5}};
    static const char *const bad[] = {"",       "90",      "h",     "-3h",      "0s",        "nan s",
                                      "inf h",  "3 days",  "1:30",  "1:60:00",  "0:00:00",   "1-25:00:00",
                                      "1:2:3",  "1:-1:00", "1e13s", "3h 20min", "--1:00:00", "1-2-03:00:00",
                                      ":::::::"};
    double s;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ls_err err = {0};
        CHECK_OK(ls_units_parse_seconds(good[i].text, "--deadline", &s, &err), &err);
        CHECK_NEAR(s, good[i].s, 1e-9 * good[i].s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_err err = {0};
        CHECK_STATUS(ls_units_parse_seconds(bad[i], "--deadline", &s, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, "--deadline");
    }
}

int main(void)
{
    CHECK_RUN(rates);
    CHECK_RUN(measured);
    CHECK_RUN(waited);
    CHECK_RUN(read_back);
    return CHECK_DONE();
}
