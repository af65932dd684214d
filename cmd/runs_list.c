/* runs_list.c: `lockstep runs list`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "grid.h"
#include "runs.h"

enum { METRICS = 24 };
_Static_assert((int)CLI_LIST_MAX <= (int)LS_RUN_CONDITIONS, "every condition has its place");

/* Keeps the rows for which all conditions hold. */
static ls_status choose(runs_rows *r, const cli_args *args, ls_err *err)
{
    ls_run_condition c[LS_RUN_CONDITIONS];
    ls_status st = LS_OK;
    int kept = 0;

    /* That they can be read was found out before (cli_runs_check); whether any run has such a key is known
     * now. */
    for (int i = 0; i < args->where.n; i++) {
        LS_TRY(ls_run_condition_parse(&c[i], args->where.of[i], err));
        LS_TRY(ls_run_check_key(r->rows, r->n, c[i].key, err));
    }
    for (int k = 0; k < r->n; k++) {
        bool holds = true;
        for (int i = 0; i < args->where.n; i++) holds = holds && ls_run_holds(&r->rows[k], &c[i]);
        if (holds)
            r->rows[kept++] = r->rows[k];
        else
            ls_run_settings_release(&r->rows[k].settings);
    }
    r->n = kept;
out:
    return st;
}

typedef struct columns {
    const char *last[METRICS], *test[METRICS];
    int n_last, n_test;
    bool several; /* folders: paths instead of names */
    char best[160];
} columns;

/* What the column of best values is called: with the metric's name where all have the same. */
static void name_best(const runs_rows *r, columns *c)
{
    const char *name = NULL, *of;

    c->best[0] = '\0';
    for (int k = 0; k < r->n; k++) {
        if (!isfinite(ls_run_best(&r->rows[k], &of))) continue;
        if (name == NULL) name = of;
        if (strcmp(name, of) != 0) name = "";
    }
    if (name != NULL) snprintf(c->best, sizeof c->best, "best%s%.120s", name[0] != '\0' ? " " : "", name);
}

static void add_columns(grid *g, const runs_rows *r, const columns *c)
{
    static const struct {
        const char *name;
        char align;
    } first[] = {{"run", 'l'},   {"state", 'l'}, {"started (UTC)", 'l'}, {"took", 'r'},
                 {"ranks", 'r'}, {"steps", 'r'}, {"epochs", 'r'}};
    char name[160];

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) grid_column(g, first[i].name, first[i].align);
    for (int i = 0; i < c->n_last; i++) grid_column(g, c->last[i], 'r');
    if (c->best[0] != '\0') grid_column(g, c->best, 'r');
    for (int i = 0; i < c->n_test; i++) {
        snprintf(name, sizeof name, "test/%.120s", c->test[i]);
        grid_column(g, name, 'r');
    }
    for (int i = 0; i < r->keys.n; i++)
        if (r->keys.differs[i]) grid_column(g, r->keys.keys[i], 'r');
}

static void add_row(grid *g, const runs_rows *r, const ls_run_row *row, const columns *c)
{
    const ls_run_info *i = row->info;
    char text[160];
    const char *of;

    grid_text(g, c->several ? i->path : i->folder);
    runs_state_text(i, text, sizeof text);
    grid_texts(g, text, ls_run_field(row, "state").text);
    grid_text(g, ls_run_time_text(i->started, text));
    grid_both(g, ls_run_seconds(i), runs_duration(ls_run_seconds(i), text));
    grid_number(g, i->ranks > 0 ? i->ranks : (double)NAN, 9);
    grid_number(g, i->steps >= 0 ? (double)i->steps : (double)NAN, 12);
    grid_number(g, i->epochs, 5);
    for (int k = 0; k < c->n_last; k++) grid_number(g, ls_run_metric(i, "last", c->last[k]), 4);
    if (c->best[0] != '\0') grid_number(g, ls_run_best(row, &of), 4);
    for (int k = 0; k < c->n_test; k++) grid_number(g, ls_run_metric(i, "test", c->test[k]), 4);
    for (int k = 0; k < r->keys.n; k++)
        if (r->keys.differs[k]) grid_text(g, ls_run_setting_value(&row->settings, r->keys.keys[k], k));
}

static ls_status print_table(const runs_rows *r, const cli_args *args, ls_err *err)
{
    columns c = {.several = r->n_lists > 1};
    grid *g = NULL;
    ls_status st = LS_OK;

    c.n_last = runs_metric_names(r, "last", c.last, METRICS);
    c.n_test = runs_metric_names(r, "test", c.test, METRICS);
    name_best(r, &c);
    LS_TRY(grid_create(&g, err));
    add_columns(g, r, &c);
    for (int k = 0; k < r->n; k++) add_row(g, r, &r->rows[k], &c);
    if (args->csv)
        LS_TRY(grid_print_csv(g, err));
    else
        LS_TRY(grid_print(g, args->wide ? 0 : grid_terminal_width(), err));
out:
    grid_destroy(g);
    return st;
}

/* The folder that was looked at; NULL where there were several. */
static const char *folder_of(const cli_args *args)
{
    if (args->n_settings == 0) return runs_folder(args);
    return args->n_settings == 1 ? args->settings[0] : NULL;
}

static void print_json(const runs_rows *r, const cli_args *args)
{
    json_t *list = json_array(), *differing = json_array();

    for (int k = 0; k < r->n; k++) json_array_append_new(list, runs_json(&r->rows[k], &r->keys));
    for (int i = 0; i < r->keys.n; i++)
        if (r->keys.differs[i]) json_array_append_new(differing, runs_text_json(r->keys.keys[i]));
    cli_print_json_take(json_pack("{s:s, s:o, s:o, s:o}", "event", "runs", "folder",
                                  runs_text_json(folder_of(args)), "settings_that_differ", differing, "runs",
                                  list));
}

int runs_list(const cli_args *args)
{
    runs_rows r;
    ls_err err = {0};
    ls_status st = LS_OK;
    int all;

    LS_TRY(runs_rows_open(&r, args, &err));
    all = r.n;
    LS_TRY(choose(&r, args, &err));
    /* Settings are compared among what is shown: a run that was left out makes no column. */
    LS_TRY(ls_run_sort(r.rows, r.n, args->sort != NULL ? args->sort : "-started", &err));
    LS_TRY(runs_rows_differ(&r, &err));
    if (args->json)
        print_json(&r, args);
    else if (r.n > 0 || args->csv)
        LS_TRY(print_table(&r, args, &err));
    else if (all > 0)
        printf("none of %d runs\n", all);
    else
        printf("no runs%s%s; `lockstep train` makes one\n", args->n_settings == 0 ? " in " : "",
               args->n_settings == 0 ? runs_folder(args) : "");
out:
    runs_rows_release(&r);
    return st == LS_OK ? CLI_DONE : cli_fail("runs", &err);
}
