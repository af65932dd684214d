/* launch_internal.h: what the files of launch share: the group of ranks of this machine, its cores, and what
 * it says. */
#ifndef LS_LAUNCH_LAUNCH_INTERNAL_H
#define LS_LAUNCH_LAUNCH_INTERNAL_H

#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/launch.h"

/* -- cores: how the machine is divided --------------------------------------------------------------------
 */

typedef struct lsi_cores {
    int *cpus; /* those this process may use, neighbours together */
    int n_cpus;
    int limit;   /* cores' worth of time that the control group grants; at most n_cpus */
    int threads; /* per rank */
    int n_ranks;
    bool bound; /* rank r runs on the r-th part of `cpus` */
} lsi_cores;

/* Release in any case. */
ls_status lsi_cores_divide(lsi_cores *c, int n_ranks, const ls_launch_options *o, ls_err *err) LS_MUST_CHECK;
void lsi_cores_release(lsi_cores *c);
/* Binds the calling process; a refusal by the system changes nothing but speed. */
void lsi_cores_bind(const lsi_cores *c, int rank);
/* "2 threads each, cores 0-1 | 2-3". */
void lsi_cores_text(const lsi_cores *c, char *buf, size_t size);
/* Threads for a rank that somebody else has started and perhaps bound, as one of `local_size` here. */
int lsi_cores_threads_of_rank(const ls_launch_options *o, int local_size);

/* -- fold: lines of several ranks, the same ones once -------------------------------------------------------
 */

typedef struct lsi_fold lsi_fold;

/* Lines come from `n` sources; source i is rank first_rank + i and is ignored until it says something.
 * `write` gets each line as it is to be shown, with its newline. */
typedef void (*lsi_fold_fn)(void *ctx, const char *line, size_t length);
ls_status lsi_fold_create(lsi_fold **out, int n, int first_rank, lsi_fold_fn write, void *ctx,
                          ls_err *err) LS_MUST_CHECK;
void lsi_fold_destroy(lsi_fold *f); /* shows nothing more; accepts NULL */
/* Bytes that source i wrote, in any cut. */
void lsi_fold_add(lsi_fold *f, int i, const char *bytes, size_t n, double now);
/* Source i will say no more: its last line may lack a newline. */
void lsi_fold_end(lsi_fold *f, int i, double now);
/* Shows the lines that no further rank is waited for. */
void lsi_fold_flush(lsi_fold *f, double now);
/* Shows the lines of source i, and those that came before them. */
void lsi_fold_flush_of(lsi_fold *f, int i);
/* Shows all there are. */
void lsi_fold_flush_all(lsi_fold *f);
/* When lsi_fold_flush has something to do; infinity when nothing is held back. */
double lsi_fold_due(const lsi_fold *f);
/* "rank 2", "ranks 1-3,5" of a set of n sources. */
void lsi_fold_ranks_text(const bool *set, int n, int first_rank, char *buf, size_t size);

/* -- signals ------------------------------------------------------------------------------------------------
 */

/* What a launcher tells a rank with a signal it sends. */
enum { LSI_STOP_SOON = 1, LSI_STOP_NOW = 2 };
/* In a rank: orders come from process `launcher` alone; 0: from one that is not ours, which does not give
 * any. */
void lsi_signals_of_rank(pid_t launcher);
/* Whether ls_launch_watch_signals was called, here or in the process that this one was forked from. */
bool lsi_signals_are_watched(void);
/* The signal by which this process was last asked to stop; 0: it was not. */
int lsi_stop_number(void);
/* Ends this process from any thread: after the last words, by the signal that asked for it (`code` 0), or
 * with the exit code. */
LS_NORETURN void lsi_end_process(int code);

/* -- group: the ranks of this machine, from their start to their end ---------------------------------------
 */

typedef struct lsi_group lsi_group;

typedef struct lsi_failure {
    int rank, code;              /* of the run; the exit code that follows */
    char text[LS_FAILURE_BYTES]; /* "rank 2 (host h, pid 7) was killed by signal 9 (Killed) in "bucket 3" of
                                    step 41" */
} lsi_failure;

/* What else a launcher does while its ranks run.  All may be NULL. */
typedef struct lsi_group_hooks {
    void *ctx;
    /* In a rank: opens its communicator, instead of one over the shared heap alone. */
    ls_status (*open_comm)(void *ctx, ls_comm **out, int heap_fd, int local_rank, ls_err *err);
    /* When all ranks have been forked. */
    ls_status (*started)(void *ctx, ls_err *err);
    /* Adds descriptors to be polled; returns how many (at most LSI_EXTRA_FDS_MAX). */
    int (*descriptors)(void *ctx, struct pollfd *fds);
    /* After every poll, with those descriptors. */
    void (*ready)(void *ctx, lsi_group *g, const struct pollfd *fds, int n);
    double (*due)(void *ctx); /* when `ready` is to be called next even if nothing comes; infinity: never */
    void (*failed)(void *ctx, const lsi_failure *f);    /* the first failure was here */
    void (*stop_asked)(void *ctx, int number, int how); /* a signal came to this launcher */
    void (*finished)(void *ctx, int code);              /* all ranks here are gone */
    bool (*busy)(void *ctx); /* with all ranks gone: whether to stay and poll nevertheless */
    /* A number that changes while ranks of other machines get on, and the one that tells them of those here:
     * as in stall.h. */
    uint64_t (*elsewhere)(void *ctx);
    void (*moved)(void *ctx, uint64_t moves);
} lsi_group_hooks;

#define LSI_EXTRA_FDS_MAX 1024

/* Forks the ranks, watches them and returns when all are gone; *code as in ls_launch_run. */
ls_status lsi_group_run(const ls_start *start, const lsi_cores *cores, ls_rank_main rank_main, void *arg,
                        const lsi_group_hooks *hooks, ls_launch_end *end, int *code,
                        ls_err *err) LS_MUST_CHECK;
/* For hooks: something elsewhere failed; the ranks here end, and `f` is what the run says. */
void lsi_group_fail(lsi_group *g, const lsi_failure *f);
/* For hooks: passes a request to stop on to the ranks here. */
void lsi_group_stop(lsi_group *g, int number, int how);

/* The launcher of one machine of several (machines.c); as ls_launch_run. */
ls_status lsi_run_machine(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                          void *arg, int *code, ls_err *err) LS_MUST_CHECK;

/* One line on standard error, over a progress bar that may stand there. */
void lsi_say(const char *fmt, ...) LS_PRINTF(1, 2);
void lsi_say_line(const char *line, size_t length); /* with its newline */

#endif
