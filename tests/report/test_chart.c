/* test_chart.c: what is drawn, and where: coordinates of points against the axis, gaps, flags, bars, spans.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "report/report_internal.h"

static ls_text draw(const ls_chart *c)
{
    ls_text out = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_chart_svg(c, &out, &err), &err);
    return out;
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, part)) != NULL; p++) n++;
    return n;
}

/* The drawing has a mark at (x, y) of the figure's axes. */
static void check_mark(const lsi_figure *f, const char *svg, double x, double y)
{
    char want[80];

    snprintf(want, sizeof want, "cx=\"%.1f\" cy=\"%.1f\"", lsi_axis_at(&f->x, x), lsi_axis_at(&f->y, y));
    CHECK_CONTAINS(svg, want);
}

static void points_lie_on_their_axes(void)
{
    const double x[] = {1, 2, 4, 8}, y[] = {10, 20, 30, 25}, lo[] = {9, 18, 28, 20}, hi[] = {11, 23, 31, 30};
    const bool flag[] = {false, false, false, true};
    ls_chart_series s[] = {{.name = "measured",
                            .marks = true,
                            .whiskers = true,
                            .n = 4,
                            .x = x,
                            .y = y,
                            .lo = lo,
                            .hi = hi,
                            .flag = flag},
                           {.name = "ideal", .ideal = true, .n = 4, .x = x, .y = x}};
    ls_chart c = {.id = "speed",
                  .title = "Speed",
                  .x_label = "ranks",
                  .y_label = "samples/s",
                  .x_scale = LS_SCALE_LOG2,
                  .y_scale = LS_SCALE_FROM_ZERO,
                  .flag_name = "oversubscribed",
                  .series = s,
                  .n_series = 2};
    const lsi_figure f = lsi_figure_of(&c, LSI_ALONE);
    ls_text svg = draw(&c);
    char want[160];

    /* The axis itself: zero at the bottom, its end at the top, doubling is a fixed distance. */
    CHECK_NEAR(lsi_axis_at(&f.y, 0), f.bottom, 1e-9);
    CHECK_NEAR(f.y.hi, 35, 0);
    CHECK_NEAR(lsi_axis_at(&f.y, 35), f.top, 1e-9);
    CHECK_NEAR(lsi_axis_at(&f.y, 10), f.bottom - 10.0 / 35 * (f.bottom - f.top), 1e-9);
    CHECK_NEAR(lsi_axis_at(&f.x, 2) - lsi_axis_at(&f.x, 1), lsi_axis_at(&f.x, 8) - lsi_axis_at(&f.x, 4),
               1e-9);
    CHECK(lsi_axis_at(&f.x, 1) > f.left && lsi_axis_at(&f.x, 8) < f.right);

    for (int i = 0; i < 4; i++) check_mark(&f, svg.data, x[i], y[i]);
    snprintf(want, sizeof want, "M%.1f %.1fL%.1f %.1f", lsi_axis_at(&f.x, 2), lsi_axis_at(&f.y, 18),
             lsi_axis_at(&f.x, 2), lsi_axis_at(&f.y, 23));
    CHECK_CONTAINS(svg.data, want); /* the whisker at 2 */
    snprintf(want, sizeof want, "<path class=\"line\" d=\"M%.1f %.1fL%.1f %.1f", lsi_axis_at(&f.x, 1),
             lsi_axis_at(&f.y, 10), lsi_axis_at(&f.x, 2), lsi_axis_at(&f.y, 20));
    CHECK_CONTAINS(svg.data, want);
    CHECK_CONTAINS(svg.data, "<path class=\"line dashed\"");
    CHECK_CONTAINS(svg.data, ">measured: 25 at 8 (20 to 30), oversubscribed</title>");
    CHECK_EQ_INT(count(svg.data, "class=\"mark flag\""), 2); /* the point, and the legend's key */
    CHECK_CONTAINS(svg.data, ">oversubscribed</text>");
    ls_text_release(&svg);
}

