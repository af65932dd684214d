/* report.c: the report of a study: what was asked, the table, the charts, the machine, the command. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "study/predicted.h"
#include "study/study_internal.h"

/* -- tables -----------------------------------------------------------------------------------------------
 */

static ls_status add_table(ls_report *doc, const ls_study *s, const ls_study_results *r, ls_err *err)
{
    const char *names[LSI_COLUMNS_MAX];
    const int n = lsi_columns(s, r, names);
    ls_sheet_column columns[LSI_COLUMNS_MAX];
    lsi_cell cells[LSI_COLUMNS_MAX];
    ls_sheet *t = NULL;
    ls_status st = LS_OK;

    for (int k = 0; k < n; k++) columns[k] = (ls_sheet_column){names[k], 'r'};
    LS_TRY(ls_sheet_create(&t, "table", NULL, columns, n, err));
    for (int i = 0; i < r->n; i++) {
        lsi_cells(s, r, &r->rows[i], cells);
        for (int k = 0; k < n; k++)
            if (isfinite(cells[k].number))
                ls_sheet_number(t, cells[k].number, "%s", cells[k].text);
            else
                ls_sheet_cell(t, "%s", cells[k].text);
    }
    ls_report_sheet(doc, t);
out:
    ls_sheet_destroy(t);
    return st;
}

/* -- charts -----------------------------------------------------------------------------------------------
 */

/* Values by rank count in two groups: those that scale, and those where ranks share cores.  The second is
 * never joined to the first. */
typedef struct group {
    double x[LS_STUDY_COUNTS_MAX], y[LS_STUDY_COUNTS_MAX], lo[LS_STUDY_COUNTS_MAX], hi[LS_STUDY_COUNTS_MAX];
    bool flag[LS_STUDY_COUNTS_MAX];
    int64_t n;
} group;

typedef ls_interval (*value_of)(const ls_study_row *r);

static ls_interval rate_of(const ls_study_row *r)
{
    return (ls_interval){r->rate.p16, r->rate.p50, r->rate.p84};
}

static ls_interval efficiency_of(const ls_study_row *r)
{
    return r->efficiency;
}

static ls_interval solution_of(const ls_study_row *r)
{
    return r->solution_s;
}

static ls_interval score_of(const ls_study_row *r)
{
    return r->score;
}

static ls_interval rate_predicted(const ls_study_row *r)
{
    return r->predicted;
}

static ls_interval efficiency_predicted(const ls_study_row *r)
{
    return r->predicted_efficiency;
}

static void gather(const ls_study_results *r, value_of value, bool oversubscribed, group *g)
{
    g->n = 0;
    for (int i = 0; i < r->n; i++) {
        const ls_interval v = value(&r->rows[i]);
        if (r->rows[i].repeats == 0 || r->rows[i].oversubscribed != oversubscribed || isnan(v.mid)) continue;
        g->x[g->n] = r->rows[i].ranks;
        g->y[g->n] = v.mid;
        g->lo[g->n] = v.lo;
        g->hi[g->n] = v.hi;
        g->flag[g->n++] = oversubscribed;
    }
}

static ls_chart_series series_of(const char *name, const group *g, bool whiskers)
{
    return (ls_chart_series){.name = name,
                             .colour = 1,
                             .dashed = g->n > 0 && g->flag[0],
                             .marks = true,
                             .whiskers = whiskers,
                             .n = g->n,
                             .x = g->x,
                             .y = g->y,
                             .lo = g->lo,
                             .hi = g->hi,
                             .flag = g->flag};
}

/* What was predicted, of rows that have it, measured or not. */
static group predicted_of(const ls_study_results *r, value_of value)
{
    group g = {0};

    for (int i = 0; value != NULL && i < r->n; i++) {
        const ls_interval v = value(&r->rows[i]);
        if (isnan(v.mid)) continue;
        g.x[g.n] = r->rows[i].ranks;
        g.y[g.n] = v.mid;
        g.lo[g.n] = v.lo;
        g.hi[g.n++] = v.hi;
    }
    return g;
}

/* A chart of `value` against ranks, over the band that was `predicted` (may be NULL); `ideal` (may be NULL)
 * is a line to compare with.  Two bands would hide one another: beside one, what is measured has whiskers. */
