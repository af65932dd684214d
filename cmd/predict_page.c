/* predict_page.c: predictions as a page: throughput and efficiency with their band, where the time of a step
 * goes, one step in time, and what would help. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "predict_table.h"
#include "report/report.h"

enum { BARS = 48, PARTS = 4 };
#define NINETY 1.645 /* standard errors to either side of 90 % */

/* Series of one figure, one for each strategy; room for all rows each. */
typedef struct curves {
    ls_chart_series series[PREDICT_WAYS + 1];
    double *room; /* x, y, lo, hi of every series */
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
 * is the share of the step that is waited for bytes, the spread, and the ranks beyond those measured. */
static figure efficiency_of(const predict_row *r)
{
    const ls_prediction *p = &r->p;
    const double waited = p->error_fit * (p->parts.exposed_s + p->parts.core_s) / p->mid;
    const double error = r->ranks == 1 ? 0
                                       : NINETY * sqrt(waited * waited + p->error_spread * p->error_spread +
                                                       p->error_extrapolated * p->error_extrapolated);

    return (figure){100 * p->efficiency, 100 * p->efficiency * exp(-error), 100 * p->efficiency * exp(error)};
}

static ls_status draw(curves *c, const predict_table *t, figure (*of)(const predict_row *r), ls_err *err)
{
    const size_t most = (size_t)t->n;

    *c = (curves){.room = ls_alloc(LS_MEM_CLI, sizeof(double) * 4 * most * (size_t)(t->n_ways + 1))};
    if (c->room == NULL) return ls_fail(err, LS_NOMEM, "no memory for a chart");
    for (int k = 0; k < t->n_ways; k++) {
        double *x = c->room + 4 * most * (size_t)k, *y = x + most, *lo = y + most, *hi = lo + most;
        int64_t n = 0;
        for (int i = 0; i < t->n; i++) {
            if (t->rows[i].way != k || t->rows[i].why[0] != '\0') continue;
            const figure f = of(&t->rows[i]);
            x[n] = t->rows[i].ranks;
            y[n] = f.y;
            lo[n] = f.lo;
            hi[n++] = f.hi;
        }
        if (n > 0)
            c->series[c->n++] = (ls_chart_series){
                .name = t->way[k].strategy, .marks = true, .n = n, .x = x, .y = y, .lo = lo, .hi = hi};
    }
    return LS_OK;
}

static ls_status add_curves(ls_report *doc, const predict_table *t, ls_err *err)
{
    curves c = {0};
    ls_status st = LS_OK;

    LS_TRY(draw(&c, t, rate_of, err));
    ls_report_chart(doc, &(ls_chart){.id = "throughput",
                                     .title = "Throughput",
                                     .caption = "Predicted, with the 90 % band.",
                                     .kind = LS_CHART_LINES,
                                     .x_label = "ranks",
                                     .y_label = "samples/s",
                                     .x_scale = LS_SCALE_LOG2,
                                     .y_scale = LS_SCALE_LOG10,
                                     .series = c.series,
                                     .n_series = c.n});
    ls_free(c.room);
    LS_TRY(draw(&c, t, efficiency_of, err));
    ls_report_chart(
        doc,
        &(ls_chart){
            .id = "efficiency",
            .title = "Efficiency",
            .caption =
                "Of one rank alone with the same batch, times the ranks. Errors of what is computed cancel.",
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

/* A bar for every row, of its parts. */
static void add_parts(ls_report *doc, const predict_table *t)
{
    static const char *const part_names[PARTS] = {"computing", "processor for the wire", "waiting for bytes",
                                                  "waiting for slower ranks"};
    double values[PARTS][BARS];
    char names[BARS][48];
    const char *categories[BARS];
    ls_chart_series series[PARTS] = {{0}};
    int n = 0;

    for (int i = 0; i < t->n && n < BARS; i++) {
        const predict_row *r = &t->rows[i];
        const ls_predict_parts *p = &r->p.parts;
        const double parts[PARTS] = {p->compute_s, p->core_s, p->exposed_s, p->straggle_s};
        if (r->why[0] != '\0') continue;
        snprintf(names[n], sizeof names[n], "%d %s", r->ranks, t->way[r->way].strategy);
        categories[n] = names[n];
        for (int k = 0; k < PARTS; k++) values[k][n] = 1e3 * parts[k];
        n++;
    }
    for (int k = 0; k < PARTS; k++)
        series[k] = (ls_chart_series){.name = part_names[k], .n = n, .y = values[k]};
    if (n == 0) return;
    ls_report_chart(doc, &(ls_chart){.id = "parts",
                                     .title = "Where the time of a step goes",
                                     .kind = LS_CHART_BARS,
                                     .x_label = "ms",
                                     .series = series,
                                     .n_series = PARTS,
                                     .categories = categories,
                                     .n_categories = n});
}

/* One rank's step among the most ranks that there is an answer for. */
static ls_status add_timeline(ls_report *doc, const predict_table *t, ls_err *err)
{
    static const char *const lanes[] = {"compute", "wait", "exchange"};
    ls_chart_series series[] = {{.name = "computing"}, {.name = "waiting"}, {.name = "exchange"}};
    const predict_row *r = NULL;
    ls_predict_span *spans = NULL;
    ls_chart_span *drawn = NULL;
    ls_predict_args a;
    char title[96];
    int n = 0, count = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0') r = &t->rows[i];
    if (r == NULL) return LS_OK;
    a = predict_args_of(t, r);
    a.placement.kind = LS_PLACE_CONTIGUOUS;
    LS_TRY(ls_predict_timeline(&a, &spans, &n, err));
    drawn = ls_alloc(LS_MEM_CLI, sizeof *drawn * (size_t)(n + 1));
    if (drawn == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory for a chart"));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            if (strcmp(spans[i].lane, lanes[k]) == 0)
                drawn[count++] = (ls_chart_span){.lane = k,
                                                 .series = k,
                                                 .begin = 1e3 * spans[i].begin_s,
                                                 .end = 1e3 * spans[i].end_s,
                                                 .name = series[k].name};
    snprintf(title, sizeof title, "One step of %d ranks, %s", r->ranks, t->way[r->way].strategy);
    ls_report_chart(doc, &(ls_chart){.id = "timeline",
                                     .title = title,
                                     .caption = "Of a rank, without jitter.",
                                     .kind = LS_CHART_TIMELINE,
                                     .x_label = "ms",
                                     .series = series,
                                     .n_series = 3,
                                     .categories = lanes,
                                     .n_categories = 3,
                                     .spans = drawn,
                                     .n_spans = count});
out:
    ls_free(drawn);
    ls_free(spans);
    return st;
}

static void add_sensitivity(ls_report *doc, const predict_table *t)
{
    predict_change c[PREDICT_CHANGES];
    const char *categories[PREDICT_CHANGES + 1];
    double values[PREDICT_CHANGES + 1];
    const predict_row *r = NULL;
    char title[96];
    int n;

    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0' && t->rows[i].ranks > 1) r = &t->rows[i];
    if (r == NULL) return;
    n = predict_sensitivity(t, r, c);
    categories[0] = "as it is";
    values[0] = 1e3 * r->p.mid;
    for (int i = 0; i < n; i++) {
        categories[i + 1] = c[i].what;
        values[i + 1] = 1e3 * c[i].step_s;
    }
    snprintf(title, sizeof title, "What would help %d ranks, %s", r->ranks, t->way[r->way].strategy);
    ls_report_chart(doc, &(ls_chart){.id = "sensitivity",
                                     .title = title,
                                     .kind = LS_CHART_BARS,
                                     .x_label = "ms of a step",
                                     .series = &(ls_chart_series){.name = "a step", .n = n + 1, .y = values},
                                     .n_series = 1,
                                     .categories = categories,
                                     .n_categories = n + 1});
}

static ls_status add_table(ls_report *doc, const predict_table *t, ls_err *err)
{
    static const ls_sheet_column columns[] = {{"ranks", 'r'},      {"strategy", 'l'},  {"step, ms", 'r'},
                                              {"from", 'r'},       {"to", 'r'},        {"samples/s", 'r'},
                                              {"efficiency", 'r'}, {"computing", 'r'}, {"for the wire", 'r'},
                                              {"exposed", 'r'},    {"waiting", 'r'},   {"engine", 'l'}};
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&s, "predictions", NULL, columns, (int)(sizeof columns / sizeof columns[0]), err));
    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        const ls_prediction *p = &r->p;
        if (r->why[0] != '\0') continue;
        ls_sheet_number(s, r->ranks, "%d", r->ranks);
        ls_sheet_cell(s, "%s", t->way[r->way].strategy);
        ls_sheet_number(s, 1e3 * p->mid, "%.4g", 1e3 * p->mid);
        ls_sheet_number(s, 1e3 * p->lo, "%.4g", 1e3 * p->lo);
        ls_sheet_number(s, 1e3 * p->hi, "%.4g", 1e3 * p->hi);
        ls_sheet_number(s, p->samples_per_s, "%.0f", p->samples_per_s);
        ls_sheet_number(s, p->efficiency, "%.1f %%", 100 * p->efficiency);
        ls_sheet_number(s, 1e3 * p->parts.compute_s, "%.4g", 1e3 * p->parts.compute_s);
        ls_sheet_number(s, 1e3 * p->parts.core_s, "%.4g", 1e3 * p->parts.core_s);
        ls_sheet_number(s, 1e3 * p->parts.exposed_s, "%.4g", 1e3 * p->parts.exposed_s);
        ls_sheet_number(s, 1e3 * p->parts.straggle_s, "%.4g", 1e3 * p->parts.straggle_s);
        ls_sheet_cell(s, "%s", ls_engine_name(p->engine));
    }
    ls_report_sheet(doc, s);
out:
    ls_sheet_destroy(s);
    return st;
}

ls_status predict_page(const predict_table *t, const char *folder, char *page, size_t size, ls_err *err)
{
    ls_report *doc = NULL;
    char title[200];
    ls_status st = LS_OK;

    ls_text_fit(title, sizeof title, "%s on %s", t->name, t->network.name);
    LS_TRY(ls_report_create(&doc, title, err));
    ls_report_paragraph(doc, "Batch %lld per rank, %d a machine. Machine: %s (%s). Network: %s (%s).",
                        (long long)t->batch, (int)t->placement.ranks_per_node, t->machine.name,
                        t->machine.source, t->network.name, t->network.source);
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
        ls_report_paragraph(doc, "Measured with up to %d ranks; beyond them the band widens.",
                            (int)t->network.measured_ranks);
    LS_TRY(add_curves(doc, t, err));
    add_parts(doc, t);
    LS_TRY(add_timeline(doc, t, err));
    add_sensitivity(doc, t);
    LS_TRY(add_table(doc, t, err));
    LS_TRY(ls_report_write(doc, folder, err));
    snprintf(page, size, "%s/report.html", folder);
out:
    ls_report_destroy(doc);
    return st;
}
