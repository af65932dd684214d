/* query.h: what can be asked about a run by name, and what follows from it: choosing and ordering runs.
 *
 * Fields of a run: run (its folder), name, state, host, started, seconds, ranks, steps, epochs,
 * samples_per_s, metric (the best value), metrics by name (acc, val/acc: the last validation; test/acc: the
 * test), and every setting (optimizer.lr). */
#ifndef LS_RUNS_QUERY_H
#define LS_RUNS_QUERY_H

#include "runs/reader.h"
#include "runs/settings.h"

/* A run with its settings. */
typedef struct ls_run_row {
    ls_run_info *info;
    ls_run_settings settings;
} ls_run_row;

typedef struct ls_run_value {
    enum { LS_RUN_NONE, LS_RUN_NUMBER, LS_RUN_TEXT } kind;
    double number;
    const char *text; /* the run's */
} ls_run_value;

/* `state` counts by its name, `started` in seconds since 1970. */
ls_run_value ls_run_field(const ls_run_row *r, const char *key);
/* How long it has run: all its processes together where that is known, else since it was started. */
double ls_run_seconds(const ls_run_info *i);
/* The best value that was kept, and what it is of ("val/acc"); NaN, and "". */
double ls_run_best(const ls_run_row *r, const char **of);

enum { LS_RUN_CONDITIONS = 16 };

/* key=value, key!=value, key>value, key>=value, key<value, key<=value, key~pattern: numbers are compared as
 * such where both sides are, patterns are the shell's. */
typedef enum ls_run_relation {
    LS_IS,
    LS_IS_NOT,
    LS_MORE,
    LS_AT_LEAST,
    LS_LESS,
    LS_AT_MOST,
    LS_MATCHES
} ls_run_relation;

typedef struct ls_run_condition {
    char key[128], value[256];
    ls_run_relation op;
} ls_run_condition;

/* LS_INVALID with what is wrong and how it is written. */
ls_status ls_run_condition_parse(ls_run_condition *c, const char *text, ls_err *err) LS_MUST_CHECK;
/* False for a run that has no such field, but for `!=`. */
bool ls_run_holds(const ls_run_row *r, const ls_run_condition *c);

/* LS_INVALID, with the nearest name, when no run of some has such a field: it was mistyped. */
ls_status ls_run_check_key(const ls_run_row *rows, int n, const char *key, ls_err *err) LS_MUST_CHECK;
/* Orders by a field, with a '-' in front from the largest; runs without it come last, equal ones stay as they
 * are.  LS_INVALID as above, or when memory runs out LS_NOMEM. */
ls_status ls_run_sort(ls_run_row *rows, int n, const char *by, ls_err *err) LS_MUST_CHECK;

#endif
