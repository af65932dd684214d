/* manage.h: what one does to runs from outside: to find one by what a person calls it, to end it, to remove
 * it. */
#ifndef LS_RUNS_MANAGE_H
#define LS_RUNS_MANAGE_H

#include "runs/reader.h"

/* The run that `given` means: a path; "last", the one in `folder` that was begun last; or in `folder` the
 * name of its directory, the name of its experiment, or the beginning or end of either, where it is one run's
 * alone.  LS_INVALID otherwise; the text names those that it could be. */
ls_status ls_run_find(char path[LS_PATH_MAX], const char *given, const char *folder,
                      ls_err *err) LS_MUST_CHECK;

/* Asks the process that owns the run to end, as Ctrl-C does: it writes a checkpoint first.  It is asked only
 * once it is sure to be the owner: same host and boot, older than the lock, and with owner.json open.
 * LS_INVALID: the run goes on on another host (the text says what to do there).  LS_IO: it cannot be asked.
 * *asked is false when the run was over already. */
ls_status ls_run_ask_to_end(const ls_run_info *i, bool *asked, ls_err *err) LS_MUST_CHECK;

/* Whether the process that owns the run is here, and stopped (Ctrl-Z, SIGSTOP, a debugger): then it answers
 * nobody until it is continued. */
bool ls_run_is_stopped(const ls_run_info *i);

/* Removes the directory with all in it; links in it are removed, not followed.  LS_INVALID, and nothing is
 * removed, when it is a link itself, no run, or somebody's, or when something in it may not be removed: the
 * text names that. */
ls_status ls_run_remove(const char *path, ls_err *err) LS_MUST_CHECK;
/* Whether permissions would let it: for those who remove several or none. */
ls_status ls_run_remove_check(const char *path, ls_err *err) LS_MUST_CHECK;

/* "2026-11-15 23:40:01" (UTC); "" of what is unknown. */
const char *ls_run_time_text(double t, char buf[32]);

#endif
