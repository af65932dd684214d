/* runs.c: `lockstep runs`: the subcommands, and which runs their words mean. */
#include "runs.h"
#include "grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/text.h"

static const struct verb {
    const char *name, *words, *help;
    int least, most; /* words after it */
    int (*run)(const cli_args *args);
} verbs[] = {
    {"list", "[RUN|FOLDER ...]", "state, times, metrics and the settings that differ; the newest first", 0,
     1 << 20, runs_list},
    {"show", "RUN", "everything about one: owner, metrics, ledger, checkpoints, files, settings", 1, 1,
     runs_show},
    {"logs", "RUN", "what a rank said; -f: until the run ends", 1, 1, runs_logs},
    {"metrics", "RUN", "metrics.jsonl as CSV, or as columns of JSON", 1, 1, runs_metrics},
    {"compare", "RUN RUN ...", "settings that differ, results and curves beside each other; --html: a page",
     2, 32, runs_compare},
    {"stop", "RUN ...", "asks the run to write a checkpoint and end, and waits until it has", 1, 1 << 20,
     runs_stop},
    {"rm", "RUN ...", "removes run directories; none that is running", 1, 1 << 20, runs_rm},
};

enum { N_VERBS = sizeof verbs / sizeof verbs[0] };

/* Without a word, the first: list. */
static const struct verb *verb_of(const cli_args *args)
{
    for (int i = 0; i < N_VERBS; i++)
        if (args->model == NULL || strcmp(args->model, verbs[i].name) == 0) return &verbs[i];
    return NULL;
}

/* What others have, and what there is instead. */
static const struct {
    const char *name, *instead;
} absent[] = {
    {"pause", "`lockstep runs stop RUN` writes a checkpoint and ends the run"},
    {"kill", "`lockstep runs stop RUN` writes a checkpoint and ends the run"},
    {"resume", "`lockstep train --resume RUN` goes on with a run"},
    {"fork", "`lockstep train EXPERIMENT train.init=RUN` begins with the weights of a run"},
    {"archive", "`lockstep runs rm RUN` removes a run, and a run directory may be moved as it is"},
};

static ls_status no_verb(const char *word, ls_err *err)
{
    const char *names[N_VERBS], *near;

    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        if (strcmp(word, absent[i].name) == 0)
            return ls_fail(err, LS_INVALID, "`runs %s` is not in this version; %s", word, absent[i].instead);
    for (int i = 0; i < N_VERBS; i++) names[i] = verbs[i].name;
    near = ls_text_nearest(word, names, N_VERBS);
    return ls_fail(
        err, LS_INVALID, "\"%.100s\" is none of list, show, logs, metrics, compare, stop, rm%s%s%s", word,
        near != NULL ? "; did you mean \"" : "; a folder of runs is listed by `lockstep runs list FOLDER`",
        near != NULL ? near : "", near != NULL ? "\"?" : "");
}

ls_status cli_runs_check(const cli_args *args, ls_err *err)
{
    const struct verb *v = verb_of(args);
    ls_run_condition c;
    ls_status st = LS_OK;

    if (v == NULL) return no_verb(args->model, err);
    if (args->n_settings < v->least)
        return ls_fail(err, LS_INVALID,
                       "which run?  `lockstep runs %s %s`; `lockstep runs` lists them, `last` is the newest",
                       v->name, v->words);
    if (args->n_settings > v->most)
        return ls_fail(err, LS_INVALID, "\"%.100s\" is one word too many: lockstep runs %s %s",
                       args->settings[v->most], v->name, v->words);
    if (args->csv && args->json) return ls_fail(err, LS_INVALID, "--csv or --json, not both");
    for (int i = 0; i < args->where.n; i++) LS_TRY(ls_run_condition_parse(&c, args->where.of[i], err));
out:
    return st;
}

void cli_runs_help(void)
{
    printf("\nSubcommands:\n");
    for (int i = 0; i < N_VERBS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", verbs[i].name, verbs[i].words);
        cli_print_wrapped(verbs[i].help, printf("  %-22s ", left), 25);
    }
    printf("\nRUN is a path, a name in runs/ (or --dir), the beginning or end of one, or\n"
           "`last`, the newest.\n");
}

int cli_runs(const cli_args *args)
{
    return verb_of(args)->run(args);
}