static void missing_values_leave_gaps(void)
{
    const double x[] = {0, 1, 2, 3, 4, 5}, y[] = {1, 2, NAN, 3, INFINITY, 5};
    const double lo[] = {0.5, 1, 1, 2, 1, NAN}, hi[] = {2, 3, 3, 4, 9, 6};
    ls_chart_series s = {.name = "loss", .n = 6, .x = x, .y = y, .lo = lo, .hi = hi};
    ls_chart c = {.id = "loss", .title = "Loss", .x_label = "step", .series = &s, .n_series = 1};
    const lsi_figure f = lsi_figure_of(&c, LSI_ALONE);
    ls_text svg = draw(&c);
    char line[160];

    /* One stretch from 0 to 1; the points at 3 and 5 stand alone. */
    snprintf(line, sizeof line, "<path class=\"line\" d=\"M%.1f %.1fL%.1f %.1f\"/>", lsi_axis_at(&f.x, 0),
             lsi_axis_at(&f.y, 1), lsi_axis_at(&f.x, 1), lsi_axis_at(&f.y, 2));
    CHECK_CONTAINS(svg.data, line);
    CHECK_EQ_INT(count(svg.data, "<circle"), 2);
    check_mark(&f, svg.data, 3, 3);
    check_mark(&f, svg.data, 5, 5);
    CHECK_EQ_INT(count(svg.data, "class=\"band\""), 1);
    CHECK_NEAR(f.y.hi, 6, 0); /* the infinite value does not count */
    CHECK_EQ_INT(count(svg.data, "nan") + count(svg.data, "inf"), 0);
    ls_text_release(&svg);

    const double positive[] = {0, 1, 10, -1, 100, 1000};
    s = (ls_chart_series){.name = "loss", .n = 6, .x = x, .y = positive};
    c.y_scale = LS_SCALE_LOG10;
    svg = draw(&c);
    CHECK_EQ_INT(count(svg.data, "nan") + count(svg.data, "inf"), 0);
    CHECK_EQ_INT(count(strstr(svg.data, "class=\"plot\""), "M"), 2); /* from 1 to 2, and from 4 to 5 */
    ls_text_release(&svg);
}

static void a_wild_value_is_cut_off(void)
{
    const double x[] = {1, 2}, y[] = {0.5, 1}, lo[] = {0.4, 0}, hi[] = {0.6, 418};
    const ls_chart_series s = {
        .name = "efficiency", .whiskers = true, .n = 2, .x = x, .y = y, .lo = lo, .hi = hi};
    ls_chart c = {.id = "e", .title = "E", .y_scale = LS_SCALE_FROM_ZERO, .series = &s, .n_series = 1};

    CHECK_NEAR(lsi_figure_of(&c, LSI_ALONE).y.hi, 500, 0);
    c.y_most = 2;
    CHECK_NEAR(lsi_figure_of(&c, LSI_ALONE).y.hi, 2, 0);
    c.y_most = 1000; /* has nothing to cut off */
    CHECK_NEAR(lsi_figure_of(&c, LSI_ALONE).y.hi, 500, 0);
}

/* Every name of the legend is whole, inside the figure, and beside no other, in windows and on phones. */
static void legends_are_whole(void)
{
    static const char *const names[] = {"mnist-10k-augmented-20261115-115000-44cb",
                                        "mnist-10k-augmented-20261115-115001-d81e", "b", "c"};
    static const double x[] = {1, 2};
    ls_chart_series s[8];
    const ls_chart c = {.id = "l", .title = "L", .series = s, .n_series = 8};

    for (int k = 0; k < 8; k++)
        s[k] = (ls_chart_series){.name = "part",
                                 .key = names[k / 2],
                                 .colour = k / 2 + 1,
                                 .dashed = k % 2,
                                 .n = 2,
                                 .x = x,
                                 .y = x};
    for (lsi_form form = LSI_WIDE; form <= LSI_ALONE; form++) {
        const lsi_figure f = lsi_figure_of(&c, form);
        double end = 0, line = 0;
        ls_text svg = {0};
        ls_err err = {0};
        int n = 0;
        REQUIRE_OK(lsi_chart_draw(&c, form, &svg, &err), &err);
        for (const char *p = svg.data; (p = strstr(p, "class=\"key")) != NULL; p++, n++) {
            const char *text = strstr(p, "<text");
            double at = 0, y = 0;
            REQUIRE(n < 4 && sscanf(text, "<text x=\"%lf\" y=\"%lf\">", &at, &y) == 2);
            text = strchr(text, '>') + 1;
            CHECK(strncmp(text, names[n], strlen(names[n])) == 0 && text[strlen(names[n])] == '<');
            CHECK(y > line || at >= end);
            end = at + LSI_LETTER * (double)strlen(names[n]);
            line = y;
            CHECK(end <= f.width && y < f.top);
        }
        CHECK_EQ_INT(n, 4); /* one for both curves of a run */
        CHECK_CONTAINS(svg.data, "data-i=\"2 3\"");
        ls_text_release(&svg);
    }
    /* A name that no line holds keeps both its ends. */
    char lengthy[301], short_end[8] = "";
    memset(lengthy, 'x', 300);
    memcpy(lengthy, "begin", 5);
    memcpy(lengthy + 297, "end", 4);
    s[0].key = lengthy;
    s[1].key = lengthy;
    ls_text svg = draw(&c);
    const char *dots = strstr(svg.data, "\xe2\x80\xa6");
    REQUIRE(dots != NULL);
    snprintf(short_end, sizeof short_end, "%.7s", strstr(dots, "end<"));
    CHECK_EQ_STR(short_end, "end</te");
    ls_text_release(&svg);
}