static void add_lines(ls_report *doc, const ls_study_results *r, ls_chart c, const char *name, value_of value,
                      bool whiskers, value_of predicted, const group *ideal)
{
    const group said = predicted_of(r, predicted);
    group good, over;
    ls_chart_series series[4];

    gather(r, value, false, &good);
    gather(r, value, true, &over);
    if (good.n + over.n + said.n == 0) return;
    whiskers |= said.n > 0;
    if (said.n > 0)
        series[c.n_series++] = (ls_chart_series){.name = "predicted, 90 % band",
                                                 .colour = 2,
                                                 .n = said.n,
                                                 .x = said.x,
                                                 .y = said.y,
                                                 .lo = said.lo,
                                                 .hi = said.hi};
    if (good.n > 0) series[c.n_series++] = series_of(name, &good, whiskers);
    if (over.n > 0) series[c.n_series++] = series_of("oversubscribed: no scaling", &over, whiskers);
    if (ideal != NULL)
        series[c.n_series++] =
            (ls_chart_series){.name = "ideal", .ideal = true, .n = ideal->n, .x = ideal->x, .y = ideal->y};
    c.kind = LS_CHART_LINES;
    c.x_label = "ranks";
    c.x_scale = LS_SCALE_LOG2;
    c.flag_name = over.n > 0 ? "oversubscribed" : NULL;
    c.series = series;
    ls_report_chart(doc, &c);
}

/* The smallest run times the ranks; or 1, or the time that falls as ranks are added. */
static group ideal_of(const ls_study_results *r, double base, int power)
{
    group g = {0};

    for (int i = 0; i < r->n; i++) {
        g.x[g.n] = r->rows[i].ranks;
        g.y[g.n++] = base * pow((double)r->rows[i].ranks / r->rows[0].ranks, power);
    }
    return g;
}

/* An interval of two noisy repeats may reach beyond all sense; the chart must not be about that. */
static bool cut_intervals(ls_study_results *r)
{
    double most = 1;
    bool cut = false;

    for (int i = 0; i < r->n; i++) most = fmax(most, r->rows[i].efficiency.mid); /* fmax leaves out NaN */
    for (int i = 0; i < r->n; i++) {
        ls_interval *e = &r->rows[i].efficiency;
        if (!(e->hi > 1.5 * most)) continue;
        e->hi = 1.5 * most;
        cut = true;
    }
    return cut;
}

static void add_scaling_charts(ls_report *doc, const ls_study *s, const ls_study_results *r)
{
    const group linear = ideal_of(r, r->rows[0].rate.p50, 1), one = ideal_of(r, 1, 0);
    const group faster = ideal_of(r, r->rows[0].solution_s.mid, -1);
    ls_study_results shown = *r;
    bool cut;

    ls_report_heading(doc, "Throughput");
    add_lines(
        doc, r,
        (ls_chart){.id = "throughput",
                   .title = "Samples per second of all ranks",
                   .caption =
                       r->by == NULL
                           ? "Median and central 68 % of all timed steps; the dashed line is the "
                             "smallest run times the ranks."
                           : "Median and central 68 % of all timed steps, on what was predicted, with its "
                             "90 % band; the dashed line is the smallest run times the ranks.",
                   .y_label = "samples/s",
                   .y_scale = LS_SCALE_LOG10},
        "measured", rate_of, false, rate_predicted, isnan(linear.y[0]) ? NULL : &linear);
    cut = cut_intervals(&shown);
    ls_report_heading(doc, "Efficiency");
    add_lines(
        doc, &shown,
        (ls_chart){.id = "efficiency",
                   .title = "Efficiency against the smallest run",
                   .caption =
                       cut ? "Samples/s per rank over that of the smallest run, with its 95 % interval; "
                             "intervals that reach beyond the chart are cut, the table has them whole."
                           : "Samples/s per rank over that of the smallest run, with its 95 % interval.",
                   .y_label = "efficiency",
                   .y_scale = LS_SCALE_FROM_ZERO,
                   .y_most = 2}, /* intervals of two noisy repeats can be absurdly wide */
        "measured", efficiency_of, true, efficiency_predicted, &one);
    if (!s->train) return;
    ls_report_heading(doc, "Time to solution");
    add_lines(doc, r,
              (ls_chart){.id = "time",
                         .title = "Seconds of a training run",
                         .caption = "From the start to the end of a run: median of the repeats, smallest and "
                                    "largest.",
                         .y_label = "seconds",
                         .y_scale = LS_SCALE_LOG10},
              "measured", solution_of, true, NULL, isnan(faster.y[0]) ? NULL : &faster);
    if (r->score_name[0] == '\0') return;
    ls_report_heading(doc, "What was learned");
    add_lines(doc, r,
              (ls_chart){.id = "accuracy",
                         .title = r->score_name,
                         .caption = "Of the trained model: median of the repeats, smallest and largest.",
                         .y_label = r->score_name,
                         .y_scale = LS_SCALE_FITTED},
              r->score_name, score_of, true, NULL, NULL);
}