/* -- runs by their names ----------------------------------------------------------------------------------
 */

const char *runs_folder(const cli_args *args)
{
    return args->dir != NULL ? args->dir : "runs";
}

ls_status runs_find(char path[LS_PATH_MAX], const cli_args *args, int k, ls_err *err)
{
    return ls_run_find(path, args->settings[k], runs_folder(args), err);
}

void runs_rows_release(runs_rows *r)
{
    for (int i = 0; i < r->n; i++) ls_run_settings_release(&r->rows[i].settings);
    for (int i = 0; i < r->n_lists; i++) ls_runs_release(&r->lists[i]);
    ls_free(r->rows);
    ls_free(r->lists);
    ls_run_keys_release(&r->keys);
    *r = (runs_rows){0};
}

/* A list of one. */
static ls_status read_one(ls_runs *list, const char *path, ls_err *err)
{
    *list = (ls_runs){.items = ls_alloc(LS_MEM_CLI, sizeof *list->items), .capacity = 1};
    if (list->items == NULL) return ls_fail(err, LS_NOMEM, "no memory for a run");
    list->n = 1;
    return ls_run_read(&list->items[0], path, err);
}

static ls_status read_word(ls_runs *list, const char *word, ls_err *err)
{
    struct stat info;

    if (ls_run_is_one(word)) return read_one(list, word, err);
    if (stat(word, &info) != 0 || !S_ISDIR(info.st_mode))
        return ls_fail(err, LS_INVALID,
                       "there is no folder %s; without a word, `lockstep runs list` looks in runs/", word);
    return ls_runs_scan(list, word, err);
}

/* The rows of all lists, with their settings.  What cannot be read of one is said of it, and fails no list.
 */
static ls_status make_rows(runs_rows *r, ls_err *err)
{
    int n = 0;

    for (int i = 0; i < r->n_lists; i++) n += r->lists[i].n;
    r->rows = ls_alloc(LS_MEM_CLI, ((size_t)n + 1) * sizeof *r->rows);
    if (r->rows == NULL) return ls_fail(err, LS_NOMEM, "no memory for a list of runs");
    for (int i = 0; i < r->n_lists; i++) {
        for (int k = 0; k < r->lists[i].n; k++) {
            ls_run_row *row = &r->rows[r->n++];
            ls_err why = {0};
            row->info = &r->lists[i].items[k];
            if (ls_run_settings_read(&row->settings, row->info->path, &why) != LS_OK &&
                row->info->trouble[0] == '\0')
                snprintf(row->info->trouble, sizeof row->info->trouble, "%.255s", why.text);
        }
    }
    return LS_OK;
}

ls_status runs_rows_open(runs_rows *r, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    *r = (runs_rows){.lists = ls_alloc(LS_MEM_CLI, ((size_t)args->n_settings + 1) * sizeof *r->lists)};
    if (r->lists == NULL) return ls_fail(err, LS_NOMEM, "no memory for a list of runs");
    /* That there is no runs/ yet is no mistake; a folder that somebody named must be there. */
    if (args->n_settings == 0 && args->dir == NULL) {
        r->n_lists = 1;
        LS_TRY(ls_runs_scan(&r->lists[0], runs_folder(args), err));
    } else if (args->n_settings == 0) {
        r->n_lists = 1;
        LS_TRY(read_word(&r->lists[0], args->dir, err));
    }
    for (int i = 0; i < args->n_settings; i++) {
        r->n_lists++;
        LS_TRY(read_word(&r->lists[i], args->settings[i], err));
    }
    LS_TRY(make_rows(r, err));
out:
    return st;
}

ls_status runs_rows_named(runs_rows *r, const cli_args *args, ls_err *err)
{
    char path[LS_PATH_MAX];
    ls_status st = LS_OK;

    *r = (runs_rows){.lists = ls_alloc(LS_MEM_CLI, ((size_t)args->n_settings + 1) * sizeof *r->lists)};
    if (r->lists == NULL) return ls_fail(err, LS_NOMEM, "no memory for a list of runs");
    for (int i = 0; i < args->n_settings; i++) {
        LS_TRY(runs_find(path, args, i, err));
        r->n_lists++;
        LS_TRY(read_one(&r->lists[i], path, err));
    }
    LS_TRY(make_rows(r, err));
out:
    return st;
}

