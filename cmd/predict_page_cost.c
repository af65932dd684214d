/* predict_page_cost.c: the part of the page of predictions that is about whole runs: cost against time, what
 * to choose, and the table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "predict_run.h"
#include "report/report.h"

enum { NAME = 160, WORD = 40 };

/* Seconds as an axis has them. */
typedef struct unit {
    const char *name;
    double seconds;
} unit;

/* A point for each offer that is within the limits, and the front. */
typedef struct points {
    ls_chart_series *series;
    double *x, *y, *lo, *hi; /* of every offer; behind them x and y of the front */
    char (*names)[NAME];
    int n;
    unit unit;
} points;

static unit unit_of(const predict_runs *q)
{
    double most = 0;

    for (int i = 0; i < q->n; i++) most = fmax(most, q->offers[i].seconds.mid);
    return most < 200 ? (unit){"seconds", 1} : most < 7200 ? (unit){"minutes", 60} : (unit){"hours", 3600};
}

/* A series of its own, so that no line joins it to others; those of a line have one colour and one entry in
 * the legend. */
static void add_point(points *p, const predict_table *t, int i)
{
    const ls_offer *o = &t->runs->offers[i];

    if (o->beyond != 0) return;
    p->x[i] = o->seconds.mid / p->unit.seconds;
    p->y[i] = o->cost.mid;
    p->lo[i] = o->cost.lo;
    p->hi[i] = o->cost.hi;
    predict_row_name(t, &t->rows[o->row], p->names[i], sizeof p->names[i]);
    p->series[p->n++] = (ls_chart_series){.name = p->names[i],
                                          .key = t->line[o->line],
                                          .colour = o->line % LS_CHART_COLOURS + 1,
                                          .marks = true,
                                          .whiskers = true,
                                          .n = 1,
                                          .x = &p->x[i],
                                          .y = &p->y[i],
                                          .lo = &p->lo[i],
                                          .hi = &p->hi[i]};
}

/* In the order of time. */
static void add_front(points *p, const predict_runs *q)
{
    double *x = p->x + q->n, *y = p->y + q->n;
    int n = 0;

    for (int i = 0; i < q->n; i++) {
        const ls_offer *o = &q->offers[i];
        int k = n;
        if (!o->front) continue;
        for (; k > 0 && x[k - 1] > o->seconds.mid / p->unit.seconds; k--) {
            x[k] = x[k - 1];
            y[k] = y[k - 1];
        }
        x[k] = o->seconds.mid / p->unit.seconds;
        y[k] = o->cost.mid;
        n++;
    }
    if (n > 1) p->series[p->n++] = (ls_chart_series){.name = "front", .ideal = true, .n = n, .x = x, .y = y};
}

static ls_status add_chart(ls_report *doc, const predict_table *t, ls_err *err)
{
    const predict_runs *q = t->runs;
    const size_t n = (size_t)q->n + 1;
    double *room = ls_alloc(LS_MEM_CLI, sizeof(double) * 6 * n);
    points p = {.series = ls_alloc(LS_MEM_CLI, sizeof *p.series * n),
                .x = room,
                .y = room + 2 * n,
                .lo = room + 4 * n,
                .hi = room + 5 * n,
                .names = ls_alloc(LS_MEM_CLI, sizeof *p.names * n),
                .unit = unit_of(q)};
    ls_status st = LS_OK;

    if (room == NULL || p.series == NULL || p.names == NULL)
        LS_TRY(ls_fail(err, LS_NOMEM, "no memory for a chart"));
    add_front(&p, q);
    for (int i = 0; i < q->n; i++) add_point(&p, t, i);
    if (p.n == 0) goto out;
    ls_report_chart(
        doc, &(ls_chart){.id = "cost",
                         .title = "Cost against time",
                         .caption = "Each point is a number of ranks; its bar is the 90 % band of its cost, "
                                    "which is that of its time as well. Dashed: the front, of which "
                                    "nothing within the limits is both faster and cheaper.",
                         .kind = LS_CHART_LINES,
                         .x_label = p.unit.name,
                         .y_label = q->wish.price > 0 ? "cost" : "machine-hours",
                         .x_scale = LS_SCALE_LOG10,
                         .y_scale = LS_SCALE_FROM_ZERO,
                         .series = p.series,
                         .n_series = p.n});
out:
    ls_free(room);
    ls_free(p.series);
    ls_free(p.names);
    return st;
}

static void number(ls_sheet *s, double x, const char *text)
{
    ls_sheet_number(s, x, "%s", text);
}

