/* launch.h: how the ranks of a run start, find their place, and end.
 *
 * One call for every way in: ls_launch_detect says how this process was started, ls_launch_run does what
 * follows from it and calls `rank_main` once in every rank of this machine.  Ranks that we start are
 * processes forked from this one (no exec: nothing is read or parsed twice); this process stays as their
 * launcher, shows what they say, and when one is lost ends the others and names the first failure.
 *
 * Everything here is for the main thread of a process that has not yet started any other. */
#ifndef LS_LAUNCH_LAUNCH_H
#define LS_LAUNCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>

#include "comm/comm.h"

#define LS_FAILURE_BYTES 512

/* How the ranks of a launcher ended, besides their exit code. */
typedef struct ls_launch_end {
    char why[LS_FAILURE_BYTES]; /* the first failure, or why they were ended; "": neither */
    int stop_number;            /* the signal by which they were asked to stop; 0: they were not */
} ls_launch_end;

/* What is asked for; zero or NULL: not given. */
typedef struct ls_launch_options {
    int ranks;             /* -n: ranks on this machine (under mpirun or srun: of the run) */
    int total;             /* the setting `ranks`: ranks of the run, where nobody else says how many */
    int threads;           /* per rank; 0: the cores at hand, shared out */
    const char *bind;      /* "core", "none"; NULL: core where every rank gets one */
    int nodes;             /* machines of the run */
    const char *node_rank; /* which of them this is, from 0 */
    const char *master;    /* HOST or HOST:PORT of machine 0 */
    double join_timeout_s; /* how long machines wait for one another; 0: LS_JOIN_TIMEOUT_S */
    bool insecure;         /* machines may meet without a secret, also where others reach them */
    bool silent;           /* no line that says who runs where */
    ls_launch_end *end;    /* filled by a launcher when its ranks are gone; may be NULL */
} ls_launch_options;

#define LS_JOIN_TIMEOUT_S 9.0
#define LS_MASTER_PORT    29500

typedef struct ls_place {
    int rank, size;             /* in the run */
    int local_rank, local_size; /* on this machine */
    int node, nodes;            /* machines */
    int threads;                /* of this rank */
    const char *how;            /* "alone", "-n", "by hand", "mpirun", "srun" */
} ls_place;

typedef enum ls_start_kind {
    LS_START_ALONE,   /* one rank, no launcher: this process */
    LS_START_LOCAL,   /* this process starts all ranks, here */
    LS_START_MACHINE, /* this process starts the ranks of one machine of several */
    LS_START_RANK,    /* this process is a rank that mpirun or srun started */
} ls_start_kind;

typedef struct ls_start {
    ls_start_kind kind;
    ls_place place; /* of a launcher: that of its first rank */
    char master[256];
    int port;
    int n_beside;   /* ranks that other launchers start on this machine, as far as it is known */
    char note[256]; /* how a variable with two meanings was read; "" when there is nothing to say */
} ls_start;

/* `get` returns the value of an environment variable or NULL; ls_launch_env is the real one.  What cannot be
 * true together is LS_INVALID, with the values and a remedy. */
typedef const char *(*ls_env_fn)(void *ctx, const char *name);
const char *ls_launch_env(void *ctx, const char *name);
ls_status ls_launch_detect(ls_start *out, const ls_launch_options *o, ls_env_fn get, void *ctx,
                           ls_err *err) LS_MUST_CHECK;

/* Whether machines can be joined by hand: writes the versions of what that needs to `about`; starts nothing.
 */
ls_status ls_launch_machines_probe(char *about, size_t bytes, ls_err *err) LS_MUST_CHECK;

/* Cores this process may use: those of its mask, at most what its control groups grant the time of. */
int ls_launch_cores(void);

/* What a rank does; returns its exit code (LS_EXIT_*).  `comm` is closed by the caller. */
typedef int (*ls_rank_main)(const ls_place *place, ls_comm *comm, void *arg);

/* Exit codes of ranks and of runs. */
enum {
    LS_EXIT_DONE = 0,
    LS_EXIT_FAILED = 1,
    LS_EXIT_INVALID = 2,
    LS_EXIT_DAMAGED = 3,
    LS_EXIT_LOST = 4,
    LS_EXIT_DISAGREED = 5,
    LS_EXIT_STOPPED = 75, /* on request, after a checkpoint */
};
/* The code that belongs to a status. */
int ls_launch_exit_code(ls_status status);
/* Whether a launcher of ours tells the user of a lost rank, so that its peers need not. */
bool ls_place_is_watched(const ls_place *place);

/* Runs `rank_main` in every rank of this machine and returns when all are gone; *code is the run's: that of
 * the first failure, 4 when a rank was lost to a signal, 75 when the ranks stopped on request, 128 + the
 * signal when they were told twice, or once when they got nothing done (stall.h) after their first step
 * (before it 75, where requests are watched for: nothing is lost).  Fails only when nothing could be started.
 */
ls_status ls_launch_run(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main, void *arg,
                        int *code, ls_err *err) LS_MUST_CHECK;

/* Whether the end of a terminal ends its programs: not under nohup, which ignores SIGHUP. */
bool ls_launch_minds_hangup(void);

/* From ls_launch_watch_signals on, SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless ignored) ask for a checkpoint
 * and an end: the word becomes 1 instead of the process ending.  The second time ends it at once, after a
 * call of `last` (from the handler; may be NULL).  Called again, it only changes `last`.  To be called before
 * anything is made that the end of the process would leave behind: launchers pass on what came before they
 * had ranks, and ranks are born with it.  Ranks get requests from their launcher; a signal sent to a
 * rank itself counts as one request, however often it comes. */
const volatile sig_atomic_t *ls_launch_stop_requests(void);
void ls_launch_watch_signals(void (*last)(void));
/* Signals end the process again: for what waits without a look at the word. */
void ls_launch_unwatch_signals(void);
/* For a launcher between two runs: waits for so many seconds, or until a signal asks for a stop; returns its
 * number, or 0. */
int ls_launch_rest(double seconds);

#endif
