/* plan_memory_page.c: the table of memory as a page with charts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "plan_memory.h"
#include "report/report.h"

enum { KINDS = 6, STRATEGIES = 8, BARS = 32 };

static const char *const kind_names[KINDS] = {"weights",     "gradients", "optimizer",
                                              "activations", "workspace", "exchange"};

static void kinds_of(const plan_memory_row *r, double bytes[KINDS])
{
    const ls_plan_memory *m = &r->memory;
    const size_t of[KINDS] = {m->weights, m->gradients, m->optimizer, m->activations, m->scratch, m->comm};

    for (int k = 0; k < KINDS; k++) bytes[k] = (double)of[k];
}

static ls_status add_table(ls_report *doc, const plan_memory_table *t, ls_err *err)
{
    ls_sheet_column columns[KINDS + 7] = {{"ranks", 'r'}, {"strategy", 'l'}};
    const int n = KINDS + (t->limit > 0 ? 7 : 4);
    ls_sheet *s = NULL;
    char buf[32];
    ls_status st = LS_OK;

    for (int k = 0; k < KINDS; k++) columns[2 + k] = (ls_sheet_column){kind_names[k], 'r'};
    columns[2 + KINDS] = (ls_sheet_column){"staging", 'r'};
    columns[3 + KINDS] = (ls_sheet_column){"total", 'r'};
    columns[4 + KINDS] = (ls_sheet_column){"fits", 'l'};
    columns[5 + KINDS] = (ls_sheet_column){"largest batch", 'r'};
    columns[6 + KINDS] = (ls_sheet_column){"largest width", 'r'};
    LS_TRY(ls_sheet_create(&s, "memory", NULL, columns, n, err));
    for (int i = 0; i < t->n; i++) {
        const plan_memory_row *r = &t->rows[i];
        double bytes[KINDS];
        kinds_of(r, bytes);
        ls_sheet_number(s, r->ranks, "%d", r->ranks);
        ls_sheet_cell(s, "%s", r->strategy);
        for (int k = 0; k < KINDS; k++) ls_sheet_number(s, bytes[k], "%s", ls_text_bytes(bytes[k], buf));
        ls_sheet_number(s, (double)r->staging, "%s", ls_text_bytes((double)r->staging, buf));
        ls_sheet_number(s, (double)r->memory.total, "%s", ls_text_bytes((double)r->memory.total, buf));
        if (t->limit == 0) continue;
        ls_sheet_cell(s, "%s",
                      r->why[0] != '\0'             ? "cannot be had"
                      : r->memory.total <= t->limit ? "yes"
                                                    : "no");
        ls_sheet_number(s, (double)r->largest, "%lld", (long long)r->largest);
        if (r->widest >= 0)
            ls_sheet_number(s, (double)r->widest, "%lld", (long long)r->widest);
        else
            ls_sheet_cell(s, "none");
    }
    ls_report_sheet(doc, s);
out:
    ls_sheet_destroy(s);
    return st;
}

/* A line for every strategy over numbers of ranks, and the limit. */
static ls_status add_lines(ls_report *doc, const plan_memory_table *t, ls_err *err)
{
    const size_t most = (size_t)t->n + 2;
    double *x = ls_alloc(LS_MEM_CLI, sizeof *x * most * (STRATEGIES + 1)), *y;
    double *values = ls_alloc(LS_MEM_CLI, sizeof *values * most * (STRATEGIES + 1));
    ls_chart_series series[STRATEGIES + 1] = {{0}};
    int n = 0;

    if (x == NULL || values == NULL) {
        ls_free(x);
        ls_free(values);
        return ls_fail(err, LS_NOMEM, "no memory for a chart");
    }
    for (int i = 0; i < t->n; i++) {
        const plan_memory_row *r = &t->rows[i];
        int k = 0;
        while (k < n && strcmp(series[k].name, r->strategy) != 0) k++;
        if (k == STRATEGIES || r->why[0] != '\0') continue;
        if (k == n) {
            series[n] = (ls_chart_series){.name = r->strategy, .marks = true};
            series[n].x = x + (size_t)n * most;
            series[n].y = values + (size_t)n * most;
            n++;
        }
        x[(size_t)k * most + (size_t)series[k].n] = r->ranks;
        values[(size_t)k * most + (size_t)series[k].n++] = (double)r->memory.total / 0x1p30;
    }
    if (t->limit > 0 && t->n > 0) {
        y = values + (size_t)n * most;
        x[(size_t)n * most] = t->rows[0].ranks;
        x[(size_t)n * most + 1] = t->rows[t->n - 1].ranks;
        y[0] = y[1] = (double)t->limit / 0x1p30;
        series[n] =
            (ls_chart_series){.name = "limit", .ideal = true, .n = 2, .x = x + (size_t)n * most, .y = y};
        n++;
    }
    ls_report_chart(doc, &(ls_chart){.id = "memory-ranks",
                                     .title = "Memory of a rank",
                                     .kind = LS_CHART_LINES,
                                     .x_label = "ranks",
                                     .y_label = "GiB",
                                     .x_scale = LS_SCALE_LOG2,
                                     .y_scale = LS_SCALE_FROM_ZERO,
                                     .series = series,
                                     .n_series = n});
    ls_free(x);
    ls_free(values);
    return LS_OK;
}