/* A chart's letters keep their size on a phone: it has a drawing of its own. */
static void phones_have_a_drawing_of_their_own(void)
{
    static const double x[] = {0, 10}, y[] = {0, 62000};
    const ls_chart_series s = {.name = "rate", .n = 2, .x = x, .y = y};
    const ls_chart c = {.id = "r",
                        .title = "A title that is longer than a phone is wide, by some words",
                        .x_scale = LS_SCALE_FROM_ZERO,
                        .series = &s,
                        .n_series = 1};
    const lsi_figure f = lsi_figure_of(&c, LSI_NARROW);
    ls_text svg = {0};
    ls_err err = {0};

    CHECK(f.width <= 360 && f.right <= f.width && f.right - f.left > 200);
    CHECK(f.x.n_ticks >= 2 && f.x.n_ticks <= 6);
    REQUIRE_OK(lsi_chart_draw(&c, LSI_NARROW, &svg, &err), &err);
    CHECK_CONTAINS(svg.data, "class=\"chart narrow\" viewBox=\"0 0 350 ");
    CHECK_CONTAINS(svg.data, "\xe2\x80\xa6");
    ls_text_release(&svg);
}

static void little_data(void)
{
    const double x[] = {3, 3, 3}, y[] = {7, 7, 7};
    ls_chart_series s = {.name = "one", .n = 1, .x = x, .y = y};
    ls_chart c = {.id = "few", .title = "Few", .series = &s};
    ls_text svg = draw(&c);

    CHECK_CONTAINS(svg.data, ">no data</text>");
    ls_text_release(&svg);
    c.n_series = 1;
    svg = draw(&c);
    CHECK_EQ_INT(count(svg.data, "<circle"), 1);
    CHECK_EQ_INT(count(svg.data, "no data") + count(svg.data, "nan"), 0);
    ls_text_release(&svg);
    s.n = 3; /* equal points */
    svg = draw(&c);
    CHECK_EQ_INT(count(svg.data, "nan"), 0);
    ls_text_release(&svg);
    s.n = 0;
    svg = draw(&c);
    CHECK_CONTAINS(svg.data, ">no data</text>");
    ls_text_release(&svg);
}

/* A long curve is thinned, and keeps its ends, its extremes and its gaps. */
static void long_curves(void)
{
    enum { N = 100000 };
    double *x = ls_alloc(LS_MEM_TEST, N * sizeof *x), *y = ls_alloc(LS_MEM_TEST, N * sizeof *y);
    int64_t *index, n;
    ls_err err = {0};
    bool peak = false, gap = false;

    REQUIRE(x != NULL && y != NULL);
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = sin(i * 0.001);
    }
    y[54321] = 99;
    y[77777] = NAN;
    const ls_chart_series s = {.name = "long", .n = N, .x = x, .y = y};
    REQUIRE_OK(lsi_thin(&s, LSI_WIDE, &index, &n, &err), &err);
    CHECK(n >= 400 && n <= 2000);
    for (int64_t i = 0; i < n; i++) {
        peak |= index[i] == 54321;
        gap |= index[i] == 77777;
        if (i > 0 && !CHECK(index[i] > index[i - 1])) break;
    }
    CHECK(peak && gap);
    CHECK_EQ_INT(index[0], 0);
    CHECK_EQ_INT(index[n - 1], N - 1);
    ls_free(index);
    ls_free(x);
    ls_free(y);
}

