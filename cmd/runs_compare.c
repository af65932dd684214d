/* runs_compare.c: `lockstep runs compare RUN RUN ...`: settings, results and curves beside each other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "grid.h"
#include "report_page.h"
#include "runs.h"
#include "train/history.h"

enum { METRICS = 24, BARS = 32, CURVES = 64 };

/* A column per run, called as the run. */
static ls_status begin(grid **g, const runs_rows *r, const char *first, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(grid_create(g, err));
    grid_column(*g, first, 'l');
    for (int k = 0; k < r->n; k++) grid_column(*g, r->rows[k].info->folder, 'r');
out:
    return st;
}

static void add_field(grid *g, const runs_rows *r, const char *name, const char *key)
{
    grid_text(g, name);
    for (int k = 0; k < r->n; k++) {
        const ls_run_value v = ls_run_field(&r->rows[k], key);
        char text[160];
        if (strcmp(key, "state") == 0) {
            runs_state_text(r->rows[k].info, text, sizeof text);
            grid_text(g, text);
        } else if (strcmp(key, "started") == 0) {
            grid_text(g, ls_run_time_text(r->rows[k].info->started, text));
        } else if (v.kind == LS_RUN_NUMBER) {
            grid_number(g, v.number, 6);
        } else {
            grid_text(g, v.kind == LS_RUN_TEXT ? v.text : "");
        }
    }
}

/* The settings that differ, then what came of it. */
static ls_status fill(grid *g, const runs_rows *r)
{
    static const char *const before[][2] = {
        {"state", "state"}, {"started (UTC)", "started"}, {"seconds", "seconds"},         {"ranks", "ranks"},
        {"steps", "steps"}, {"epochs", "epochs"},         {"samples/s", "samples_per_s"}, {"best", "metric"}};
    const char *names[METRICS];
    char name[160];
    int n;

    for (int i = 0; i < r->keys.n; i++) {
        if (!r->keys.differs[i]) continue;
        grid_text(g, r->keys.keys[i]);
        for (int k = 0; k < r->n; k++)
            grid_text(g, ls_run_setting_value(&r->rows[k].settings, r->keys.keys[i], i));
    }
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) add_field(g, r, before[i][0], before[i][1]);
    n = runs_metric_names(r, "last", names, METRICS);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "val/%.120s", names[i]);
        add_field(g, r, name, name);
    }
    n = runs_metric_names(r, "test", names, METRICS);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "test/%.120s", names[i]);
        add_field(g, r, name, name);
    }
    return LS_OK;
}

/* -- curves -----------------------------------------------------------------------------------------------
 */

/* The mean of the finite values of each of BARS stretches as a bar between `least` and `most` of all runs. */
static void spark(const ls_curve *c, double least, double most, char *out, size_t size)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const int64_t n = c->n < BARS ? c->n : BARS;
    const bool flat = !(most - least > 1e-4 * fmax(fabs(least), fabs(most))); /* rounding is no climb */
    size_t at = 0;

    out[0] = '\0';
    for (int64_t k = 0; k < n && at + 8 < size; k++) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t i = c->n * k / n; i < c->n * (k + 1) / n; i++) {
            if (!isfinite(c->value[i])) continue;
            sum += c->value[i];
            count++;
        }
        const double share = count == 0 ? -1 : flat ? 0.5 : (sum / (double)count - least) / (most - least);
        at += (size_t)snprintf(out + at, size - at, "%s",
                               share < 0 ? " " : bars[(int)fmin(7, floor(share * 8))]);
    }
}

/* Runs share a scale, or their bars could not be compared. */
static void range_of(const ls_history *h, int n, const char *name, double *least, double *most)
{
    *least = INFINITY;
    *most = -INFINITY;
    for (int k = 0; k < n; k++) {
        const ls_curve *c = ls_history_curve(&h[k], name);
        for (int64_t i = 0; c != NULL && i < c->n; i++) {
            if (!isfinite(c->value[i])) continue;
            *least = fmin(*least, c->value[i]);
            *most = fmax(*most, c->value[i]);
        }
    }
}

static void print_curve(const runs_rows *r, const ls_history *h, const char *name)
{
    double least, most;
    char text[BARS * 4 + 1], run[128], shown[160];

    range_of(h, r->n, name, &least, &most);
    if (!(least <= most)) return;
    printf("\n%s, %.4g to %.4g\n", grid_shown(name, shown, sizeof shown), least, most);
    for (int k = 0; k < r->n; k++) {
        const ls_curve *c = ls_history_curve(&h[k], name);
        if (c == NULL || c->n == 0) continue;
        spark(c, least, most, text, sizeof text);
        printf("  %s  %s  %.4g -> %.4g\n", text, grid_shown(r->rows[k].info->folder, run, sizeof run),
               c->value[0], c->value[c->n - 1]);
    }
}