static void add_row(ls_sheet *s, const predict_table *t, const ls_offer *o)
{
    const predict_row *r = &t->rows[o->row];
    const predict_run *run = &t->runs->of[o->row];
    char text[NAME], remarks[256];

    ls_sheet_number(s, r->ranks, "%d", r->ranks);
    ls_sheet_cell(s, "%s", predict_line_of(t, r));
    ls_sheet_number(s, o->nodes, "%d", (int)o->nodes);
    ls_sheet_number(s, (double)run->batch, "%lld", (long long)run->batch);
    ls_sheet_number(s, run->steps.mid, "%.0f", ceil(run->steps.mid - 1e-9));
    number(s, o->seconds.mid, predict_time(o->seconds.mid, text));
    number(s, o->seconds.lo, predict_time(o->seconds.lo, text));
    number(s, o->seconds.hi, predict_time(o->seconds.hi, text));
    number(s, o->cost.mid, predict_money(o->cost.mid, text));
    number(s, o->cost.lo, predict_money(o->cost.lo, text));
    number(s, o->cost.hi, predict_money(o->cost.hi, text));
    predict_run_remarks(t, r, remarks, sizeof remarks);
    ls_sheet_cell(s, "%s%s%s", o->front ? "front" : "", o->front && remarks[0] != '\0' ? "; " : "", remarks);
}

static ls_status add_table(ls_report *doc, const predict_table *t, ls_err *err)
{
    static const ls_sheet_column columns[] = {{"ranks", 'r'},        {"strategy", 'l'}, {"machines", 'r'},
                                              {"batch of all", 'r'}, {"steps", 'r'},    {"time", 'r'},
                                              {"from", 'r'},         {"to", 'r'},       {"cost", 'r'},
                                              {"cost from", 'r'},    {"cost to", 'r'},  {"", 'l'}};
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&s, "runs", NULL, columns, (int)(sizeof columns / sizeof columns[0]), err));
    for (int i = 0; i < t->runs->n; i++) add_row(s, t, &t->runs->offers[i]);
    ls_report_sheet(doc, s);
out:
    ls_sheet_destroy(s);
    return st;
}

static void add_choice(ls_report *doc, const predict_table *t, const char *what, int offer)
{
    const ls_offer *o = &t->runs->offers[offer];
    char name[NAME], a[WORD], b[WORD], c[WORD], d[WORD], e[WORD], f[WORD];

    ls_report_paragraph(doc, "%s: %s, %s (%s to %s) in %s (%s to %s).", what,
                        predict_row_name(t, &t->rows[o->row], name, sizeof name),
                        predict_money(o->cost.mid, a), predict_money(o->cost.lo, b),
                        predict_money(o->cost.hi, c), predict_time(o->seconds.mid, d),
                        predict_time(o->seconds.lo, e), predict_time(o->seconds.hi, f));
}

/* Rows without an answer, each with its reason. */
static void add_reasons(ls_report *doc, const predict_table *t)
{
    char name[NAME];
    bool any = false;

    for (int i = 0; i < t->n; i++) {
        if (t->runs->of[i].why[0] == '\0') continue;
        if (!any) ls_report_fold(doc, "Without an answer");
        any = true;
        ls_report_paragraph(doc, "%s: %s.", predict_row_name(t, &t->rows[i], name, sizeof name),
                            t->runs->of[i].why);
    }
    if (any) ls_report_unfold(doc);
}

ls_status predict_page_cost(ls_report *doc, const predict_table *t, ls_err *err)
{
    const predict_runs *q = t->runs;
    const predict_wish *w;
    char price[WORD];
    ls_status st = LS_OK;

    if (q == NULL) return LS_OK;
    w = &q->wish;
    ls_report_heading(doc, "A whole run");
    ls_report_paragraph(doc,
                        "Until %s%s%s. Not in it: tests, waits for data, the start; a short last batch of an "
                        "epoch counts as a whole one.%s",
                        w->until, w->accuracy > 0 ? ", by the trainings of " : "",
                        w->accuracy > 0 ? q->trainings.from : "",
                        w->fails ? " Times and costs are expectations with failures." : "");
    if (w->price > 0)
        ls_report_paragraph(doc, "A machine costs %s for an hour.", predict_money(w->price, price));
    if (q->cheapest >= 0) {
        add_choice(doc, t, "Cheapest", q->cheapest);
        add_choice(doc, t, "Fastest", q->fastest);
    } else {
        ls_report_note(doc, q->n > 0 ? "Nothing keeps the limits." : "No run has an answer.");
    }
    LS_TRY(add_chart(doc, t, err));
    LS_TRY(add_table(doc, t, err));
    add_reasons(doc, t);
out:
    return st;
}