ls_status runs_rows_differ(runs_rows *r, ls_err *err)
{
    ls_run_settings *all = ls_alloc(LS_MEM_CLI, ((size_t)r->n + 1) * sizeof *all);
    ls_status st;
    int n = 0;

    if (all == NULL) return ls_fail(err, LS_NOMEM, "no memory for settings");
    /* A run without any has no say. */
    for (int i = 0; i < r->n; i++)
        if (r->rows[i].settings.n > 0) all[n++] = r->rows[i].settings;
    st = ls_run_keys_of(&r->keys, all, n, err);
    ls_free(all);
    return st;
}

int runs_metric_names(const runs_rows *r, const char *which, const char **names, int most)
{
    int n = 0;

    for (int k = 0; k < r->n; k++) {
        json_t *o = json_object_get(json_object_get(r->rows[k].info->summary, "metrics"), which), *value;
        const char *name;
        json_object_foreach(o, name, value)
        {
            int i = 0;
            while (i < n && strcmp(names[i], name) != 0) i++;
            if (i == n && n < most && json_is_number(value)) names[n++] = name;
        }
    }
    return n;
}

/* -- for people and programs ------------------------------------------------------------------------------
 */

const char *runs_duration(double s, char buf[LS_UNITS_TEXT])
{
    if (isfinite(s) && s >= 0) return ls_units_clock(s, buf);
    buf[0] = '\0';
    return buf;
}

void runs_state_text(const ls_run_info *i, char *buf, size_t size)
{
    char when[32];

    ls_run_time_text(i->heartbeat, when);
    if (i->trouble[0] != '\0' && !i->alive)
        snprintf(buf, size, "damaged");
    else if (i->state == LS_RUN_KILLED && i->written != LS_RUN_KILLED)
        snprintf(buf, size, "killed%s%s", when[0] != '\0' ? ", no sign of life since " : "", when);
    else
        snprintf(buf, size, "%s", ls_run_state_name(i->state));
}

json_t *runs_text_json(const char *text)
{
    char buf[4 * LS_PATH_MAX];

    return text != NULL ? json_string(grid_shown(text, buf, sizeof buf)) : json_null();
}

json_t *runs_time_json(double t)
{
    char buf[32], whole[40];

    if (ls_run_time_text(t, buf)[0] == '\0') return json_null();
    snprintf(whole, sizeof whole, "%.10sT%sZ", buf, buf + 11);
    return json_string(whole);
}

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *copied(const json_t *summary, const char *key)
{
    json_t *v = json_object_get(summary, key);

    return v != NULL ? json_incref(v) : json_null();
}

json_t *runs_json(const ls_run_row *r, const ls_run_keys *keys)
{
    const ls_run_info *i = r->info;
    json_t *settings = json_object();
    const bool stale = i->state == LS_RUN_KILLED && i->written != LS_RUN_KILLED;

    for (int k = 0; keys != NULL && k < keys->n; k++) {
        const char *value = ls_run_setting_value(&r->settings, keys->keys[k], k);
        if (keys->differs[k] && value != NULL)
            json_object_set_new(settings, keys->keys[k], runs_text_json(value));
    }
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "run",
        runs_text_json(i->path), "id", runs_text_json(i->folder), "name", runs_text_json(i->name), "state",
        i->trouble[0] != '\0' && !i->alive ? "damaged" : ls_run_state_name(i->state), "alive", i->alive,
        "stale", stale, "error", runs_text_json(json_string_value(json_object_get(i->summary, "error"))),
        "trouble", runs_text_json(i->trouble[0] != '\0' ? i->trouble : NULL), "started",
        runs_time_json(i->started), "last_sign", runs_time_json(i->heartbeat), "seconds",
        number(ls_run_seconds(i)), "host", runs_text_json(i->host[0] != '\0' ? i->host : NULL), "ranks",
        i->ranks > 0 ? json_integer(i->ranks) : json_null(), "steps",
        i->steps >= 0 ? json_integer(i->steps) : json_null(), "epochs", number(i->epochs), "metrics",
        copied(i->summary, "metrics"), "samples_per_s", copied(i->summary, "samples_per_s"), "settings",
        settings);
}
