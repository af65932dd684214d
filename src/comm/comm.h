/* comm.h: how ranks meet and agree (collective.h: how they work on vectors together).
 *
 * A communicator is one rank's view of all ranks of a run.  Four kinds, one interface:
 *   self     one rank, nobody else
 *   threads  ranks are threads of one process (tests)
 *   local    ranks are processes of one machine, forked by a launcher that made the shared heap
 *   mpi      ranks were started by mpirun, srun or a PMIx server; a module that is loaded when it is asked
 * for Inside a machine ranks share memory, whichever kind it is; MPI carries what crosses machines.
 *
 * Every wait polls (it yields the core soon, since ranks may outnumber cores), and ends with LS_LOST when a
 * rank is gone: the text names the rank, why, and what was being waited for.  A wait of more than some
 * seconds is reported once on the log, with who is missing and what it did last.  After LS_LOST or
 * LS_DISAGREE the communicator is good for ls_comm_close only.
 *
 * Collective functions are called by all ranks in the same order.  A communicator and its exchanges belong to
 * one thread at a time. */
#ifndef LS_COMM_COMM_H
#define LS_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/collective.h"

typedef struct ls_shared ls_shared;

/* -- the shared heap, for launchers -----------------------------------------------------------------------
 * Memory without a name that forked ranks inherit: nothing is left behind, however a run ends. */
typedef struct ls_comm_heap ls_comm_heap;

/* A heap for `size` ranks.  Make it before forking; the descriptor stays open in the children. */
ls_status ls_comm_heap_create(ls_comm_heap **out, int size, ls_err *err) LS_MUST_CHECK;
void ls_comm_heap_destroy(ls_comm_heap *heap); /* accepts NULL; ranks that have opened it keep it */
int ls_comm_heap_fd(const ls_comm_heap *heap);

/* Ends every wait of every rank with LS_LOST: "rank RANK is gone (WHY) ...".  The first call counts; later
 * ones change nothing.  Any process or thread may call it, a signal handler may not. */
void ls_comm_heap_abort(ls_comm_heap *heap, int rank, const char *why);
/* The same where the run as a whole is to end: waits end with `status` and the text `why`. */
void ls_comm_heap_end(ls_comm_heap *heap, ls_status status, const char *why);
/* False: nobody has done either; else the words of the first who did. */
bool ls_comm_heap_ended(const ls_comm_heap *heap, char *why, size_t bytes);

/* What a rank is busy with between its operations: how long it may be silent. */
typedef enum ls_comm_doing {
    LS_COMM_AT_LENGTH, /* set-up, validation, checkpoints: what may take long, and says nothing meanwhile */
    LS_COMM_STEPPING,  /* runs a step: it beats with every node */
    LS_COMM_LOADING,   /* waits for samples */
} ls_comm_doing;

/* What a rank did last, as far as it has said. */
#define LS_COMM_WHAT_MAX 64
typedef struct ls_comm_look {
    pid_t pid;      /* 0: has not opened the heap yet */
    bool left;      /* has closed its communicator */
    int64_t step;   /* of ls_comm_note_step; -1 before the first */
    uint64_t beats; /* grows with all it does, but not while it waits for others */
    bool waiting;   /* for another rank */
    ls_comm_doing doing;
    int rank;                    /* in the whole run */
    char what[LS_COMM_WHAT_MAX]; /* the operation it is in or was in last; "" before the first */
} ls_comm_look;
void ls_comm_heap_look(const ls_comm_heap *heap, int rank, ls_comm_look *out);
/* What ls_comm_set_stall was told, in seconds; 0 before, and for a limit that is off. */
void ls_comm_heap_stall(const ls_comm_heap *heap, double *report, double *limit);

/* -- opening and closing -----------------------------------------------------------------------------------
 */

ls_status ls_comm_open_self(ls_comm **out, ls_err *err) LS_MUST_CHECK;
/* All `n` communicators at once, out[rank], each for a thread of its own. */
ls_status ls_comm_open_threads(ls_comm *out[], int n, ls_err *err) LS_MUST_CHECK;
/* Collective: returns when all `size` ranks have opened the heap.  `heap_fd` stays the caller's. */
ls_status ls_comm_open_local(ls_comm **out, int heap_fd, int rank, int size, ls_err *err) LS_MUST_CHECK;
/* Collective.  LS_UNSUPPORTED, with what to install, when the module or MPI is not there. */
ls_status ls_comm_open_mpi(ls_comm **out, ls_err *err) LS_MUST_CHECK;
/* Rank 0 of `ranks` ranks that are not there, `here` of them on each machine (0: all on one): exchanges can
 * be made, and say what they would take; nothing can be run. */
ls_status ls_comm_open_absent(ls_comm **out, int ranks, int here, ls_err *err) LS_MUST_CHECK;
bool ls_comm_absent(const ls_comm *c);
/* A peer that still waits for this rank gets LS_LOST (or LS_DISAGREE).  Exchanges go first.  Of kind mpi it
 * is collective, since MPI ends together; when a rank is lost, nobody is waited for.  Accepts NULL. */
