/* report_internal.h: what the files of this folder share. */
#ifndef LS_REPORT_REPORT_INTERNAL_H
#define LS_REPORT_REPORT_INTERNAL_H

#include "report/chart.h"
#include "report/sheet.h"

/* -- text from outside (escape.c) --------------------------------------------------------------------------
 */

/* Appends `text` so that it is text in HTML and SVG, also inside quoted attributes.  Bytes that XML does not
 * allow, or that are no UTF-8, become U+FFFD: one of them would make a whole SVG unreadable. */
void lsi_xml_text(ls_text *out, const char *text);
/* Appends `text` as a JSON string with its quotes, harmless within <script>. */
void lsi_script_text(ls_text *out, const char *text);
/* Letters, digits, '-' and '_', 1 to 80 of them: a file's name that leads nowhere else. */
ls_status lsi_check_id(const char *id, ls_err *err) LS_MUST_CHECK;

/* Appends at most `max` characters of `text`; where some are left out, an ellipsis takes their place in the
 * middle: names of runs differ at their end. */
void lsi_xml_short(ls_text *out, const char *text, int max);
/* Characters of UTF-8 text; 0 for NULL. */
int lsi_characters(const char *text);

/* -- axes (axis.c) -----------------------------------------------------------------------------------------
 */

enum { LSI_TICKS = 16, LSI_NUMBER_MAX = 48 };

typedef struct lsi_axis {
    ls_chart_scale scale;
    double lo, hi;   /* values at both ends */
    double from, to; /* where the ends lie, in pixels; of y axes from > to */
    int n_ticks;
    double tick[LSI_TICKS];
    double step; /* between ticks of a linear axis, 0 otherwise: tells how many digits they need */
} lsi_axis;

/* What the values of an axis are like. */
typedef struct lsi_extent {
    double lo, hi; /* lo > hi: there are none */
    bool whole;    /* all are whole numbers: so must be the ticks */
} lsi_extent;

/* Can `v` be drawn on such an axis? */
bool lsi_drawable(ls_chart_scale scale, double v);
/* Ends and ticks, about `wanted` of them.  `round`: the ends are ticks, too; otherwise the axis ends `margin`
 * (a share of its length) beyond the values.  Equal and missing values get an axis around them. */
lsi_axis lsi_axis_fit(ls_chart_scale scale, lsi_extent e, int wanted, bool round, double margin);
/* Where `v` lies, in pixels. */
double lsi_axis_at(const lsi_axis *a, double v);
/* "12,500", "0.25", "3e-05": tick i, or a value with `digits` that count.  Return buf. */
const char *lsi_tick_text(const lsi_axis *a, int i, char buf[LSI_NUMBER_MAX]);
const char *lsi_number_text(double v, int digits, char buf[LSI_NUMBER_MAX]);

/* -- charts (chart.c, chart_legend.c, chart_lines.c, chart_bars.c) -----------------------------------------
 */

/* What a chart is drawn for.  A page holds two drawings, of which the reader's window shows one: letters keep
 * their size on a phone. */
typedef enum lsi_form {
    LSI_WIDE,   /* on a page, for windows */
    LSI_NARROW, /* on a page, for phones */
    LSI_ALONE   /* a file: as LSI_WIDE, with its own style */
} lsi_form;

/* A chart with everything in its place. */
typedef struct lsi_figure {
    const ls_chart *c;
    lsi_form form;
    double width, height;            /* of the figure */
    lsi_axis x, y;                   /* y: of LS_CHART_LINES */
    double left, right, top, bottom; /* of the plot */
    bool empty, flagged;             /* nothing to draw; some points are flagged */
} lsi_figure;

/* Pixels.  Letters are not measured: this is about the mean width of wide sans-serif fonts at 12 pixels. */
#define LSI_LETTER 7.0
enum { LSI_WIDTH = 760, LSI_WIDTH_NARROW = 350, LSI_TITLE = 26 };

/* The SVG element. */
ls_status lsi_chart_draw(const ls_chart *c, lsi_form form, ls_text *out, ls_err *err) LS_MUST_CHECK;
/* What the script needs to know of it, as JSON. */
ls_status lsi_chart_json(const ls_chart *c, ls_text *out, ls_err *err) LS_MUST_CHECK;

/* Lays the chart out. */
lsi_figure lsi_figure_of(const ls_chart *c, lsi_form form);
/* The colour (1 to LS_CHART_COLOURS; 0 for `ideal`) of series i. */
int lsi_colour(const ls_chart *c, int i);
/* The y below the legend, whose place is known before anything else is; and the legend itself. */
double lsi_legend_end(const lsi_figure *f);
void lsi_draw_legend(const lsi_figure *f, ls_text *out);
/* What fills the plot. */
ls_status lsi_draw_lines(const lsi_figure *f, ls_text *out, ls_err *err) LS_MUST_CHECK;
void lsi_draw_bars(const lsi_figure *f, ls_text *out);
void lsi_draw_spans(const lsi_figure *f, ls_text *out);
/* Where bar or lane k lies. */
double lsi_row_top(const lsi_figure *f, int k);
double lsi_row_height(const lsi_figure *f);
/* Which points of a series are drawn: all of a short one; of a long one the first, last, smallest, largest
 * and a missing one of every stretch, so that the picture is the same and the file is not large.  *out: their
 * indices, the caller's to ls_free. */
ls_status lsi_thin(const ls_chart_series *s, lsi_form form, int64_t **out, int64_t *n,
                   ls_err *err) LS_MUST_CHECK;

/* -- tables (sheet.c) --------------------------------------------------------------------------------------
 */

const char *lsi_sheet_id(const ls_sheet *s);

#endif
