/* history.h: reads back what a run has left behind: metrics.jsonl as curves, and summary.json.
 *
 * The files come from outside: sizes and counts are limited, and a refusal names the file, the line and the
 * remedy. */
#ifndef LS_TRAIN_HISTORY_H
#define LS_TRAIN_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "events/metrics_reader.h"
#include "lockstep/status.h"

enum { LS_HISTORY_CURVES = 256, LS_HISTORY_NAME = 128 };

/* One metric of a run, in the order of its reports.  A value that was not finite is NaN. */
typedef struct ls_curve {
    char name[LS_HISTORY_NAME]; /* as in the file: "train/loss_step" */
    int64_t n;
    size_t capacity;
    double *epoch, *value;
} ls_curve;

typedef struct ls_history {
    ls_curve *curves;
    int n_curves;
    /* The time of every step that was reported, once: what throughput over time is made of. */
    int64_t n_times;
    size_t times_capacity;
    double *step, *time_s;
    ls_metrics_damage damage; /* lines that are no reports, and were left out */
} ls_history;

/* Starts as {0}.  `path` is for messages.  What is no report is left out and counted (metrics_reader.h);
 * LS_DATA for more metrics, or longer names, than there is room for. */
ls_status ls_history_parse(ls_history *h, const char *text, size_t n, const char *path,
                           ls_err *err) LS_MUST_CHECK;
void ls_history_release(ls_history *h);
const ls_curve *ls_history_curve(const ls_history *h, const char *name); /* NULL: there is none */

/* A run with its name (the last part of its path), curves and summary. */
typedef struct ls_past_run {
    char path[4096], name[256];
    ls_history history;
    json_t *summary; /* with the state as it truly is (runs/reader.h) */
    bool alive;      /* somebody writes it */
} ls_past_run;

/* LS_INVALID when there is no such folder, LS_DATA when it holds no run or a damaged one.  Release in any
 * case. */
ls_status ls_past_run_open(ls_past_run *r, const char *path, ls_err *err) LS_MUST_CHECK;
void ls_past_run_release(ls_past_run *r);
/* Warns of what had to be left out of its metrics.jsonl, once for the file. */
void ls_past_run_warn(const ls_past_run *r);
/* The number at KEY, or at KEY of the object `within` (NULL: of the summary itself); NaN when there is none.
 */
double ls_past_run_number(const ls_past_run *r, const char *within, const char *key);
/* The text at KEY; "" when there is none. */
const char *ls_past_run_text(const ls_past_run *r, const char *key);

#endif
