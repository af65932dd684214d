/* run_pages.c: a document about runs. */
#include "train/run_pages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "train/timeline.h"

enum { NAMES = 24 }; /* metrics with columns of their own */

/* -- the table of runs -------------------------------------------------------------------------------------
 */

/* A number as a person writes it; nothing where there is none. */
static const char *shown(double v, char buf[40])
{
    if (!isfinite(v))
        snprintf(buf, 40, "%s", "");
    else if (fabs(v) >= 1000 && fabs(v) < 1e15)
        ls_text_count((int64_t)llround(v), buf);
    else
        snprintf(buf, 40, "%.4g", v);
    return buf;
}

/* The names of the metrics that any run has in `part` of its results. */
static int metric_names(const ls_past_run *runs, int n_runs, const char *part, const char **names)
{
    int n = 0;

    for (int k = 0; k < n_runs; k++) {
        json_t *o = json_object_get(json_object_get(runs[k].summary, "metrics"), part), *value;
        const char *name;
        json_object_foreach(o, name, value)
        {
            int i = 0;
            while (i < n && strcmp(names[i], name) != 0) i++;
            if (i == n && n < NAMES) names[n++] = name;
        }
    }
    return n;
}

static double metric_of(const ls_past_run *r, const char *part, const char *name)
{
    const json_t *v = json_object_get(json_object_get(json_object_get(r->summary, "metrics"), part), name);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

typedef struct metric_columns {
    const char *validation[NAMES], *test[NAMES];
    int n_validation, n_test;
} metric_columns;

static int make_columns(const metric_columns *m, ls_arena *arena, ls_sheet_column *columns)
{
    static const char *const before[] = {"run", "state", "ranks", "steps", "epochs"};
    static const char *const after[] = {"samples/s", "central 68 %", "wall s", "weights"};
    int n = 0;

    for (int i = 0; i < 5; i++) columns[n++] = (ls_sheet_column){before[i], i < 2 ? 'l' : 'r'};
    for (int i = 0; i < m->n_validation; i++)
        columns[n++] = (ls_sheet_column){ls_arena_printf(arena, "val %s", m->validation[i]), 'r'};
    for (int i = 0; i < m->n_test; i++)
        columns[n++] = (ls_sheet_column){ls_arena_printf(arena, "test %s", m->test[i]), 'r'};
    for (int i = 0; i < 4; i++) columns[n++] = (ls_sheet_column){after[i], i < 3 ? 'r' : 'l'};
    for (int i = 0; i < n; i++)
        if (columns[i].name == NULL) return -1;
    return n;
}

static void add_row(ls_sheet *s, const ls_past_run *r, const metric_columns *m)
{
    const double lo = ls_past_run_number(r, "samples_per_s", "p16");
    const double hi = ls_past_run_number(r, "samples_per_s", "p84");
    char a[40], b[40];

    ls_sheet_cell(s, "%s", r->name);
    ls_sheet_cell(s, "%s", ls_past_run_text(r, "state"));
    ls_sheet_cell(s, "%s", shown(ls_past_run_number(r, NULL, "ranks"), a));
    ls_sheet_cell(s, "%s", shown(ls_past_run_number(r, NULL, "steps"), a));
    ls_sheet_cell(s, "%s", shown(ls_past_run_number(r, NULL, "epochs"), a));
    for (int i = 0; i < m->n_validation; i++)
        ls_sheet_cell(s, "%s", shown(metric_of(r, "last", m->validation[i]), a));
    for (int i = 0; i < m->n_test; i++) ls_sheet_cell(s, "%s", shown(metric_of(r, "test", m->test[i]), a));
    ls_sheet_cell(s, "%s", shown(ls_past_run_number(r, "samples_per_s", "p50"), a));
    if (isfinite(lo) && isfinite(hi))
        ls_sheet_cell(s, "%s to %s", shown(lo, a), shown(hi, b));
    else
        ls_sheet_cell(s, "%s", "");
    ls_sheet_cell(s, "%s", shown(ls_past_run_number(r, NULL, "wall_s"), a));
    ls_sheet_cell(s, "%s", ls_past_run_text(r, "weights_xxh3"));
}

static ls_status add_table(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err)
{
    ls_sheet_column columns[2 * NAMES + 9];
    metric_columns m;
    ls_arena *arena = NULL;
    ls_sheet *s = NULL;
    ls_status st = LS_OK;
    int n;

    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    m.n_validation = metric_names(runs, n_runs, "last", m.validation);
    m.n_test = metric_names(runs, n_runs, "test", m.test);
    n = make_columns(&m, arena, columns);
    if (n < 0) {
        st = ls_fail(err, LS_NOMEM, "no memory for a table");
        goto out;
    }
    LS_TRY(ls_sheet_create(&s, "runs", NULL, columns, n, err));
    for (int k = 0; k < n_runs; k++) add_row(s, &runs[k], &m);
    ls_report_sheet(page, s);
out:
    ls_sheet_destroy(s);
    ls_arena_destroy(arena);
    return st;
}

/* A run that did not end as it was meant to is named before its numbers. */
static void add_notes(ls_report *page, const ls_past_run *runs, int n_runs)
{
    for (int k = 0; k < n_runs; k++) {
        const char *state = ls_past_run_text(&runs[k], "state"), *error = ls_past_run_text(&runs[k], "error");
        if (strcmp(state, "completed") != 0)
            ls_report_note(page, "%s is not complete: its state is \"%s\"%s%s.", runs[k].name, state,
                           error[0] != '\0' ? ", because " : "", error);
    }
}

/* -- throughput --------------------------------------------------------------------------------------------
 */

/* Samples of a step: the summary has the rate and the time of the same steps. */
static double batch_of(const ls_past_run *r)
{
    return round(ls_past_run_number(r, "samples_per_s", "p50") * ls_past_run_number(r, "step_s", "p50"));
}

/* What a run's two series need: rates between reports, and the steps' median over the whole time. */
typedef struct pace {
    double *time, *rate;
    double ends[2], median[2], lo[2], hi[2];
} pace;

static ls_status add_pace(const ls_past_run *r, ls_arena *arena, const char *prefix, int colour,
                          ls_chart_series *out, ls_err *err)
{
    const ls_history *h = &r->history;
    const int64_t n = h->n_times > 1 ? h->n_times - 1 : 0;
    const double wall = ls_past_run_number(r, NULL, "wall_s"), batch = batch_of(r);
    pace *p = ls_arena_alloc(arena, sizeof *p);
    const char *between = ls_arena_printf(arena, "%sbetween reports", prefix);
    const char *steps = ls_arena_printf(arena, "%smedian of steps, central 68 %%", prefix);

    if (p == NULL || between == NULL || steps == NULL ||
        (p->time = ls_arena_alloc(arena, (size_t)n * sizeof(double) + 8)) == NULL ||
        (p->rate = ls_arena_alloc(arena, (size_t)n * sizeof(double) + 8)) == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for a chart");
    for (int64_t i = 0; i < n; i++) {
        const double dt = h->time_s[i + 1] - h->time_s[i];
        p->time[i] = h->time_s[i + 1];
        p->rate[i] = dt > 0 ? batch * (h->step[i + 1] - h->step[i]) / dt : NAN;
    }
    for (int i = 0; i < 2; i++) {
        p->median[i] = ls_past_run_number(r, "samples_per_s", "p50");
        p->lo[i] = ls_past_run_number(r, "samples_per_s", "p16");
        p->hi[i] = ls_past_run_number(r, "samples_per_s", "p84");
    }
    p->ends[0] = h->n_times > 0 ? h->time_s[0] : 0;
    p->ends[1] = h->n_times > 1 ? h->time_s[h->n_times - 1] : wall;
    out[0] = (ls_chart_series){.name = steps,
                               .colour = colour,
                               .dashed = true,
                               .n = 2,
                               .x = p->ends,
                               .y = p->median,
                               .lo = p->lo,
                               .hi = p->hi};
    out[1] = (ls_chart_series){
        .name = between, .colour = colour, .marks = n <= 60, .n = n, .x = p->time, .y = p->rate};
    return LS_OK;
}

static ls_status add_throughput(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err)
{
    ls_chart_series series[2 * LS_RUN_PAGES_MOST];
    ls_arena *arena = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    for (int k = 0; k < n_runs; k++) {
        const char *prefix = n_runs == 1 ? "" : ls_arena_printf(arena, "%s, ", runs[k].name);
        if (prefix == NULL) {
            st = ls_fail(err, LS_NOMEM, "no memory for a chart");
            goto out;
        }
        LS_TRY(add_pace(&runs[k], arena, prefix, k + 1, &series[2 * k], err));
    }
    ls_report_heading(page, "Throughput");
    ls_report_chart(
        page,
        &(ls_chart){.id = "throughput",
                    .title = "Samples per second over the run",
                    .caption = "The band holds the central 68 % of the training steps of the run's newest "
                               "process. Between two reports all time counts, also that of validation and "
                               "checkpoints.",
                    .x_label = "seconds since the start",
                    .y_label = "samples/s",
                    .x_scale = LS_SCALE_FROM_ZERO,
                    .y_scale = LS_SCALE_FROM_ZERO,
                    .series = series,
                    .n_series = 2 * n_runs});
out:
    ls_arena_destroy(arena);
    return st;
}

/* -- ledger ------------------------------------------------------------------------------------------------
 */

/* The parts that are not zero in all runs. */
static int ledger_parts(const ls_past_run *runs, int n_runs, const char **names)
{
    int n = 0;

    for (int k = 0; k < n_runs; k++) {
        json_t *value;
        const char *name;
        json_object_foreach(json_object_get(runs[k].summary, "ledger_s"), name, value)
        {
            int i = 0;
            while (i < n && strcmp(names[i], name) != 0) i++;
            if (i == n && n < NAMES && json_number_value(value) > 0) names[n++] = name;
        }
    }
    return n;
}

static ls_status add_ledger(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err)
{
    const char *names[NAMES], *categories[LS_RUN_PAGES_MOST];
    double seconds[NAMES][LS_RUN_PAGES_MOST];
    ls_chart_series series[NAMES];
    ls_sheet_column columns[NAMES + 1] = {{"run", 'l'}};
    const int n = ledger_parts(runs, n_runs, names);
    ls_sheet *s = NULL;
    ls_status st = LS_OK;
    char buf[40];

    for (int i = 0; i < n; i++) columns[i + 1] = (ls_sheet_column){names[i], 'r'};
    LS_TRY(ls_sheet_create(&s, "ledger-seconds", NULL, columns, n + 1, err));
    for (int k = 0; k < n_runs; k++) {
        categories[k] = runs[k].name;
        ls_sheet_cell(s, "%s", runs[k].name);
        for (int i = 0; i < n; i++) {
            seconds[i][k] = ls_past_run_number(&runs[k], "ledger_s", names[i]);
            ls_sheet_cell(s, "%s", shown(seconds[i][k], buf));
        }
    }
    for (int i = 0; i < n; i++) series[i] = (ls_chart_series){.name = names[i], .n = n_runs, .y = seconds[i]};
    ls_report_heading(page, "Ledger");
    ls_report_chart(page, &(ls_chart){.id = "ledger",
                                      .title = "Where the seconds went",
                                      .kind = LS_CHART_BARS,
                                      .x_label = "seconds",
                                      .series = series,
                                      .n_series = n,
                                      .categories = categories,
                                      .n_categories = n_runs});
    ls_report_sheet(page, s);
out:
    ls_sheet_destroy(s);
    return st;
}

/* -- timeline ----------------------------------------------------------------------------------------------
 */

static void draw_timeline(ls_report *page, const ls_timeline *t, const ls_past_run *r, int number,
                          ls_chart_span *spans, ls_arena *arena)
{
    ls_chart_series series[LS_SPAN_KINDS];
    const char *lanes[LS_TIMELINE_RANKS];
    double wait = 0, all = 0;
    char id[32];

    for (int64_t i = 0; i < t->n_spans; i++) {
        const ls_timeline_span *s = &t->spans[i];
        spans[i] = (ls_chart_span){s->rank, (int)s->kind, s->begin_ms, s->end_ms, s->name};
        all += s->end_ms - s->begin_ms;
        if (s->kind >= LS_SPAN_EXCHANGE) wait += s->end_ms - s->begin_ms;
    }
    for (int k = 0; k < LS_SPAN_KINDS; k++)
        series[k] = (ls_chart_series){.name = ls_span_kind_name((ls_span_kind)k),
                                      .colour = (const int[]){1, 3, 4, 5, 2}[k]};
    for (int k = 0; k < t->n_ranks; k++) {
        lanes[k] = ls_arena_printf(arena, "rank %d", k);
        if (lanes[k] == NULL) lanes[k] = "";
    }
    snprintf(id, sizeof id, "step-%d", number);
    const char *title = ls_arena_printf(arena, "Step %lld of %s", t->step, r->name);
    const char *caption = ls_arena_printf(arena,
                                          "The last step that all ranks have traced. Exchange and waiting "
                                          "take %.1f %% of the time of all ranks.",
                                          all > 0 ? 100 * wait / all : 0);
    ls_report_chart(page, &(ls_chart){.id = id,
                                      .title = title != NULL ? title : "",
                                      .caption = caption,
                                      .kind = LS_CHART_TIMELINE,
                                      .x_label = "milliseconds",
                                      .series = series,
                                      .n_series = LS_SPAN_KINDS,
                                      .categories = lanes,
                                      .n_categories = t->n_ranks,
                                      .spans = spans,
                                      .n_spans = t->n_spans});
}

static ls_status add_timelines(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err)
{
    ls_status st = LS_OK;
    ls_timeline t = {0};
    int number = 0;

    for (int k = 0; k < n_runs; k++) {
        LS_TRY(ls_timeline_open(&t, runs[k].path, err));
        if (t.n_ranks > 0) {
            ls_chart_span *spans = ls_arena_alloc(t.arena, (size_t)t.n_spans * sizeof *spans + 1);
            if (spans == NULL) {
                st = ls_fail(err, LS_NOMEM, "no memory for a timeline");
                goto out;
            }
            if (number++ == 0) ls_report_heading(page, "One step");
            draw_timeline(page, &t, &runs[k], number, spans, t.arena);
        }
        ls_timeline_release(&t);
    }
out:
    ls_timeline_release(&t);
    return st;
}

ls_status ls_run_pages(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err)
{
    ls_status st = LS_OK;

    LS_BUG_IF(n_runs < 1 || n_runs > LS_RUN_PAGES_MOST);
    add_notes(page, runs, n_runs);
    LS_TRY(add_table(page, runs, n_runs, err));
    LS_TRY(ls_run_pages_curves(page, runs, n_runs, err));
    LS_TRY(add_throughput(page, runs, n_runs, err));
    LS_TRY(add_ledger(page, runs, n_runs, err));
    LS_TRY(add_timelines(page, runs, n_runs, err));
out:
    return st;
}
