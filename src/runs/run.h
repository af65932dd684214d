/* run.h: a run directory as an object: made or opened by one call, owned by one process, written by one.
 *
 * The owner is the process that outlives all others of the run on its machine: the launcher of ranks that are
 * started here, else rank 0.  It holds a lock on DIR/owner.json; processes forked from it share the lock, and
 * it is gone when the last of them is.  Rank 0 (the owner, or its child) writes; other ranks only join.
 * reader.h has the other side: what a run is, for everybody who only looks. */
#ifndef LS_RUNS_RUN_H
#define LS_RUNS_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

enum { LS_PATH_MAX = 4096 };

/* Where a run and its checkpoints lie: also for ranks that do not write. */
typedef struct ls_run_paths {
    char path[LS_PATH_MAX];
    char checkpoints[LS_PATH_MAX]; /* <path>/checkpoints */
} ls_run_paths;

/* A new name for a run of the experiment `name`: runs/<name>-<yyyymmdd-hhmmss>-<4 hex>, in UTC.  Nothing is
 * made. */
void ls_run_new_name(char path[LS_PATH_MAX], const char *name);
/* The directory p->path of another rank: made where this rank does not see it. */
ls_status ls_run_join(ls_run_paths *p, ls_err *err) LS_MUST_CHECK;

/* -- owning -----------------------------------------------------------------------------------------------
 */

typedef struct ls_run ls_run;

/* Takes a directory for a new run of the experiment `name`; `path` NULL: a new name under runs/.  LS_INVALID,
 * with nothing changed, when it has no name, holds anything but what `lockstep submit` or a run that never
 * got to its settings puts there, or belongs to a process that lives; LS_IO when it cannot be made.  Of two
 * processes that take it at once one wins. */
ls_status ls_run_create(ls_run **out, const char *name, const char *path, ls_err *err) LS_MUST_CHECK;
/* Takes an existing run to go on in it.  LS_INVALID when it is none, or its owner lives: the text names it.
 * Where the lock of another machine cannot be seen, its sign of life is awaited for `watch_s` seconds (below
 * 0: LS_RUN_WATCH_S). */
ls_status ls_run_open(ls_run **out, const char *path, double watch_s, ls_err *err) LS_MUST_CHECK;
#define LS_RUN_WATCH_S 10.0
/* Of the process that took it: gives it back; what was made is removed unless a writer has begun.  Of a
 * child: drops its share.  Accepts NULL. */
void ls_run_close(ls_run *r);

const ls_run_paths *ls_run_paths_of(const ls_run *r);
/* Whether there is something to go on from; decided when the run was taken, and anew by ls_run_renew. */
bool ls_run_has_checkpoint(const ls_run *r);
int64_t ls_run_epoch(const ls_run *r); /* counts openings and restarts, from 1 */

/* The owner starts its ranks again: writers of the attempt before, should one be left, write nothing more. */
ls_status ls_run_renew(ls_run *r, ls_err *err) LS_MUST_CHECK;
/* The owner has seen all writers go: where summary.json still says "running", it gets this state ("failed",
 * "killed") and reason (may be NULL).  A run that never began gets nothing. */
void ls_run_settle(ls_run *r, const char *state, const char *why);

/* -- writing, by rank 0 -----------------------------------------------------------------------------------
 */

/* This process writes the run from now on: starts its heartbeat.  A thread that cannot be had costs the
 * heartbeat, not the run. */
void ls_run_enter(ls_run *r);
/* Ends the heartbeat of this process, which has no thread of the run any more.  For an owner that waits
 * between two attempts, and then forks. */
void ls_run_leave(ls_run *r);
/* The directory is this run's from here on, whatever happens: makes its folders. */
ls_status ls_run_begin(ls_run *r, ls_err *err) LS_MUST_CHECK;
/* LS_IO when somebody else has taken the run meanwhile, or its directory was moved or removed: then this
 * process must not write.  The text says what is left, and where.  Costs a look at the disk. */
ls_status ls_run_check(ls_run *r, ls_err *err) LS_MUST_CHECK;
/* Whether the heartbeat has seen that the directory is not in its place any more; ls_run_check says what
 * became of it.  Costs nothing. */
bool ls_run_is_gone(const ls_run *r);
/* summary.json, written aside and renamed, so that readers see the old one or the new one.  Adds what the run
 * knows of itself: "name", "started", "written", "owner_epoch". */
ls_status ls_run_write_summary(ls_run *r, json_t *summary, ls_err *err) LS_MUST_CHECK;

#endif
