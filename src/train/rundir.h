/* rundir.h: the directory of a run: what lies where, and the summary that outlives the process. */
#ifndef LS_TRAIN_RUNDIR_H
#define LS_TRAIN_RUNDIR_H

#include <jansson.h>

#include "lockstep/status.h"

enum { LS_PATH_MAX = 4096 };

typedef struct ls_rundir {
    char path[LS_PATH_MAX];        /* runs/<name>-<yyyymmdd-hhmmss>-<4 hex> */
    char checkpoints[LS_PATH_MAX]; /* <path>/checkpoints */
} ls_rundir;

/* A new name under runs/ for a run of the experiment `name`; nothing is made. */
void ls_rundir_name(ls_rundir *r, const char *name);
/* Makes the directory, its parents and its folders.  `path` NULL: a new name under runs/. */
ls_status ls_rundir_create(ls_rundir *r, const char *name, const char *path, ls_err *err) LS_MUST_CHECK;
/* An existing one.  `path` NULL: the newest under runs/ whose name begins with `name`-. */
ls_status ls_rundir_find(ls_rundir *r, const char *name, const char *path, ls_err *err) LS_MUST_CHECK;
/* The directory r->path of another rank: made where this rank does not see it. */
ls_status ls_rundir_join(ls_rundir *r, ls_err *err) LS_MUST_CHECK;
/* summary.json, written aside and renamed, so that readers see the old one or the new one. */
ls_status ls_rundir_write_summary(const ls_rundir *r, const json_t *summary, ls_err *err) LS_MUST_CHECK;

#endif
