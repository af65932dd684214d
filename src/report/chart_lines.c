/* chart_lines.c: curves with their spread and their points.
 *
 * A value that cannot be drawn ends a stretch of the curve; the next begins another.  A point that stands
 * alone would be a line without length, so it gets a mark. */
#include <math.h>

#include "base/alloc.h"
#include "report/report_internal.h"

/* Of a series: how many points are not thinned, and how many stretches it has otherwise. */
enum { ALL = 1500, ALL_NARROW = 600, STRETCHES = 400, STRETCHES_NARROW = 150 };

static int in_order(const int64_t pick[5], int64_t i)
{
    for (int k = 0; k < 5; k++)
        if (pick[k] == i) return 1;
    return 0;
}

ls_status lsi_thin(const ls_chart_series *s, lsi_form form, int64_t **out, int64_t *n, ls_err *err)
{
    const bool all = s->n <= (form == LSI_NARROW ? ALL_NARROW : ALL);
    const int stretches = form == LSI_NARROW ? STRETCHES_NARROW : STRETCHES;
    int64_t *index = ls_alloc(LS_MEM_CLI, (size_t)(all ? s->n : 5 * stretches) * sizeof *index);

    *out = index;
    *n = 0;
    if (index == NULL) return ls_fail(err, LS_NOMEM, "no memory for a curve");
    if (all) {
        for (int64_t i = 0; i < s->n; i++) index[(*n)++] = i;
        return LS_OK;
    }
    for (int64_t k = 0; k < stretches; k++) {
        const int64_t begin = s->n * k / stretches, end = s->n * (k + 1) / stretches;
        int64_t pick[5] = {begin, end - 1, -1, -1, -1}; /* first, last, least, most, missing */
        for (int64_t i = begin; i < end; i++) {
            if (!isfinite(s->y[i])) {
                if (pick[4] < 0) pick[4] = i;
                continue;
            }
            if (pick[2] < 0 || s->y[i] < s->y[pick[2]]) pick[2] = i;
            if (pick[3] < 0 || s->y[i] > s->y[pick[3]]) pick[3] = i;
        }
        for (int64_t i = begin; i < end; i++)
            if (in_order(pick, i)) index[(*n)++] = i;
    }
    return LS_OK;
}

/* A series on its way into a figure. */
typedef struct curve {
    const lsi_figure *f;
    const ls_chart_series *s;
    const int64_t *index;
    int64_t n;
    ls_text *out;
} curve;

static bool is_drawn(const curve *c, int64_t k)
{
    return k >= 0 && k < c->n && lsi_drawable(c->f->c->x_scale, c->s->x[c->index[k]]) &&
           lsi_drawable(c->f->c->y_scale, c->s->y[c->index[k]]);
}

static bool has_spread(const curve *c, int64_t k)
{
    return is_drawn(c, k) && c->s->lo != NULL && c->s->hi != NULL &&
           lsi_drawable(c->f->c->y_scale, c->s->lo[c->index[k]]) &&
           lsi_drawable(c->f->c->y_scale, c->s->hi[c->index[k]]);
}

static double x_of(const curve *c, int64_t k)
{
    return lsi_axis_at(&c->f->x, c->s->x[c->index[k]]);
}

static double y_of(const curve *c, const double *y, int64_t k)
{
    return lsi_axis_at(&c->f->y, y[c->index[k]]);
}

/* The area between lo and hi, there and back, for every stretch that has both. */
static void draw_band(const curve *c)
{
    for (int64_t begin = 0, end; begin < c->n; begin = end + 1) {
        for (end = begin; has_spread(c, end);) end++;
        if (end - begin < 2) continue;
        ls_text_add(c->out, "<path class=\"band\" d=\"");
        for (int64_t k = begin; k < end; k++)
            ls_text_add(c->out, "%c%.1f %.1f", k == begin ? 'M' : 'L', x_of(c, k), y_of(c, c->s->hi, k));
        for (int64_t k = end - 1; k >= begin; k--)
            ls_text_add(c->out, "L%.1f %.1f", x_of(c, k), y_of(c, c->s->lo, k));
        ls_text_add(c->out, "Z\"/>\n");
    }
}

