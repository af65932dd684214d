/* reader.h: what a run is, for everybody who only looks: `eval`, `report`, `ckpt`, `runs`, `--resume`,
 * studies.
 *
 * Readers write nothing and lock nothing.  Files come from outside: sizes are limited, types are checked, and
 * what is damaged is said in `trouble` instead of failing a whole list. */
#ifndef LS_RUNS_READER_H
#define LS_RUNS_READER_H

#include <jansson.h>

#include "runs/run.h"

typedef enum ls_run_state {
    LS_RUN_UNKNOWN, /* summary.json is missing or damaged, and nobody owns the run */
    LS_RUN_RUNNING,
    LS_RUN_COMPLETED,
    LS_RUN_PAUSED,
    LS_RUN_FAILED,
    LS_RUN_KILLED,
} ls_run_state;

/* "running", ...; "unknown". */
const char *ls_run_state_name(ls_run_state s);
ls_run_state ls_run_state_of(const char *name); /* also of NULL */

/* Who took the run last (owner.json). */
typedef struct ls_run_owner {
    int64_t pid, epoch;
    char host[256], boot[64], version[32];
    char name[128];     /* of the experiment */
    char command[1024]; /* cut off when it is longer */
    double start;       /* when it was taken, in seconds since 1970 */
    double ended;       /* when it was given back; NaN: never */
    bool begun;         /* a writer has begun, not only tried to */
    ls_run_state end;   /* how it ended, where summary.json could not be written; unknown: see there */
} ls_run_owner;

typedef struct ls_run_info {
    char path[LS_PATH_MAX], folder[256]; /* as given; its last part */
    char name[128];                      /* of the experiment; without one, of the folder */
    ls_run_state written;                /* as summary.json has it */
    ls_run_state state;                  /* as it truly is: "running" without a living owner is killed */
    bool alive;                          /* its owner lives */
    bool has_owner;
    ls_run_owner owner; /* where has_owner */
    double heartbeat;   /* the owner's last sign of life, in seconds since 1970; NaN: unknown */
    double started;     /* first of all, in seconds since 1970; NaN: unknown */
    double opened;      /* begun last: what "the newest run" means; NaN: unknown */
    double written_at;  /* summary.json; NaN: unknown */
    int ranks;          /* 0: unknown */
    int64_t steps;      /* -1: unknown */
    double epochs;      /* NaN: unknown */
    char host[256];     /* of rank 0; "" : unknown */
    json_t *summary;    /* an object, or NULL */
    char trouble[256];  /* what could not be read; "" */
} ls_run_info;

/* Reads summary.json and owner.json of the run at `path`.  LS_INVALID when there is no such folder or it
 * holds no run.  Release in any case. */
ls_status ls_run_read(ls_run_info *i, const char *path, ls_err *err) LS_MUST_CHECK;
void ls_run_info_release(ls_run_info *i);
/* Whether `path` is a folder that `lockstep train` has written. */
bool ls_run_is_one(const char *path);
/* A number of the summary's `metrics`: of "last" or "test" by name; NaN when there is none. */
double ls_run_metric(const ls_run_info *i, const char *which, const char *name);

/* -- many runs --------------------------------------------------------------------------------------------
 */

typedef struct ls_runs {
    ls_run_info *items; /* the newest first */
    int n;
    size_t capacity;
} ls_runs;

/* All runs in `folder`, which need not be there.  1,000 take less than 0.2 s: nothing but summary.json and
 * owner.json is read.  Release in any case. */
ls_status ls_runs_scan(ls_runs *list, const char *folder, ls_err *err) LS_MUST_CHECK;
void ls_runs_release(ls_runs *list);
/* The run in `folder` that was begun last, of the experiment `name` (NULL: of any).  LS_INVALID when there is
 * none. */
ls_status ls_runs_newest(char path[LS_PATH_MAX], const char *folder, const char *name,
                         ls_err *err) LS_MUST_CHECK;

/* -- checkpoints ------------------------------------------------------------------------------------------
 */

/* Steps of the checkpoints of a run, oldest first; of what `last` and `best` point to; -1: none. */
typedef struct ls_run_checkpoints {
    int64_t *steps;
    int n;
    size_t capacity;
    int64_t last, best;
} ls_run_checkpoints;

/* Release in any case. */
ls_status ls_run_checkpoints_list(ls_run_checkpoints *c, const char *run, ls_err *err) LS_MUST_CHECK;
void ls_run_checkpoints_release(ls_run_checkpoints *c);

/* The path of the checkpoint that a run stands for: the best one, else the last (`newest`: the last one);
 * false when it has none. */
bool ls_run_checkpoint(const char *run, bool newest, char checkpoint[LS_PATH_MAX]);
/* What RUN or CHECKPOINT means: the checkpoint (of a run: by ls_run_checkpoint) and the resolved experiment
 * that it belongs to.  Only paths are made; LS_INVALID when it is neither, or has no checkpoint yet. */
ls_status ls_run_locate(const char *given, bool newest, char config[LS_PATH_MAX],
                        char checkpoint[LS_PATH_MAX], ls_err *err) LS_MUST_CHECK;

#endif