void ls_comm_close(ls_comm *c);
/* Whether MPI could be used: loads the module and writes "Open MPI v4.1.4" to `about`; starts nothing. */
ls_status ls_comm_mpi_probe(char *about, size_t bytes, ls_err *err) LS_MUST_CHECK;

int ls_comm_rank(const ls_comm *c);
int ls_comm_size(const ls_comm *c);
int ls_comm_local_rank(const ls_comm *c); /* among the ranks of this machine */
int ls_comm_local_size(const ls_comm *c);
int ls_comm_host(const ls_comm *c); /* number of this machine, 0 .. hosts - 1 */
int ls_comm_hosts(const ls_comm *c);
const char *ls_comm_kind(const ls_comm *c); /* "self", "threads", "local", "mpi" or "absent" */

/* -- being watched
 * ------------------------------------------------------------------------------------------- */

/* The step that stall reports and messages about lost ranks name. */
void ls_comm_note_step(ls_comm *c, int64_t step);
/* Seconds until a wait is reported (10 unless set), and until whoever watches the run ends it (0: never). */
void ls_comm_set_stall(ls_comm *c, double report, double limit);
/* Returns what it was. */
ls_comm_doing ls_comm_set_doing(ls_comm *c, ls_comm_doing doing);
/* One more piece of work is done; costs next to nothing.  Any thread of the rank. */
void ls_comm_beat(ls_comm *c);
/* LS_LOST, with who and why, when a rank of this machine is gone or has given up: for those who wait for
 * something else that needs the others.  `what` names it; a look costs some system calls. */
ls_status ls_comm_alive(ls_comm *c, const char *what, ls_err *err) LS_MUST_CHECK;
/* The memory by which this rank is watched; valid as long as the communicator. */
ls_comm_heap *ls_comm_heap_of(const ls_comm *c);
/* Tells the ranks of this machine that this one gives up: their waits end with LS_LOST.  Those of other
 * machines are ended by whoever started the run, once this rank's process has failed. */
void ls_comm_abort(ls_comm *c, const char *why);
/* Seconds this rank has spent in ls_exchange_progress, ls_exchange_wait and barriers of plans: communication
 * that was not hidden. */
double ls_comm_exposed_seconds(const ls_comm *c);
/* Bytes that exchanges have sent from this rank to other machines. */
uint64_t ls_comm_sent_bytes(const ls_comm *c);
/* That less the adding: seconds in which this rank waited for others or for a network. */
double ls_comm_waiting_seconds(const ls_comm *c);

/* -- control plane: small, blocking, collective -------------------------------------------------------------
 * `what` names the operation in messages.  It must be the same text on all ranks: ranks that meet in
 * different operations, or with different sizes, get LS_DISAGREE. */

ls_status ls_comm_barrier(ls_comm *c, const char *what, ls_err *err) LS_MUST_CHECK;
/* Ranks other than the root may have NULL for data, and then only take part. */
ls_status ls_comm_broadcast(ls_comm *c, void *data, size_t bytes, int root, const char *what,
                            ls_err *err) LS_MUST_CHECK;
/* Only between the ranks of this machine.  While it waits it calls `work` (may be NULL), which does a piece
 * of something useful and returns whether there was any. */
ls_status ls_comm_machine_barrier(ls_comm *c, const char *what, bool (*work)(void *ctx), void *ctx,
                                  ls_err *err) LS_MUST_CHECK;
/* `bytes` of every rank to `all` (size * bytes, by rank) on every rank. */
ls_status ls_comm_gather_all(ls_comm *c, const void *mine, size_t bytes, void *all, const char *what,
                             ls_err *err) LS_MUST_CHECK;
/* Element by element, in the order of ranks: the same bits on every rank. */
ls_status ls_comm_sum(ls_comm *c, double *values, int n, const char *what, ls_err *err) LS_MUST_CHECK;
ls_status ls_comm_max(ls_comm *c, double *values, int n, const char *what, ls_err *err) LS_MUST_CHECK;
ls_status ls_comm_min(ls_comm *c, double *values, int n, const char *what, ls_err *err) LS_MUST_CHECK;
/* LS_DISAGREE, naming the first rank that differs from rank 0, unless all ranks call with the same value. */
ls_status ls_comm_agree(ls_comm *c, uint64_t value, const char *what, ls_err *err) LS_MUST_CHECK;

/* -- memory that the ranks of a machine have in common ------------------------------------------------------
 * Collective.  It is zero at first and aligned to 64 bytes.  Who may write when is the callers' affair.
 * Destroy it before the communicator; accepts NULL. */
ls_status ls_shared_create(ls_shared **out, ls_comm *c, size_t bytes, ls_err *err) LS_MUST_CHECK;
void ls_shared_destroy(ls_shared *s);
void *ls_shared_data(const ls_shared *s);

#endif
