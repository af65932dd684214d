/* chart_json.c: what the page's script is told about a chart: its axes, and the points that are drawn. */
#include <math.h>

#include "base/alloc.h"
#include "report/report_internal.h"

static void add_number(ls_text *out, bool first, double v)
{
    if (!first) ls_text_add(out, ",");
    if (isfinite(v))
        ls_text_add(out, "%.7g", v);
    else
        ls_text_add(out, "null");
}

static void add_column(ls_text *out, const char *name, const double *v, const int64_t *index, int64_t n)
{
    ls_text_add(out, ",\"%s\":[", name);
    for (int64_t i = 0; i < n; i++) add_number(out, i == 0, v[index[i]]);
    ls_text_add(out, "]");
}

static ls_status add_series(const ls_chart *c, const ls_chart_series *s, ls_text *out, ls_err *err)
{
    int64_t *index = NULL, n = 0;
    ls_status st = LS_OK;
    bool first = true;

    ls_text_add(out, "{\"name\":");
    lsi_script_text(out, s->name);
    if (c->kind == LS_CHART_LINES) {
        LS_TRY(lsi_thin(s, LSI_WIDE, &index, &n, err));
        add_column(out, "x", s->x, index, n);
        add_column(out, "y", s->y, index, n);
        if (s->lo != NULL) add_column(out, "lo", s->lo, index, n);
        if (s->hi != NULL) add_column(out, "hi", s->hi, index, n);
    }
    if (c->kind == LS_CHART_LINES && s->flag != NULL) {
        ls_text_add(out, ",\"flag\":[");
        for (int64_t i = 0; i < n; i++, first = false)
            ls_text_add(out, first ? "%d" : ",%d", s->flag[index[i]] ? 1 : 0);
        ls_text_add(out, "]");
    }
    ls_text_add(out, "}");
out:
    ls_free(index);
    return st;
}

static void add_axis(ls_text *out, const char *name, const lsi_axis *a)
{
    ls_text_add(out, "\"%s\":{\"base\":%d,\"lo\":%.9g,\"hi\":%.9g,\"from\":%.1f,\"to\":%.1f},", name,
                a->scale == LS_SCALE_LOG2    ? 2
                : a->scale == LS_SCALE_LOG10 ? 10
                                             : 0,
                a->lo, a->hi, a->from, a->to);
}

/* Where a drawing has its plot. */
static void add_view(ls_text *out, const ls_chart *c, lsi_form form)
{
    const lsi_figure f = lsi_figure_of(c, form);

    ls_text_add(out, "{");
    add_axis(out, "x", &f.x);
    if (c->kind == LS_CHART_LINES) add_axis(out, "y", &f.y);
    ls_text_add(out, "\"top\":%.1f,\"bottom\":%.1f}", f.top, f.bottom);
}

ls_status lsi_chart_json(const ls_chart *c, ls_text *out, ls_err *err)
{
    static const char *const kinds[] = {"lines", "bars", "timeline"};
    ls_status st = LS_OK;

    ls_text_add(out, "{\"kind\":\"%s\",\"views\":[", kinds[c->kind]);
    add_view(out, c, LSI_WIDE);
    ls_text_add(out, ",");
    add_view(out, c, LSI_NARROW);
    ls_text_add(out, "],\"xLabel\":");
    lsi_script_text(out, c->x_label);
    ls_text_add(out, ",\"flag\":");
    lsi_script_text(out, c->flag_name);
    ls_text_add(out, ",\"series\":[");
    for (int k = 0; k < c->n_series; k++) {
        if (k > 0) ls_text_add(out, ",");
        LS_TRY(add_series(c, &c->series[k], out, err));
    }
    ls_text_add(out, "]}");
out:
    return st;
}
