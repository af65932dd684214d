/* chart.h: figures drawn as SVG.
 *
 * A chart is plain data that the caller fills and owns; drawing it copies what is needed into text.  What is
 * not finite leaves a gap.  Colours follow the reader's light or dark scheme, and are told apart by the
 * colour blind; text is escaped, so that names may come from outside. */
#ifndef LS_REPORT_CHART_H
#define LS_REPORT_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "lockstep/status.h"

typedef enum ls_chart_kind {
    LS_CHART_LINES,   /* series of points (x, y) */
    LS_CHART_BARS,    /* one horizontal bar per category, stacked from the series' y */
    LS_CHART_TIMELINE /* spans of time in lanes */
} ls_chart_kind;

typedef enum ls_chart_scale {
    LS_SCALE_FITTED,    /* linear, from about the smallest to about the largest value */
    LS_SCALE_FROM_ZERO, /* linear, zero included */
    LS_SCALE_LOG2,      /* ticks at powers of two; values <= 0 are gaps */
    LS_SCALE_LOG10      /* ticks at powers of ten; values <= 0 are gaps */
} ls_chart_scale;

enum { LS_CHART_COLOURS = 32 }; /* of the palette, all different */

typedef struct ls_chart_series {
    const char *name;
    const char *key; /* NULL: its name has an entry in the legend; else what the entry says that all series of
                        the chart with an equal key share */
    int colour;    /* of the palette, from 1, so that one run has one colour in all charts; 0: by its position
                    */
    bool ideal;    /* a line to compare with: dashed and grey, without a colour of its own */
    bool dashed;   /* a second curve of the same colour, such as validation beside training */
    bool marks;    /* a dot at every point; a series of one point always has it */
    bool dots;     /* dots alone, larger than marks: no line joins them, for points on a curve of others */
    bool whiskers; /* lo and hi are error bars at the points instead of a band */
    int64_t n;
    const double *x;       /* of LS_CHART_LINES, ascending; unused by LS_CHART_BARS */
    const double *y;       /* of LS_CHART_BARS: y[k] is the part of category k, n of them */
    const double *lo, *hi; /* NULL, or the spread of each point */
    const bool *flag;      /* NULL, or true for points drawn hollow (see flag_name of the chart) */
} ls_chart_series;

typedef struct ls_chart_span {
    int lane;          /* index into `categories` */
    int series;        /* index into `series`, whose name and colour it has */
    double begin, end; /* in units of the x axis, which begins at 0 */
    const char *name;  /* shown when pointed at */
} ls_chart_span;

typedef struct ls_chart {
    const char *id; /* its file is ID.svg: letters, digits, '-' and '_'; unique in a report */
    const char *title;
    const char *caption; /* NULL, or a sentence or two under the chart */
    ls_chart_kind kind;
    const char *x_label, *y_label;
    ls_chart_scale x_scale, y_scale;
    double y_most; /* 0, or where the y axis ends at the latest: one wild value then does not flatten the
                      others; what lies beyond is cut off */
    const char *flag_name; /* what flagged points are: "oversubscribed"; named in legend and read-out */
    const ls_chart_series *series;
    int n_series;
    const char *const *categories; /* names of bars or lanes, from the top */
    int n_categories;
    const ls_chart_span *spans; /* of LS_CHART_TIMELINE */
    int64_t n_spans;
} ls_chart;

/* Appends an SVG document that shows by itself, with its own colours.  LS_INVALID when the id is none. */
ls_status ls_chart_svg(const ls_chart *c, ls_text *out, ls_err *err) LS_MUST_CHECK;

#endif
