/* chart.c: a figure's layout: title, legend, axes, and the plot between them; and what the script is told. */
#include "report/chart.h"

#include <math.h>

#include "base/alloc.h"
#include "report/report_internal.h"
#include "style.h" /* made by the build: style_chart_css, from web/style */

/* Characters of a bar's or lane's name beside the plot; pixels. */
enum {
    NAME_MOST = 44,
    NAME_MOST_NARROW = 16,
    PLOT_HEIGHT = 250,
    PLOT_HEIGHT_NARROW = 210,
    AXIS = 40,
    PADDING = 14
};
static const double TITLE_LETTER = 8.8;

int lsi_colour(const ls_chart *c, int i)
{
    int before = 0;

    if (c->series[i].ideal) return 0;
    if (c->series[i].colour > 0) return (c->series[i].colour - 1) % LS_CHART_COLOURS + 1;
    for (int k = 0; k < i; k++) before += !c->series[k].ideal;
    return before % LS_CHART_COLOURS + 1;
}

/* -- layout ------------------------------------------------------------------------------------------------
 */

static double text_width(const char *text, int max)
{
    const int n = lsi_characters(text);

    return LSI_LETTER * (n < max ? n : max);
}

static void extend(lsi_extent *e, ls_chart_scale scale, double v)
{
    if (!lsi_drawable(scale, v)) return;
    if (e->lo > e->hi) {
        e->lo = e->hi = v;
        e->whole = true;
    }
    if (v < e->lo) e->lo = v;
    if (v > e->hi) e->hi = v;
    if (v != floor(v)) e->whole = false;
}

static const lsi_extent nothing = {1, 0, false};

static void extend_by_series(const ls_chart *c, const ls_chart_series *s, lsi_extent *x, lsi_extent *y)
{
    for (int64_t i = 0; i < s->n; i++) {
        if (!lsi_drawable(c->x_scale, s->x[i]) || !lsi_drawable(c->y_scale, s->y[i])) continue;
        extend(x, c->x_scale, s->x[i]);
        extend(y, c->y_scale, s->y[i]);
        if (s->lo != NULL) extend(y, c->y_scale, s->lo[i]);
        if (s->hi != NULL) extend(y, c->y_scale, s->hi[i]);
    }
}

static bool any_flag(const ls_chart *c)
{
    for (int k = 0; k < c->n_series; k++)
        for (int64_t i = 0; c->series[k].flag != NULL && i < c->series[k].n; i++)
            if (c->series[k].flag[i]) return true;
    return false;
}

/* Of the x axis. */
static int wanted_ticks(const lsi_figure *f)
{
    return f->form == LSI_NARROW ? 4 : 7;
}

static int name_most(const lsi_figure *f)
{
    return f->form == LSI_NARROW ? NAME_MOST_NARROW : NAME_MOST;
}

static void fit_lines(lsi_figure *f)
{
    const ls_chart *c = f->c;
    lsi_extent x = nothing, y = nothing;
    bool marks = false;

    for (int k = 0; k < c->n_series; k++) {
        extend_by_series(c, &c->series[k], &x, &y);
        marks |= c->series[k].marks;
    }
    f->empty = x.lo > x.hi;
    if (c->y_most > 0 && y.lo < c->y_most && y.hi > c->y_most) y.hi = c->y_most;
    f->x = lsi_axis_fit(c->x_scale, x, wanted_ticks(f), false, marks ? 0.03 : 0);
    f->y = lsi_axis_fit(c->y_scale, y, 5, true, 0);
}

/* Bars and lanes begin at zero. */
static void fit_rows(lsi_figure *f)
{
    const ls_chart *c = f->c;
    lsi_extent x = nothing;

    for (int k = 0; k < c->n_categories && c->kind == LS_CHART_BARS; k++) {
        double sum = 0;
        for (int i = 0; i < c->n_series; i++)
            if (k < c->series[i].n && isfinite(c->series[i].y[k]) && c->series[i].y[k] > 0)
                sum += c->series[i].y[k];
        if (sum > 0) extend(&x, LS_SCALE_FROM_ZERO, sum);
    }
    for (int64_t i = 0; i < c->n_spans && c->kind == LS_CHART_TIMELINE; i++) {
        if (!isfinite(c->spans[i].begin) || !isfinite(c->spans[i].end)) continue;
        extend(&x, LS_SCALE_FITTED, c->spans[i].begin);
        extend(&x, LS_SCALE_FITTED, c->spans[i].end);
    }
    f->empty = x.lo > x.hi;
    x.whole = false;
    f->x = lsi_axis_fit(LS_SCALE_FROM_ZERO, x, wanted_ticks(f), false, 0);
}

