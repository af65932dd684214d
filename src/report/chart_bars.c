/* chart_bars.c: what lies in rows: stacked bars, and spans of time in lanes. */
#include <math.h>

#include "report/report_internal.h"

static void add_rect(const lsi_figure *f, ls_text *out, double begin, double end, int row)
{
    const double x = lsi_axis_at(&f->x, begin);

    ls_text_add(out, "<rect class=\"area\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\">", x,
                lsi_row_top(f, row), lsi_axis_at(&f->x, end) - x, lsi_row_height(f));
}

static double part_of(const ls_chart_series *s, int k)
{
    return k < s->n && isfinite(s->y[k]) && s->y[k] > 0 ? s->y[k] : 0;
}

static double total(const ls_chart *c, int k, int series)
{
    double sum = 0;

    for (int i = 0; i < series; i++) sum += part_of(&c->series[i], k);
    return sum;
}

static void add_bar_tip(const ls_chart *c, int i, int k, ls_text *out)
{
    const double v = part_of(&c->series[i], k), all = total(c, k, c->n_series);
    char buf[LSI_NUMBER_MAX];

    ls_text_add(out, "<title>");
    lsi_xml_text(out, c->categories[k]);
    ls_text_add(out, ", ");
    lsi_xml_text(out, c->series[i].name);
    ls_text_add(out, ": %s (%.1f %%)</title></rect>\n", lsi_number_text(v, 4, buf), 100 * v / all);
}

void lsi_draw_bars(const lsi_figure *f, ls_text *out)
{
    const ls_chart *c = f->c;

    for (int i = 0; i < c->n_series; i++) {
        ls_text_add(out, "<g class=\"series c%d\" data-i=\"%d\">\n", lsi_colour(c, i), i);
        for (int k = 0; k < c->n_categories; k++) {
            const double from = total(c, k, i), v = part_of(&c->series[i], k);
            if (v <= 0) continue;
            add_rect(f, out, from, from + v, k);
            add_bar_tip(c, i, k, out);
        }
        ls_text_add(out, "</g>\n");
    }
    /* Outside the clip would be right for the longest bar; the group ends, and one without a clip begins. */
    ls_text_add(out, "</g>\n<g>\n");
    for (int k = 0; k < c->n_categories; k++) {
        const double sum = total(c, k, c->n_series);
        char buf[LSI_NUMBER_MAX];
        if (sum > 0)
            ls_text_add(out, "<text class=\"sum\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                        lsi_axis_at(&f->x, sum) + 6, lsi_row_top(f, k) + lsi_row_height(f) / 2 + 4,
                        lsi_number_text(sum, 4, buf));
    }
}

void lsi_draw_spans(const lsi_figure *f, ls_text *out)
{
    const ls_chart *c = f->c;
    char buf[LSI_NUMBER_MAX];

    for (int i = 0; i < c->n_series; i++) {
        ls_text_add(out, "<g class=\"series c%d\" data-i=\"%d\">\n", lsi_colour(c, i), i);
        for (int64_t k = 0; k < c->n_spans; k++) {
            const ls_chart_span *s = &c->spans[k];
            if (s->series != i || s->lane < 0 || s->lane >= c->n_categories || !isfinite(s->begin) ||
                !isfinite(s->end) || s->end < s->begin)
                continue;
            add_rect(f, out, s->begin, s->end, s->lane);
            ls_text_add(out, "<title>");
            lsi_xml_text(out, s->name);
            ls_text_add(out, ": %s</title></rect>\n", lsi_number_text(s->end - s->begin, 4, buf));
        }
        ls_text_add(out, "</g>\n");
    }
}
