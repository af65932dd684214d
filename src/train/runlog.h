/* runlog.h: logs/rank-%05d.log of a run: everything a rank said, with the time it said it.
 *
 *     2026-11-15T11:40:01.123Z lockstep: warning: ...
 *
 * While it is open it takes over the log (base/log.h): messages of level info and above go into the file, and
 * those that are shown also to the terminal, above the progress bar that is attached.  What cannot be written
 * waits in memory and is tried again (events/append.h); it never costs the run. */
#ifndef LS_TRAIN_RUNLOG_H
#define LS_TRAIN_RUNLOG_H

#include "events/progress.h"
#include "lockstep/status.h"

typedef struct ls_runlog ls_runlog;

/* Appends to `folder`/logs/rank-<rank>.log; makes the folder logs where it is missing. */
ls_status ls_runlog_open(ls_runlog **out, const char *folder, int rank, ls_err *err) LS_MUST_CHECK;
void ls_runlog_close(ls_runlog *log); /* gives the log back; accepts NULL */

/* The bar that lines must not land on; NULL: none any more. */
void ls_runlog_attach(ls_runlog *log, ls_progress *progress);
/* Lines for the file alone: what was said in another way.  A NULL log or text is ignored. */
void ls_runlog_note(ls_runlog *log, const char *text);
/* Tries again what waits, then waits until the file is on the disk. */
void ls_runlog_flush(ls_runlog *log);
/* Pieces that wait or were lost; 0 of NULL. */
int64_t ls_runlog_missing(ls_runlog *log);

#endif
