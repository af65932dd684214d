/* run_pages.c: a document about runs. */
#include "train/run_pages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/units.h"
#include "train/confusion.h"
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
    static const ls_sheet_column after[] = {{"samples/s", 'r'},     {"central 68 %", 'r'},
                                            {"samples/s p16", '-'}, {"samples/s p84", '-'},
                                            {"wall s", 'r'},        {"weights", 'l'}};
    int n = 0;

    for (int i = 0; i < 5; i++) columns[n++] = (ls_sheet_column){before[i], i < 2 ? 'l' : 'r'};
    for (int i = 0; i < m->n_validation; i++)
        columns[n++] = (ls_sheet_column){ls_arena_printf(arena, "val %s", m->validation[i]), 'r'};
    for (int i = 0; i < m->n_test; i++)
        columns[n++] = (ls_sheet_column){ls_arena_printf(arena, "test %s", m->test[i]), 'r'};
    for (int i = 0; i < 6; i++) columns[n++] = after[i];
    for (int i = 0; i < n; i++)
        if (columns[i].name == NULL) return -1;
    return n;
}

/* A number for readers and for programs; nothing where there is none. */
static void add_number(ls_sheet *s, double v)
{
    char buf[40];

    ls_sheet_number(s, v, "%s", shown(v, buf));
}

static void add_rate(ls_sheet *s, double v)
{
    char buf[LS_UNITS_TEXT];

    ls_sheet_number(s, v, "%s", isfinite(v) ? ls_units_rate(v, buf) : "");
}

static void add_row(ls_sheet *s, const ls_past_run *r, int colour, const metric_columns *m)
{
    const double lo = ls_past_run_number(r, "samples_per_s", "p16");
    const double hi = ls_past_run_number(r, "samples_per_s", "p84");
    char a[40], b[40];

    ls_sheet_cell(s, "%s", r->name);
    ls_sheet_mark(s, colour);
    ls_sheet_cell(s, "%s", ls_past_run_text(r, "state"));
    add_number(s, ls_past_run_number(r, NULL, "ranks"));
    add_number(s, ls_past_run_number(r, NULL, "steps"));
    add_number(s, ls_past_run_number(r, NULL, "epochs"));
    for (int i = 0; i < m->n_validation; i++) add_number(s, metric_of(r, "last", m->validation[i]));
    for (int i = 0; i < m->n_test; i++) add_number(s, metric_of(r, "test", m->test[i]));
    add_rate(s, ls_past_run_number(r, "samples_per_s", "p50"));
    if (isfinite(lo) && isfinite(hi))
        ls_sheet_cell(s, "%s to %s", ls_units_rate(lo, a), ls_units_rate(hi, b));
    else
        ls_sheet_cell(s, "%s", "");
    ls_sheet_number(s, lo, "%s", "");
    ls_sheet_number(s, hi, "%s", "");
    add_number(s, ls_past_run_number(r, NULL, "wall_s"));
    ls_sheet_cell(s, "%s", ls_past_run_text(r, "weights_xxh3"));
}

static ls_status add_table(ls_report *page, const ls_page_runs *p, ls_err *err)
{
    ls_sheet_column columns[2 * NAMES + 11];
    metric_columns m;
    ls_arena *arena = NULL;
    ls_sheet *s = NULL;
    ls_status st = LS_OK;
    int n;

    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    m.n_validation = metric_names(p->runs, p->n, "last", m.validation);
    m.n_test = metric_names(p->runs, p->n, "test", m.test);
    n = make_columns(&m, arena, columns);
    if (n < 0) {
        st = ls_fail(err, LS_NOMEM, "no memory for a table");
        goto out;
    }
    LS_TRY(ls_sheet_create(&s, "runs", NULL, columns, n, err));
    for (int k = 0; k < p->n; k++) add_row(s, &p->runs[k], p->n > 1 ? k + 1 : 0, &m);
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
        else if (ls_past_run_text(&runs[k], "ended_why")[0] != '\0')
            ls_report_note(page, "%s ended early: %s.", runs[k].name,
                           ls_past_run_text(&runs[k], "ended_why"));
    }
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

static ls_status add_ledger(ls_report *page, const ls_page_runs *p, ls_err *err)
{
    const char *names[NAMES];
    double seconds[NAMES][LS_RUN_PAGES_MOST];
    ls_chart_series series[NAMES];
    ls_sheet_column columns[NAMES + 1] = {{"run", 'l'}};
    const int n = ledger_parts(p->runs, p->n, names);
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    for (int i = 0; i < n; i++) columns[i + 1] = (ls_sheet_column){names[i], 'r'};
    LS_TRY(ls_sheet_create(&s, "ledger-seconds", NULL, columns, n + 1, err));
    for (int k = 0; k < p->n; k++) {
        ls_sheet_cell(s, "%s", p->runs[k].name);
        if (p->n > 1) ls_sheet_mark(s, k + 1);
        for (int i = 0; i < n; i++) {
            seconds[i][k] = ls_past_run_number(&p->runs[k], "ledger_s", names[i]);
            add_number(s, seconds[i][k]);
        }
    }
    for (int i = 0; i < n; i++) series[i] = (ls_chart_series){.name = names[i], .n = p->n, .y = seconds[i]};
    ls_report_heading(page, "Ledger");
    ls_report_chart(page, &(ls_chart){.id = "ledger",
                                      .title = "Where the seconds went",
                                      .kind = LS_CHART_BARS,
                                      .x_label = "seconds",
                                      .series = series,
                                      .n_series = n,
                                      .categories = p->label,
                                      .n_categories = p->n});
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
    ls_arena *arena = NULL;
    ls_page_runs p;
    size_t shared;
    ls_status st = LS_OK;

    LS_BUG_IF(n_runs < 1 || n_runs > LS_RUN_PAGES_MOST);
    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    LS_TRY(ls_page_runs_of(&p, runs, n_runs, arena, &shared, err));
    add_notes(page, runs, n_runs);
    LS_TRY(add_table(page, &p, err));
    if (shared > 0)
        ls_report_paragraph(page, "Below, names are without what all begin with: \"%.*s\".", (int)shared,
                            p.label[0] - shared);
    LS_TRY(ls_run_pages_settings(page, &p, err));
    LS_TRY(ls_run_pages_curves(page, &p, err));
    for (int k = 0; k < n_runs; k++) LS_TRY(ls_confusion_page(page, runs[k].path, p.label[k], k + 1, err));
    LS_TRY(ls_run_pages_throughput(page, &p, err));
    LS_TRY(ls_run_pages_gauges(page, &p, err));
    LS_TRY(add_ledger(page, &p, err));
    LS_TRY(add_timelines(page, runs, n_runs, err));
out:
    ls_arena_destroy(arena);
    return st;
}
