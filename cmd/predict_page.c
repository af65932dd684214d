/* predict_page.c: predictions as a page: throughput and efficiency with their band and what was measured on
 * it, the table; the steps are predict_page_step.c's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "predict_page.h"
#include "predict_run.h"

#define NINETY 1.645 /* standard errors to either side of 90 % */

/* Series of one figure, for each strategy one that is predicted and one that is measured; room for all rows
 * each. */
typedef struct curves {
    ls_chart_series series[2 * PREDICT_WAYS];
    char names[PREDICT_WAYS][PREDICT_LINE + 16]; /* of what is measured */
    double *room;                                /* x, y, lo, hi of every series */
    int n;
} curves;

typedef struct figure {
    double y, lo, hi;
} figure;

static figure rate_of(const predict_row *r)
{
    const double samples = r->p.samples_per_s * r->p.mid;

    return (figure){r->p.samples_per_s, samples / r->p.hi, samples / r->p.lo};
}

/* What is wrong with the costs of computing is wrong with one rank alone as well, and cancels: what is left
 * is the share of the step that is waited for bytes, whole steps of several ranks, the spread, and the ranks
 * beyond those measured. */
static figure efficiency_of(const predict_row *r)
{
    const ls_prediction *p = &r->p;
    const double waited = p->error_fit * (p->parts.exposed_s + p->parts.core_s) / p->mid;
    const double error = r->ranks == 1
                             ? 0
                             : NINETY * sqrt(waited * waited + p->error_together * p->error_together +
                                             p->error_spread * p->error_spread +
                                             p->error_extrapolated * p->error_extrapolated);

    return (figure){100 * p->efficiency, 100 * p->efficiency * exp(-error), 100 * p->efficiency * exp(error)};
}

/* The median and the central 68 %. */
static bool measured_rate(const predict_table *t, const predict_row *r, figure *f)
{
    const ls_spread *m = &r->measured.rate;

    (void)t;
    *f = (figure){m->p50, m->p16, m->p84};
    return r->measured.n > 0;
}

/* Against what one rank alone was measured with. */
static bool measured_efficiency(const predict_table *t, const predict_row *r, figure *f)
{
    const predict_row *one = NULL;
    double base;

    for (int i = 0; i < t->n && one == NULL; i++)
        if (t->rows[i].ranks == 1 && t->way[t->rows[i].way].line == t->way[r->way].line &&
            t->rows[i].measured.n > 0)
            one = &t->rows[i];
    if (one == NULL || !measured_rate(t, r, f)) return false;
    base = one->measured.rate.p50 * r->ranks / 100;
    *f = (figure){f->y / base, f->lo / base, f->hi / base};
    return true;
}

/* One figure: what a row has predicted, and what was measured of it. */
typedef struct quantity {
    figure (*predicted)(const predict_row *r);
    bool (*measured)(const predict_table *t, const predict_row *r, figure *f); /* false: nothing */
} quantity;

/* The points of line `line` into `room`; returns how many. */
static int64_t gather(const predict_table *t, int line, const quantity *q, bool measured, double *room)
{
    const size_t most = (size_t)t->n;
    int64_t n = 0;

    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        figure f;
        if (t->way[r->way].line != line || r->why[0] != '\0') continue;
        if (measured && !q->measured(t, r, &f)) continue;
        if (!measured) f = q->predicted(r);
        room[n] = r->ranks;
        room[most + (size_t)n] = f.y;
        room[2 * most + (size_t)n] = f.lo;
        room[3 * most + (size_t)n++] = f.hi;
    }
    return n;
}

/* Adds a series, unless it has no point. */
static void add_series(curves *c, const predict_table *t, ls_chart_series s, const double *room)
{
    const size_t most = (size_t)t->n;

    if (s.n == 0) return;
    s.x = room;
    s.y = room + most;
    s.lo = room + 2 * most;
    s.hi = room + 3 * most;
    c->series[c->n++] = s;
}

