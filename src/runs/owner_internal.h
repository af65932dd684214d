/* owner_internal.h: owner.json: who writes a run, whether it lives, and its lock. */
#ifndef LS_RUNS_OWNER_INTERNAL_H
#define LS_RUNS_OWNER_INTERNAL_H

#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include "runs/reader.h"

#define LSI_OWNER_FILE  "owner.json"
#define LSI_OWNER_BYTES 16384 /* more is none of ours */
#define LSI_BEAT_S      2.0   /* between two heartbeats */
#define LSI_STALE_S     60.0  /* for those who only look: a heartbeat older than this is none */
#define LSI_DEAD_S                                                                                           \
    600.0 /* for those who want the run: older than this needs no second look, whatever the clocks */
#define LSI_SUMMARY_FILE "summary.json"

/* This process, as it is now; `epoch`, `begun` and `name` are the caller's. */
ls_status lsi_owner_self(ls_run_owner *o, ls_err *err) LS_MUST_CHECK;
/* False for anything that is not such a file; bytes behind the object are ignored, as a shorter text may just
 * be replacing a longer one. */
bool lsi_owner_parse(ls_run_owner *o, const char *text, size_t n);
/* Writes it in place: the lock is on this very file. */
ls_status lsi_owner_write(int fd, const ls_run_owner *o, const char *path, ls_err *err) LS_MUST_CHECK;
/* Reads it; *there says whether it was one. */
void lsi_owner_read(int fd, ls_run_owner *o, bool *there);

/* Whether the file still names this owner and opening; also where it is gone or no such file, which says
 * nothing.  May be called from a signal handler. */
bool lsi_owner_holds(const char *path, const ls_run_owner *o);

typedef enum lsi_lock { LSI_LOCK_OURS, LSI_LOCK_HELD, LSI_LOCK_NONE } lsi_lock; /* NONE: no locks here */
lsi_lock lsi_owner_lock(int fd);
/* Without taking it: LSI_LOCK_OURS means that it is free. */
lsi_lock lsi_owner_look(int fd);

/* Whether its owner lives, as far as one look can tell; *sure is false when only its heartbeat says so. */
bool lsi_owner_alive(int fd, const ls_run_owner *o, bool *sure);
/* The time of the last heartbeat, in seconds since 1970; NaN: unknown. */
double lsi_owner_heartbeat(int fd);

/* -- times ------------------------------------------------------------------------------------------------
 */

double lsi_now(void);                              /* seconds since 1970 */
const char *lsi_time_text(double t, char buf[32]); /* "2026-11-15T23:40:01.123Z"; "" of NaN */
double lsi_time_parse(const char *text);           /* NaN when it is none (also of NULL) */

/* -- what a run is, from its files ------------------------------------------------------------------------
 */

void lsi_info_clear(ls_run_info *i);
/* Fills in what a summary says; takes over the object. */
void lsi_info_take_summary(ls_run_info *i, json_t *summary);
/* The true state, from everything else that is filled in. */
ls_run_state lsi_info_state(const ls_run_info *i);

/* summary.json of a run, as an object of at most 16 MiB; NULL with the reason in `err`. */
json_t *lsi_summary_load(const char *path, ls_err *err);

#endif
