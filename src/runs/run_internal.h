/* run_internal.h: what claim.c (taking and giving back) and write.c (writing) share. */
#ifndef LS_RUNS_RUN_INTERNAL_H
#define LS_RUNS_RUN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "runs/owner_internal.h"

/* Processes that are forked from the owner have a copy of their own. */
struct ls_run {
    ls_run_paths paths;
    char file[LS_PATH_MAX]; /* owner.json */
    int fd;                 /* of it; the lock is its */
    int folder;             /* the directory itself, wherever it is by now; -1: not known */
    pid_t taken_by;
    bool is_new, has_begun; /* begun: in an attempt before this one */
    bool has_checkpoint;
    ls_run_owner owner; /* this process, or the one it was forked from */
    double started;     /* first of all */
    size_t made_from;   /* the shortest part of the path that was made here; 0: none was */
    bool made_file;
    char *before; /* owner.json as it was found, to be put back; NULL: there was none */
    size_t n_before;
    struct timespec beat_before;

    /* of the writer */
    double looked;          /* the clock when it last saw that the run is its own; 0: never */
    atomic_bool lost, gone; /* another owner has it; the heartbeat has seen that the directory is elsewhere */
    pthread_t beat;
    pthread_mutex_t lock; /* of `leaving` */
    pthread_cond_t wake;
    bool is_beating, leaving;
};

ls_status lsi_run_path(char out[LS_PATH_MAX], const char *folder, const char *name,
                       ls_err *err) LS_MUST_CHECK;

#endif
