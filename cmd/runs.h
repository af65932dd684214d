/* runs.h: what the parts of `lockstep runs` share. */
#ifndef LS_CMD_RUNS_H
#define LS_CMD_RUNS_H

#include "base/units.h"
#include "cli.h"
#include "runs/manage.h"
#include "runs/query.h"

/* The folder that runs are looked for in. */
const char *runs_folder(const cli_args *args);
/* Word number k after the subcommand, as a run; its path. */
ls_status runs_find(char path[LS_PATH_MAX], const cli_args *args, int k, ls_err *err) LS_MUST_CHECK;

/* Some runs with their settings, and in which of these they differ. */
typedef struct runs_rows {
    ls_runs *lists; /* who the rows belong to */
    int n_lists;
    ls_run_row *rows;
    int n;
    ls_run_keys keys;
} runs_rows;

/* All runs that the words mean, each a run or a folder of runs; without words those of runs_folder.  Release
 * in any case. */
ls_status runs_rows_open(runs_rows *r, const cli_args *args, ls_err *err) LS_MUST_CHECK;
/* The runs that all words mean, in their order. */
ls_status runs_rows_named(runs_rows *r, const cli_args *args, ls_err *err) LS_MUST_CHECK;
/* Finds out in which settings the rows differ. */
ls_status runs_rows_differ(runs_rows *r, ls_err *err) LS_MUST_CHECK;
void runs_rows_release(runs_rows *r);

/* The metrics that any of the runs has in `which` ("last", "test") of its results; at most `most`. */
int runs_metric_names(const runs_rows *r, const char *which, const char **names, int most);

/* "12:03" into `buf` (base/units.h); "" of what is unknown. */
const char *runs_duration(double seconds, char buf[LS_UNITS_TEXT]);
/* The state for people: "killed, no sign of life since 2026-11-15 23:40:01". */
void runs_state_text(const ls_run_info *i, char *buf, size_t size);
/* A run as JSON: what a list has of it.  `keys`: of which settings. */
json_t *runs_json(const ls_run_row *r, const ls_run_keys *keys);
/* A text that need not be UTF-8, and null for NULL. */
json_t *runs_text_json(const char *text);
json_t *runs_time_json(double t);

int runs_list(const cli_args *args);
int runs_show(const cli_args *args);
int runs_logs(const cli_args *args);
int runs_metrics(const cli_args *args);
int runs_compare(const cli_args *args);
int runs_stop(const cli_args *args);
int runs_rm(const cli_args *args);

#endif
