/* settings.h: the settings of a run, as its config.yaml has them.
 *
 * The file is read in the form in which it was written (config/experiment.h: one setting per line, groups one
 * deep), so that a thousand runs can be looked through at once; what has another form is left out. */
#ifndef LS_RUNS_SETTINGS_H
#define LS_RUNS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/status.h"

typedef struct ls_run_setting {
    const char *key;   /* "optimizer.lr" */
    const char *value; /* without the quotes of a text */
} ls_run_setting;

/* Starts as {0}. */
typedef struct ls_run_settings {
    ls_run_setting *items; /* in the order of the file */
    int n;
    char *memory;
} ls_run_settings;

/* The text of a config.yaml. */
ls_status ls_run_settings_parse(ls_run_settings *s, const char *text, size_t n, ls_err *err) LS_MUST_CHECK;
/* DIR/config.yaml.  A run without one has none; LS_DATA when it is too large or cannot be read. */
ls_status ls_run_settings_read(ls_run_settings *s, const char *run, ls_err *err) LS_MUST_CHECK;
void ls_run_settings_release(ls_run_settings *s);

/* The value of `key`; NULL: it has none.  A setting that there was not yet when the run began has the value
 * that the program then had built in.  `hint` is where it is likely to be found, such as its place in
 * another run. */
const char *ls_run_setting_value(const ls_run_settings *s, const char *key, int hint);

/* The keys of all runs, each once, in the order in which they are met; and whether the runs differ in it,
 * which a run without the key does, too. */
typedef struct ls_run_keys {
    const char **keys; /* of the settings */
    bool *differs;
    int n, n_differing;
} ls_run_keys;

ls_status ls_run_keys_of(ls_run_keys *k, const ls_run_settings *runs, int n_runs, ls_err *err) LS_MUST_CHECK;
void ls_run_keys_release(ls_run_keys *k);

#endif