static void draw_whiskers(const curve *c)
{
    bool any = false;

    for (int64_t k = 0; k < c->n; k++) {
        if (!has_spread(c, k)) continue;
        ls_text_add(c->out, "%sM%.1f %.1fL%.1f %.1f", any ? "" : "<path class=\"whisker\" d=\"", x_of(c, k),
                    y_of(c, c->s->lo, k), x_of(c, k), y_of(c, c->s->hi, k));
        any = true;
    }
    if (any) ls_text_add(c->out, "\"/>\n");
}

static void draw_line(const curve *c)
{
    bool any = false;

    for (int64_t k = 0; k < c->n; k++) {
        if (!is_drawn(c, k) || (!is_drawn(c, k - 1) && !is_drawn(c, k + 1))) continue;
        if (!any)
            ls_text_add(c->out, "<path class=\"line%s\" d=\"", c->s->dashed || c->s->ideal ? " dashed" : "");
        ls_text_add(c->out, "%c%.1f %.1f", is_drawn(c, k - 1) ? 'L' : 'M', x_of(c, k), y_of(c, c->s->y, k));
        any = true;
    }
    if (any) ls_text_add(c->out, "\"/>\n");
}

/* What browsers show when a point is pointed at, also without scripts. */
static void add_tip(const curve *c, int64_t i)
{
    char a[LSI_NUMBER_MAX], b[LSI_NUMBER_MAX];

    ls_text_add(c->out, "<title>");
    lsi_xml_text(c->out, c->s->name);
    ls_text_add(c->out, ": %s at %s", lsi_number_text(c->s->y[i], 4, a), lsi_number_text(c->s->x[i], 4, b));
    if (c->s->lo != NULL && c->s->hi != NULL && isfinite(c->s->lo[i]) && isfinite(c->s->hi[i]))
        ls_text_add(c->out, " (%s to %s)", lsi_number_text(c->s->lo[i], 4, a),
                    lsi_number_text(c->s->hi[i], 4, b));
    if (c->s->flag != NULL && c->s->flag[i] && c->f->c->flag_name != NULL) {
        ls_text_add(c->out, ", ");
        lsi_xml_text(c->out, c->f->c->flag_name);
    }
    ls_text_add(c->out, "</title>");
}

static void draw_marks(const curve *c)
{
    for (int64_t k = 0; k < c->n; k++) {
        const bool flagged = c->s->flag != NULL && c->s->flag[c->index[k]];
        if (!is_drawn(c, k)) continue;
        if (!c->s->marks && !c->s->dots && !flagged && (is_drawn(c, k - 1) || is_drawn(c, k + 1))) continue;
        ls_text_add(c->out, "<circle class=\"mark%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">",
                    flagged      ? " flag"
                    : c->s->dots ? " dot"
                                 : "",
                    x_of(c, k), y_of(c, c->s->y, k),
                    flagged      ? "4"
                    : c->s->dots ? "4.6"
                                 : "3.2");
        add_tip(c, c->index[k]);
        ls_text_add(c->out, "</circle>\n");
    }
}

static ls_status draw_series(const lsi_figure *f, int i, ls_text *out, ls_err *err)
{
    curve c = {.f = f, .s = &f->c->series[i], .out = out};
    int64_t *index = NULL;
    ls_status st = LS_OK;

    LS_TRY(lsi_thin(c.s, f->form, &index, &c.n, err));
    c.index = index;
    ls_text_add(out, "<g class=\"series c%d\" data-i=\"%d\">\n", lsi_colour(f->c, i), i);
    if (c.s->whiskers)
        draw_whiskers(&c);
    else
        draw_band(&c);
    if (!c.s->dots) draw_line(&c);
    draw_marks(&c);
    ls_text_add(out, "</g>\n");
out:
    ls_free(index);
    return st;
}

ls_status lsi_draw_lines(const lsi_figure *f, ls_text *out, ls_err *err)
{
    ls_status st = LS_OK;

    /* What is compared with lies behind what is measured. */
    for (int i = 0; i < f->c->n_series; i++)
        if (f->c->series[i].ideal) LS_TRY(draw_series(f, i, out, err));
    for (int i = 0; i < f->c->n_series; i++)
        if (!f->c->series[i].ideal) LS_TRY(draw_series(f, i, out, err));
out:
    return st;
}
