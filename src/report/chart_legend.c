/* chart_legend.c: what the colours and signs of a figure stand for.
 *
 * Names are never cut to keep the legend short: a key that does not fit the line begins the next, and only a
 * name that is longer than the figure is wide loses its middle. */
#include <string.h>

#include "report/report_internal.h"

static const double SIGN = 26, GAP = 18, LINE = 19;

static const char *key_text(const ls_chart_series *s)
{
    return s->key != NULL ? s->key : s->name;
}

/* Do both have one entry? */
static bool is_shared(const ls_chart_series *a, const ls_chart_series *b)
{
    return a->key != NULL && b->key != NULL && strcmp(a->key, b->key) == 0;
}

/* The first series of its entry, which it stands for. */
static bool is_first(const ls_chart *c, int k)
{
    for (int i = 0; i < k; i++)
        if (is_shared(&c->series[i], &c->series[k])) return false;
    return true;
}

static int count_keys(const ls_chart *c)
{
    int n = 0;

    for (int k = 0; k < c->n_series; k++) n += is_first(c, k);
    return n;
}

static int most_shown(const lsi_figure *f)
{
    return (int)((f->width - SIGN) / LSI_LETTER);
}

static double key_width(const lsi_figure *f, const char *text)
{
    const int n = lsi_characters(text), most = most_shown(f);

    return SIGN + LSI_LETTER * (n < most ? n : most);
}

/* Calls `fn`, unless it is NULL, for every entry: its first series, or -1: flagged points.  Returns the y
 * below the last line. */
typedef void (*key_fn)(const lsi_figure *f, int series, double x, double y, ls_text *out);

static double each_key(const lsi_figure *f, key_fn fn, ls_text *out)
{
    const ls_chart *c = f->c;
    double x = 0, y = LSI_TITLE + 14;

    if (count_keys(c) < 2 && !f->flagged) return LSI_TITLE;
    for (int k = 0; k <= c->n_series; k++) {
        const bool last = k == c->n_series;
        if (last ? !f->flagged : !is_first(c, k)) continue;
        const double width = key_width(f, last ? c->flag_name : key_text(&c->series[k]));
        if (x + width > f->width && x > 0) {
            x = 0;
            y += LINE;
        }
        if (fn != NULL) fn(f, last ? -1 : k, x, y, out);
        x += width + GAP;
    }
    return y + 8;
}

double lsi_legend_end(const lsi_figure *f)
{
    return each_key(f, NULL, NULL);
}

/* The series that the entry of series k hides and shows. */
static void add_members(const ls_chart *c, int k, ls_text *out)
{
    ls_text_add(out, "%d", k);
    for (int i = k + 1; i < c->n_series; i++)
        if (is_shared(&c->series[i], &c->series[k])) ls_text_add(out, " %d", i);
}

/* A line is dashed, and a point a dot, where all that the entry stands for are. */
static void add_sign(const ls_chart *c, int k, double x, double y, ls_text *out)
{
    bool dashed = true, dot = true;

    for (int i = k; i < c->n_series; i++) {
        const ls_chart_series *s = &c->series[i];
        if (i != k && !is_shared(s, &c->series[k])) continue;
        dashed &= s->dashed || s->ideal;
        dot &= s->n == 1 || s->dots;
    }
    if (c->kind != LS_CHART_LINES)
        ls_text_add(out, "<rect class=\"area\" x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"11\" rx=\"2\"/>",
                    x + 5, y - 10);
    else if (dot)
        ls_text_add(out, "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"/>", x + 10, y - 4);
    else
        ls_text_add(out, "<path class=\"line%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", dashed ? " dashed" : "", x,
                    y - 4, x + 20, y - 4);
}

static void draw_key(const lsi_figure *f, int k, double x, double y, ls_text *out)
{
    const ls_chart *c = f->c;

    if (k < 0) {
        ls_text_add(out, "<g class=\"key c0\"><circle class=\"mark flag\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>",
                    x + 10, y - 4);
    } else {
        ls_text_add(out, "<g class=\"key c%d\" data-i=\"", lsi_colour(c, k));
        add_members(c, k, out);
        ls_text_add(out, "\">");
        add_sign(c, k, x, y, out);
    }
    ls_text_add(out, "<text x=\"%.1f\" y=\"%.1f\">", x + SIGN, y);
    lsi_xml_short(out, k < 0 ? c->flag_name : key_text(&c->series[k]), most_shown(f));
    ls_text_add(out, "</text></g>\n");
}

void lsi_draw_legend(const lsi_figure *f, ls_text *out)
{
    each_key(f, draw_key, out);
}