/* What is measured lies on all that is predicted, and has the colour of its strategy. */
static ls_status draw(curves *c, const predict_table *t, const quantity *q, ls_err *err)
{
    const size_t each = 4 * (size_t)t->n;

    *c = (curves){.room = ls_alloc(LS_MEM_CLI, sizeof(double) * each * 2 * (size_t)t->n_lines)};
    if (c->room == NULL) return ls_fail(err, LS_NOMEM, "no memory for a chart");
    for (int k = 0; k < t->n_lines; k++) {
        double *room = c->room + each * (size_t)k;
        const int64_t n = gather(t, k, q, false, room);
        add_series(c, t,
                   (ls_chart_series){.name = t->line[k],
                                     .colour = k + 1,
                                     .marks = !t->has_measured,
                                     .whiskers = n == 1, /* a band has a width */
                                     .n = n},
                   room);
    }
    for (int k = 0; k < t->n_lines; k++) {
        double *room = c->room + each * (size_t)(t->n_lines + k);
        const int64_t n = gather(t, k, q, true, room);
        snprintf(c->names[k], sizeof c->names[k], "%s, measured", t->line[k]);
        add_series(
            c, t,
            (ls_chart_series){.name = c->names[k], .colour = k + 1, .dots = true, .whiskers = true, .n = n},
            room);
    }
    return LS_OK;
}

static ls_status add_curves(ls_report *doc, const predict_table *t, ls_err *err)
{
    static const quantity rate = {rate_of, measured_rate}, efficiency = {efficiency_of, measured_efficiency};
    curves c = {0};
    ls_status st = LS_OK;

    LS_TRY(draw(&c, t, &rate, err));
    ls_report_chart(doc, &(ls_chart){.id = "throughput",
                                     .title = "Throughput",
                                     .caption = t->has_measured
                                                    ? "Predicted, with the 90 % band; dots: measured, with "
                                                      "the central 68 % of the steps."
                                                    : "Predicted, with the 90 % band.",
                                     .kind = LS_CHART_LINES,
                                     .x_label = "ranks",
                                     .y_label = "samples/s",
                                     .x_scale = LS_SCALE_LOG2,
                                     .y_scale = LS_SCALE_LOG10,
                                     .series = c.series,
                                     .n_series = c.n});
    ls_free(c.room);
    LS_TRY(draw(&c, t, &efficiency, err));
    ls_report_chart(
        doc,
        &(ls_chart){
            .id = "efficiency",
            .title = "Efficiency",
            .caption =
                t->has_measured
                    ? "Of one rank alone with the same batch, times the ranks; what was measured, of what "
                      "one rank "
                      "was measured with. Errors of what is computed cancel."
                    : "Of one rank alone with the same batch, times the ranks. Errors of what is computed "
                      "cancel.",
            .kind = LS_CHART_LINES,
            .x_label = "ranks",
            .y_label = "%",
            .x_scale = LS_SCALE_LOG2,
            .y_scale = LS_SCALE_FROM_ZERO,
            .y_most = 130,
            .series = c.series,
            .n_series = c.n});
out:
    ls_free(c.room);
    return st;
}

/* Milliseconds; a rounding of differences of clocks is nothing. */
static void add_part(ls_sheet *s, double part_s, double step_s)
{
    const double ms = part_s > 1e-9 * step_s ? 1e3 * part_s : 0;

    ls_sheet_number(s, ms, "%.4g", ms);
}

static void add_measured(ls_sheet *s, const predict_row *r)
{
    const predict_measured *m = &r->measured;
    char rate[32];

    if (m->n == 0) {
        ls_sheet_cell(s, "-");
        ls_sheet_cell(s, "-");
        return;
    }
    ls_sheet_number(s, m->rate.p50, "%s", ls_text_count((int64_t)m->rate.p50, rate));
    ls_sheet_number(s, m->error, "%+.1f %%%s", 100 * m->error, m->within ? "" : ", outside");
}