/* Where a step's time goes, one bar per rank count. */
static void add_ledger(ls_report *doc, const ls_study_results *r)
{
    double part[3][LS_STUDY_COUNTS_MAX];
    char text[LS_STUDY_COUNTS_MAX][64];
    const char *names[LS_STUDY_COUNTS_MAX];
    ls_chart_series series[3] = {
        {.name = "compute"}, {.name = "exposed communication"}, {.name = "data wait"}};
    int n = 0;

    for (int i = 0; i < r->n; i++) {
        const ls_study_row *w = &r->rows[i];
        if (w->repeats == 0) continue;
        part[0][n] = w->compute_s * 1e3;
        part[1][n] = w->exposed_s * 1e3;
        part[2][n] = w->data_wait_s * 1e3;
        snprintf(text[n], sizeof text[n], "%d rank%s%s", w->ranks, w->ranks == 1 ? "" : "s",
                 w->oversubscribed ? " (oversubscribed)" : "");
        names[n] = text[n];
        n++;
    }
    if (n == 0) return;
    for (int k = 0; k < 3; k++) {
        series[k].n = n;
        series[k].y = part[k];
    }
    ls_report_heading(doc, "Where a step's time goes");
    ls_report_chart(doc, &(ls_chart){.id = "ledger",
                                     .title = "A step, by rank count",
                                     .caption = "Median step of the slowest rank; compute is what is neither "
                                                "exposed communication nor waiting for data.",
                                     .kind = LS_CHART_BARS,
                                     .x_label = "milliseconds",
                                     .x_scale = LS_SCALE_FROM_ZERO,
                                     .y_scale = LS_SCALE_FROM_ZERO,
                                     .series = series,
                                     .n_series = 3,
                                     .categories = names,
                                     .n_categories = n});
}

/* -- words ------------------------------------------------------------------------------------------------
 */

static void add_question(ls_report *doc, const ls_study *s, const ls_study_results *r,
                         const ls_study_points *p)
{
    const bool weak = s->mode == LS_STUDY_WEAK;

    ls_report_paragraph(doc,
                        "%s scaling of %s: every point has %lld samples per %s.  %d thread%s per rank, %d "
                        "repeat%s, %s.",
                        weak ? "Weak" : "Strong", s->name, (long long)s->batch,
                        weak ? "rank and batch" : "update, shared by all ranks", s->threads,
                        s->threads == 1 ? "" : "s", s->repeats, s->repeats == 1 ? "" : "s",
                        s->train ? "each point a training run" : "each point a benchmark of training steps");
    if (!r->complete)
        ls_report_note(doc, "The study is not complete: %d of %d points are measured.", p->n_there,
                       s->n_counts * s->repeats);
    if (r->any_oversubscribed)
        ls_report_note(
            doc,
            "Points marked oversubscribed have more threads than the machine has cores (%d).  Their "
            "ranks take turns on the cores, so their efficiency says nothing about scaling: it is "
            "what sharing the cores costs.",
            s->cores);
    if (s->busy >= LS_STUDY_BUSY)
        ls_report_note(
            doc,
            "Others used the machine: when the study began, they kept %.0f %% of its processors busy.  Rates "
            "are lower, and intervals wider, than on a machine of one's own.",
            100 * s->busy);
}