static double label_width(const lsi_figure *f)
{
    char buf[LSI_NUMBER_MAX];
    double most = 0;

    if (f->c->kind == LS_CHART_LINES)
        for (int i = 0; i < f->y.n_ticks; i++)
            most = fmax(most, text_width(lsi_tick_text(&f->y, i, buf), NAME_MOST));
    else
        for (int i = 0; i < f->c->n_categories; i++)
            most = fmax(most, text_width(f->c->categories[i], name_most(f)));
    return most;
}

double lsi_row_height(const lsi_figure *f)
{
    return f->c->kind == LS_CHART_BARS ? 20 : 24;
}

double lsi_row_top(const lsi_figure *f, int k)
{
    return f->top + 6 + k * (lsi_row_height(f) + 8);
}

lsi_figure lsi_figure_of(const ls_chart *c, lsi_form form)
{
    lsi_figure f = {.c = c,
                    .form = form,
                    .width = form == LSI_NARROW ? LSI_WIDTH_NARROW : LSI_WIDTH,
                    .flagged = c->kind == LS_CHART_LINES && c->flag_name != NULL && any_flag(c)};
    double plot = form == LSI_NARROW ? PLOT_HEIGHT_NARROW : PLOT_HEIGHT;

    f.top = lsi_legend_end(&f) + (c->y_label != NULL && c->y_label[0] != '\0' ? 28 : 12);
    if (c->kind == LS_CHART_LINES) {
        fit_lines(&f);
    } else {
        fit_rows(&f);
        plot = 12 + c->n_categories * (lsi_row_height(&f) + 8);
    }
    f.left = label_width(&f) + 10;
    /* The totals of bars stand at their ends. */
    f.right = f.width - (c->kind == LS_CHART_BARS ? 68 : 12);
    f.bottom = f.top + plot;
    f.height = f.bottom + AXIS;
    f.x.from = f.left;
    f.x.to = f.right;
    f.y.from = f.bottom;
    f.y.to = f.top;
    return f;
}

/* -- drawing -----------------------------------------------------------------------------------------------
 */

/* Lines of the grid with their numbers, in a group of their own: the script draws it again when it zooms. */
static void draw_axes(const lsi_figure *f, ls_text *out)
{
    char buf[LSI_NUMBER_MAX];

    ls_text_add(out, "<g class=\"axis x\">\n");
    for (int i = 0; i < f->x.n_ticks; i++) {
        const double at = lsi_axis_at(&f->x, f->x.tick[i]);
        ls_text_add(out,
                    "<path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\"/><text class=\"mid\" x=\"%.1f\" "
                    "y=\"%.1f\">%s</text>\n",
                    at, f->top, at, f->bottom, at, f->bottom + 17, lsi_tick_text(&f->x, i, buf));
    }
    ls_text_add(out, "</g>\n<g class=\"axis y\">\n");
    for (int i = 0; i < f->y.n_ticks && f->c->kind == LS_CHART_LINES; i++) {
        const double at = lsi_axis_at(&f->y, f->y.tick[i]);
        ls_text_add(out,
                    "<path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\"/><text class=\"end\" x=\"%.1f\" "
                    "y=\"%.1f\">%s</text>\n",
                    f->left, at, f->right, at, f->left - 8, at + 4, lsi_tick_text(&f->y, i, buf));
    }
    for (int i = 0; i < f->c->n_categories && f->c->kind != LS_CHART_LINES; i++) {
        ls_text_add(out, "<text class=\"end name\" x=\"%.1f\" y=\"%.1f\">", f->left - 8,
                    lsi_row_top(f, i) + lsi_row_height(f) / 2 + 4);
        lsi_xml_short(out, f->c->categories[i], name_most(f));
        ls_text_add(out, "</text>\n");
    }
    ls_text_add(out, "</g>\n<path class=\"base\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", f->left, f->bottom,
                f->right, f->bottom);
}