/* A bar for every row, of its kinds. */
static void add_bars(ls_report *doc, const plan_memory_table *t)
{
    static double values[KINDS][BARS];
    char names[BARS][48];
    const char *categories[BARS];
    ls_chart_series series[KINDS] = {{0}};
    int n = 0;

    for (int i = 0; i < t->n && n < BARS; i++) {
        double bytes[KINDS];
        if (t->rows[i].why[0] != '\0') continue;
        kinds_of(&t->rows[i], bytes);
        snprintf(names[n], sizeof names[n], "%d x %s", t->rows[i].ranks, t->rows[i].strategy);
        categories[n] = names[n];
        for (int k = 0; k < KINDS; k++) values[k][n] = bytes[k] / 0x1p30;
        n++;
    }
    for (int k = 0; k < KINDS; k++)
        series[k] = (ls_chart_series){.name = kind_names[k], .n = n, .y = values[k]};
    if (n == 0) return;
    ls_report_chart(doc, &(ls_chart){.id = "memory-kinds",
                                     .title = "What it is for",
                                     .kind = LS_CHART_BARS,
                                     .x_label = "GiB",
                                     .series = series,
                                     .n_series = KINDS,
                                     .categories = categories,
                                     .n_categories = n});
}

ls_status plan_memory_page(const plan_memory_table *t, const char *folder, char *page, size_t size,
                           ls_err *err)
{
    ls_report *doc = NULL;
    char title[160], limit[32];
    ls_status st = LS_OK;

    ls_text_fit(title, sizeof title, "Memory of %s", t->name);
    LS_TRY(ls_report_create(&doc, title, err));
    ls_report_paragraph(
        doc,
        "What one rank takes with batches of %lld samples%s, from plans that were compiled and not "
        "run%s%s.",
        (long long)(t->global > 0 ? t->global : t->batch), t->global > 0 ? " of all ranks" : "",
        t->limit > 0 ? "; the limit is " : "", t->limit > 0 ? ls_text_bytes((double)t->limit, limit) : "");
    LS_TRY(add_lines(doc, t, err));
    add_bars(doc, t);
    LS_TRY(add_table(doc, t, err));
    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] != '\0')
            ls_report_note(doc, "%d ranks, %s: %s", t->rows[i].ranks, t->rows[i].strategy, t->rows[i].why);
    LS_TRY(ls_report_write(doc, folder, err));
    ls_text_fit(page, size, "%s/report.html", folder);
out:
    ls_report_destroy(doc);
    return st;
}