static void check_rect(const lsi_figure *f, const char *svg, double begin, double end, int row)
{
    const double x = lsi_axis_at(&f->x, begin);
    char want[120];

    snprintf(want, sizeof want, "x=\"%.2f\" y=\"%.1f\" width=\"%.2f\"", x, lsi_row_top(f, row),
             lsi_axis_at(&f->x, end) - x);
    CHECK_CONTAINS(svg, want);
}

static void bars_are_stacked(void)
{
    const double a[] = {1, 2}, b[] = {3, NAN}, d[] = {-1, 4};
    const char *const names[] = {"first", "second"};
    ls_chart_series s[] = {{.name = "setup", .n = 2, .y = a},
                           {.name = "compute", .n = 2, .y = b},
                           {.name = "idle", .n = 2, .y = d}};
    ls_chart c = {.id = "ledger",
                  .title = "Ledger",
                  .kind = LS_CHART_BARS,
                  .series = s,
                  .n_series = 3,
                  .categories = names,
                  .n_categories = 2};
    const lsi_figure f = lsi_figure_of(&c, LSI_ALONE);
    ls_text svg = draw(&c);

    CHECK_NEAR(lsi_axis_at(&f.x, 0), f.left, 1e-9);
    check_rect(&f, svg.data, 0, 1, 0);
    check_rect(&f, svg.data, 1, 4, 0);
    check_rect(&f, svg.data, 0, 2, 1);
    check_rect(&f, svg.data, 2, 6, 1); /* a missing part is no part */
    CHECK_EQ_INT(count(svg.data, "<rect class=\"area\" x") - 3, 4);
    CHECK_CONTAINS(svg.data, "first, compute: 3 (75.0 %)");
    CHECK_CONTAINS(svg.data, ">6</text>");
    ls_text_release(&svg);
}

static void spans_lie_in_lanes(void)
{
    const char *const lanes[] = {"rank 0", "rank 1"};
    const ls_chart_series s[] = {{.name = "compute"}, {.name = "waiting"}};
    const ls_chart_span spans[] = {{0, 0, 0, 2, "conv <1>"},
                                   {1, 1, 1, 4, "wait"},
                                   {7, 0, 0, 1, "no lane"},
                                   {0, 0, 3, 2, "backwards"},
                                   {0, 0, NAN, 2, "never"}};
    ls_chart c = {.id = "step",
                  .title = "Step",
                  .kind = LS_CHART_TIMELINE,
                  .series = s,
                  .n_series = 2,
                  .categories = lanes,
                  .n_categories = 2,
                  .spans = spans,
                  .n_spans = 5};
    const lsi_figure f = lsi_figure_of(&c, LSI_ALONE);
    ls_text svg = draw(&c);

    CHECK_NEAR(lsi_axis_at(&f.x, 4), f.right, 1e-9);
    check_rect(&f, svg.data, 0, 2, 0);
    check_rect(&f, svg.data, 1, 4, 1);
    CHECK_CONTAINS(svg.data, "<title>conv &lt;1&gt;: 2</title>");
    CHECK_EQ_INT(count(svg.data, "</title></rect>"), 2);
    ls_text_release(&svg);
}

int main(void)
{
    CHECK_RUN(points_lie_on_their_axes);
    CHECK_RUN(missing_values_leave_gaps);
    CHECK_RUN(a_wild_value_is_cut_off);
    CHECK_RUN(legends_are_whole);
    CHECK_RUN(phones_have_a_drawing_of_their_own);
    CHECK_RUN(little_data);
    CHECK_RUN(long_curves);
    CHECK_RUN(bars_are_stacked);
    CHECK_RUN(spans_lie_in_lanes);
    return CHECK_DONE();
}