/* At most `most` characters, which is what fits. */
static void draw_text(ls_text *out, const char *class, double x, double y, const char *text, double most)
{
    if (text == NULL || text[0] == '\0') return;
    ls_text_add(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    lsi_xml_short(out, text, (int)most);
    ls_text_add(out, "</text>\n");
}

static ls_status draw_plot(const lsi_figure *f, ls_text *out, ls_err *err)
{
    const char *narrow = f->form == LSI_NARROW ? "-narrow" : ""; /* ids are those of the whole page */
    ls_status st = LS_OK;

    /* The clip keeps zoomed curves inside; a little room lets marks at the border be whole. */
    ls_text_add(
        out,
        "<clipPath id=\"clip%s-%s\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n"
        "<g class=\"plot\" clip-path=\"url(#clip%s-%s)\">\n",
        narrow, f->c->id, f->left - 5, f->top - 5, f->right - f->left + 10, f->bottom - f->top + 10, narrow,
        f->c->id);
    switch (f->c->kind) {
    case LS_CHART_LINES: LS_TRY(lsi_draw_lines(f, out, err)); break;
    case LS_CHART_BARS: lsi_draw_bars(f, out); break;
    case LS_CHART_TIMELINE: lsi_draw_spans(f, out); break;
    }
    ls_text_add(out, "</g>\n");
    if (f->empty)
        draw_text(out, "mid none", (f->left + f->right) / 2, (f->top + f->bottom) / 2 + 4, "no data",
                  NAME_MOST);
out:
    return st;
}

/* The element's beginning. */
static void open_svg(const lsi_figure *f, ls_text *out)
{
    if (f->form == LSI_ALONE) { /* with some room around it, which the page gives otherwise */
        const double width = f->width + 2 * PADDING, height = f->height + 2 * PADDING;
        ls_text_add(
            out,
            "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"%d %d %.0f %.0f\"",
            width, height, -PADDING, -PADDING, width, height);
    } else {
        ls_text_add(out, "<svg class=\"chart %s\" viewBox=\"0 0 %.0f %.0f\"",
                    f->form == LSI_NARROW ? "narrow" : "wide", f->width, f->height);
    }
    ls_text_add(out, " role=\"img\" aria-label=\"");
    lsi_xml_text(out, f->c->title);
    ls_text_add(out, "\">\n");
    if (f->form == LSI_ALONE)
        ls_text_add(out,
                    "<style>\n%s</style>\n<rect class=\"paper\" x=\"%d\" y=\"%d\" width=\"100%%\" "
                    "height=\"100%%\"/>\n",
                    style_chart_css, -PADDING, -PADDING);
}

ls_status lsi_chart_draw(const ls_chart *c, lsi_form form, ls_text *out, ls_err *err)
{
    const lsi_figure f = lsi_figure_of(c, form);
    const double letters = f.width / LSI_LETTER;
    ls_status st = LS_OK;

    open_svg(&f, out);
    draw_text(out, "title", 0, 16, c->title, f.width / TITLE_LETTER);
    lsi_draw_legend(&f, out);
    draw_text(out, "label", 0, f.top - 12, c->y_label, letters);
    draw_text(out, "label mid", (f.left + f.right) / 2, f.bottom + 35, c->x_label, letters);
    draw_axes(&f, out);
    LS_TRY(draw_plot(&f, out, err));
    ls_text_add(out, "</svg>\n");
    if (out->failed) st = ls_fail(err, LS_NOMEM, "no memory for chart \"%s\"", c->id);
out:
    return st;
}

ls_status ls_chart_svg(const ls_chart *c, ls_text *out, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(lsi_check_id(c->id, err));
    LS_TRY(lsi_chart_draw(c, LSI_ALONE, out, err));
out:
    return st;
}