static ls_status add_table(ls_report *doc, const predict_table *t, ls_err *err)
{
    static const ls_sheet_column columns[] = {
        {"ranks", 'r'},     {"strategy", 'l'},   {"step, ms", 'r'},  {"from", 'r'},         {"to", 'r'},
        {"samples/s", 'r'}, {"efficiency", 'r'}, {"computing", 'r'}, {"for the wire", 'r'}, {"exposed", 'r'},
        {"waiting", 'r'},   {"engine", 'l'},     {"measured", 'r'},  {"error", 'r'}};
    const int n = (int)(sizeof columns / sizeof columns[0]) - (t->has_measured ? 0 : 2);
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&s, "predictions", NULL, columns, n, err));
    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        const ls_prediction *p = &r->p;
        char rate[32];
        if (r->why[0] != '\0') continue;
        ls_sheet_number(s, r->ranks, "%d", r->ranks);
        ls_sheet_cell(s, "%s", predict_line_of(t, r));
        ls_sheet_number(s, 1e3 * p->mid, "%.4g", 1e3 * p->mid);
        ls_sheet_number(s, 1e3 * p->lo, "%.4g", 1e3 * p->lo);
        ls_sheet_number(s, 1e3 * p->hi, "%.4g", 1e3 * p->hi);
        ls_sheet_number(s, p->samples_per_s, "%s", ls_text_count((int64_t)p->samples_per_s, rate));
        ls_sheet_number(s, p->efficiency, "%.1f %%", 100 * p->efficiency);
        add_part(s, p->parts.compute_s, p->mid);
        add_part(s, p->parts.core_s, p->mid);
        add_part(s, p->parts.exposed_s, p->mid);
        add_part(s, p->parts.straggle_s, p->mid);
        ls_sheet_cell(s, "%s", ls_engine_name(p->engine));
        if (t->has_measured) add_measured(s, r);
    }
    ls_report_sheet(doc, s);
out:
    ls_sheet_destroy(s);
    return st;
}

/* How near predictions came, and what was compared with nothing. */
static void add_nearness(ls_report *doc, const predict_table *t)
{
    const predict_nearness *near = &t->near;

    if (!t->has_measured) return;
    ls_report_paragraph(doc,
                        "Beside what was measured: %d of %d within the 90 %% band; error of samples/s: "
                        "median %.1f %%, largest %.1f "
                        "%% (%d rank%s, %s).",
                        near->inside, near->compared, 100 * near->median, 100 * near->largest,
                        t->rows[near->largest_at].ranks, t->rows[near->largest_at].ranks == 1 ? "" : "s",
                        t->way[t->rows[near->largest_at].way].strategy);
    if (near->unmatched.length == 0) return;
    ls_report_fold(doc, "Measured, and compared with nothing");
    ls_report_code(doc, near->unmatched.data);
    ls_report_unfold(doc);
}

ls_status predict_page(const predict_table *t, const char *folder, char *page, size_t size, ls_err *err)
{
    ls_report *doc = NULL;
    char title[200];
    ls_status st = LS_OK;

    ls_text_fit(title, sizeof title, "%s: machine %s, network %s", t->name, t->machine.name, t->network.name);
    LS_TRY(ls_report_create(&doc, title, err));
    ls_report_paragraph(doc, "Batch %s, %d a machine. Machine: %s (%s). Network: %s (%s).", t->batches,
                        (int)t->placement.ranks_per_node, t->machine.name, t->machine.source, t->network.name,
                        t->network.source);
    if (t->step_time > 0)
        ls_report_paragraph(
            doc,
            "What a rank computes in a step is given (--step-time %g s): nodes are scaled so that "
            "they add up to it, and the band has no error of theirs.",
            t->step_time);
    if (t->network.measured_ranks == 0)
        ls_report_note(doc, "The network is described and not measured: its figures are a vendor's or an "
                            "assumption, and the band is as wide as that.");
    else
        ls_report_paragraph(doc, "The network was measured with up to %d ranks; beyond them the band widens.",
                            (int)t->network.measured_ranks);
    add_nearness(doc, t);
    LS_TRY(add_curves(doc, t, err));
    LS_TRY(predict_page_steps(doc, t, err));
    ls_report_heading(doc, "All figures");
    LS_TRY(add_table(doc, t, err));
    LS_TRY(predict_page_cost(doc, t, err));
    LS_TRY(ls_report_write(doc, folder, err));
    snprintf(page, size, "%s/report.html", folder);
out:
    ls_report_destroy(doc);
    return st;
}
