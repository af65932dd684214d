/* test_colours.c: runs of one page have colours that differ, on light and on dark paper, also for the colour
 * blind as far as so many can. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/whole.h"
#include "check.h"
#include "report/chart.h"

typedef struct lab {
    double l, a, b;
} lab;

static double linear(unsigned c)
{
    const double v = c / 255.0;

    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

/* The position of a colour in OKLab, where distances are about as large as they look. */
static lab oklab(unsigned rgb)
{
    const double r = linear(rgb >> 16 & 255), g = linear(rgb >> 8 & 255), b = linear(rgb & 255);
    const double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);

    return (lab){0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
                 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
                 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

static double distance(lab x, lab y)
{
    return sqrt((x.l - y.l) * (x.l - y.l) + (x.a - y.a) * (x.a - y.a) + (x.b - y.b) * (x.b - y.b));
}

/* The colours 1 to LS_CHART_COLOURS from `css` on. */
static void read_palette(const char *css, unsigned *out)
{
    for (int k = 1; k <= LS_CHART_COLOURS; k++) {
        char want[24];
        snprintf(want, sizeof want, ".c%d { color: #", k);
        const char *at = strstr(css, want);
        REQUIRE(at != NULL);
        out[k - 1] = (unsigned)strtoul(at + strlen(want), NULL, 16);
    }
}

static void check_palette(const unsigned *colours, double paper, double contrast)
{
    for (int i = 0; i < LS_CHART_COLOURS; i++) {
        CHECK(fabs(oklab(colours[i]).l - paper) > contrast);
        for (int k = 0; k < i; k++)
            if (!CHECK(distance(oklab(colours[i]), oklab(colours[k])) > 0.05))
                printf("colours %d and %d: #%06x, #%06x\n", k + 1, i + 1, colours[k], colours[i]);
    }
}

static void no_colour_repeats(void)
{
    unsigned light[LS_CHART_COLOURS], dark[LS_CHART_COLOURS];
    char *css = NULL;
    ls_err err = {0};
    size_t n;

    REQUIRE_OK(ls_whole_file(&css, &n, "web/style/chart.css", 1 << 20, &err), &err);
    read_palette(css, light);
    const char *at = strstr(css, "prefers-color-scheme: dark");
    REQUIRE(at != NULL);
    read_palette(at, dark);
    check_palette(light, 1, 0.2);
    check_palette(dark, 0.2, 0.3);
    ls_free(css);
}

int main(void)
{
    CHECK(LS_CHART_COLOURS >= 24);
    CHECK_RUN(no_colour_repeats);
    return CHECK_DONE();
}