/* Of every metric of a run, what is told once an epoch where that is, else once a report. */
static void print_curves(const runs_rows *r, const ls_history *h)
{
    const char *seen[CURVES];
    int n = 0;

    for (int k = 0; k < r->n; k++) {
        for (int i = 0; i < h[k].n_curves; i++) {
            const char *name = h[k].curves[i].name, *step = strstr(name, "_step");
            char epoch[LS_HISTORY_NAME + 8];
            int at = 0;
            while (at < n && strcmp(seen[at], name) != 0) at++;
            /* The best so far is a staircase that repeats its metric. */
            if (at < n || n == CURVES || strstr(name, "_best") != NULL) continue;
            if (step != NULL) {
                snprintf(epoch, sizeof epoch, "%.*s_epoch", (int)(step - name), name);
                const ls_curve *c = ls_history_curve(&h[k], epoch);
                if (c != NULL && c->n > 3) continue;
            }
            seen[n++] = name;
            print_curve(r, h, name);
        }
    }
}

static ls_status read_curves(const runs_rows *r, ls_past_run *past, ls_history *h, ls_err *err)
{
    ls_status st = LS_OK;

    for (int k = 0; k < r->n; k++) {
        LS_TRY(ls_past_run_open(&past[k], r->rows[k].info->path, err));
        ls_past_run_warn(&past[k]);
        h[k] = past[k].history;
    }
out:
    return st;
}

static ls_status print_text(const runs_rows *r, ls_err *err)
{
    ls_past_run *past = ls_alloc(LS_MEM_CLI, (size_t)r->n * sizeof *past);
    ls_history *h = ls_alloc(LS_MEM_CLI, (size_t)r->n * sizeof *h);
    grid *g = NULL;
    ls_err why = {0};
    ls_status st = LS_OK;

    if (past == NULL || h == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for the curves of runs");
        goto out;
    }
    LS_TRY(begin(&g, r, "", err));
    LS_TRY(fill(g, r));
    LS_TRY(grid_print(g, 0, err));
    if (r->keys.n_differing == 0) printf("(the settings are the same)\n");
    /* The table stands by itself where a run has no curves that can be read. */
    if (read_curves(r, past, h, &why) == LS_OK)
        print_curves(r, h);
    else
        printf("\n(no curves: %s)\n", why.text);
out:
    for (int k = 0; k < r->n && past != NULL; k++) ls_past_run_release(&past[k]);
    ls_free(past);
    ls_free(h);
    grid_destroy(g);
    return st;
}

static ls_status print_csv(const runs_rows *r, ls_err *err)
{
    grid *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(begin(&g, r, "field", err));
    LS_TRY(fill(g, r));
    LS_TRY(grid_print_csv(g, err));
out:
    grid_destroy(g);
    return st;
}

static void print_json(const runs_rows *r)
{
    json_t *list = json_array(), *differing = json_array();

    for (int k = 0; k < r->n; k++) json_array_append_new(list, runs_json(&r->rows[k], &r->keys));
    for (int i = 0; i < r->keys.n; i++)
        if (r->keys.differs[i]) json_array_append_new(differing, runs_text_json(r->keys.keys[i]));
    cli_print_json_take(
        json_pack("{s:s, s:o, s:o}", "event", "compare", "settings_that_differ", differing, "runs", list));
}

/* The page that `lockstep report` makes of the same runs. */
static int as_page(const runs_rows *r, const cli_args *args)
{
    const char *paths[LS_RUN_PAGES_MOST];

    for (int k = 0; k < r->n; k++) paths[k] = r->rows[k].info->path;
    return report_of_runs(paths, r->n, args);
}

int runs_compare(const cli_args *args)
{
    runs_rows r;
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(runs_rows_named(&r, args, &err));
    LS_TRY(runs_rows_differ(&r, &err));
    if (args->html)
        code = as_page(&r, args);
    else if (args->json)
        print_json(&r);
    else if (args->csv)
        LS_TRY(print_csv(&r, &err));
    else
        LS_TRY(print_text(&r, &err));
out:
    runs_rows_release(&r);
    return st == LS_OK ? code : cli_fail("runs", &err);
}