/* Line by line, as the terminal shows it. */
static void add_advice(ls_report *doc, const ls_study *s, const ls_study_results *r)
{
    ls_text text = {0};

    lsi_advice(s, r, &text);
    ls_predicted_advice(s, r, &text);
    for (const char *at = text.data; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, "\n");
        ls_report_paragraph(doc, "%.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
    ls_text_release(&text);
}

/* How far a value is from growing with the ranks: 1 when it does. */
static void cell_growth(ls_sheet *t, double x, double base, double ranks)
{
    if (x > 0 && base > 0)
        ls_sheet_cell(t, "%.3f", x / base / ranks);
    else
        ls_sheet_cell(t, "-");
}

/* What the machine itself can do on so many cores: training cannot scale better than that. */
static ls_status add_probe(ls_report *doc, const ls_study_results *r, ls_err *err)
{
    static const ls_sheet_column columns[] = {{"ranks", 'r'},    {"peak FLOP/s", 'r'},
                                              {"of ideal", 'r'}, {"memory read per s", 'r'},
                                              {"of ideal", 'r'}, {"step at FLOP/s", 'r'}};
    const ls_study_row *base = &r->rows[0];
    ls_sheet *t = NULL;
    ls_status st = LS_OK;
    int n = 0;

    LS_TRY(ls_sheet_create(&t, "machine", NULL, columns, sizeof columns / sizeof columns[0], err));
    for (int i = 0; i < r->n; i++) {
        const ls_study_row *w = &r->rows[i];
        const double more = (double)w->ranks / base->ranks;
        char text[32];
        if (isnan(w->peak_flop_s) || isnan(w->peak_read_b_s)) continue;
        ls_sheet_cell(t, "%d%s", w->ranks, w->oversubscribed ? " (oversubscribed)" : "");
        ls_sheet_cell(t, "%s", ls_text_si(w->peak_flop_s, text));
        cell_growth(t, w->peak_flop_s, base->peak_flop_s, more);
        ls_sheet_cell(t, "%s", ls_text_bytes(w->peak_read_b_s, text));
        cell_growth(t, w->peak_read_b_s, base->peak_read_b_s, more);
        ls_sheet_cell(t, "%s", ls_text_si(w->flop_s, text));
        n++;
    }
    if (n > 0) {
        ls_report_paragraph(
            doc, "Measured beside each point, on all its ranks at once: arithmetic in registers and "
                 "reading of memory.  \"Of ideal\" is the share of the smallest run's value times "
                 "the ranks: where the machine itself does not grow, training cannot.");
        ls_report_sheet(doc, t);
    }
out:
    ls_sheet_destroy(t);
    return st;
}

static ls_status add_machine(ls_report *doc, const ls_study *s, const ls_study_results *r, ls_err *err)
{
    ls_text command = {0};
    ls_status st = LS_OK;

    ls_report_heading(doc, "The machine");
    ls_report_paragraph(doc, "%s, %d cores at hand; lockstep %s, device %s.", s->host, s->cores, s->version,
                        s->device);
    LS_TRY(add_probe(doc, r, err));
    ls_report_heading(doc, "To repeat it");
    ls_study_command(s, &command);
    if (r->by != NULL) {
        ls_text_add(&command, " --predict ");
        ls_text_add_quoted(&command, r->by->calibration);
    }
    ls_report_code(doc, command.data != NULL ? command.data : "");
out:
    ls_text_release(&command);
    return st;
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

ls_status ls_study_report(const ls_study *s, const ls_study_points *p, const ls_study_results *r,
                          char path[LS_STUDY_PATH_MAX], ls_err *err)
{
    ls_report *doc = NULL;
    ls_sheet *points = NULL;
    char title[320];
    ls_status st = LS_OK;

    snprintf(title, sizeof title, "%.200s, %s scaling", s->name, ls_study_mode_name(s->mode));
    LS_TRY(ls_report_create(&doc, title, err));
    add_question(doc, s, r, p);
    LS_TRY(add_table(doc, s, r, err));
    add_advice(doc, s, r);
    add_scaling_charts(doc, s, r);
    add_ledger(doc, r);
    LS_TRY(add_machine(doc, s, r, err));
    ls_report_heading(doc, "All points");
    LS_TRY(lsi_points_sheet(&points, s, p, r, err));
    ls_report_sheet(doc, points);
    LS_TRY(ls_report_write(doc, s->dir, err));
    LS_TRY(lsi_study_csv(s, r, err)); /* the tables as readers see them hold texts */
    LS_TRY(lsi_study_join(path, s->dir, "report.html", err));
out:
    ls_sheet_destroy(points);
    ls_report_destroy(doc);
    return st;
}

ls_status ls_study_rebuild(const char *folder, char path[LS_STUDY_PATH_MAX], ls_err *err)
{
    ls_study s = {0};
    ls_study_points p = {0};
    ls_study_results r;
    ls_predicted *said = ls_alloc(LS_MEM_CLI, sizeof *said);
    bool there;
    ls_status st = LS_OK;

    if (said == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    LS_TRY(ls_study_load(&s, folder, err));
    LS_TRY(ls_study_points_load(&p, &s, err));
    LS_TRY(ls_predicted_load(said, &s, &there, err));
    ls_study_judge(&s, &p, &r);
    if (there) ls_predicted_judge(&s, said, &r);
    LS_TRY(ls_study_report(&s, &p, &r, path, err));
out:
    ls_study_points_release(&p);
    ls_study_release(&s);
    ls_free(said);
    return st;
}
