/* parallel.h: the one way kernels use threads.
 *
 * A region runs one function on a fixed number of threads and returns when all are done; the caller is
 * thread 0.  Built on OpenMP (the runtime that oneDNN shares, so that both use the same threads) or, where
 * the build says LS_PARALLEL_PTHREAD (sanitizers, clang), on a small pool of our own. Work is cut by
 * ls_parallel_range, the same way every time, or into pieces that give the same whoever takes them: results
 * do not depend on timing. */
#ifndef LS_BASE_PARALLEL_H
#define LS_BASE_PARALLEL_H

#include <stdatomic.h>
#include <stdint.h>

typedef void (*ls_parallel_fn)(int thread, int n_threads, void *arg);

/* Runs fn(0..n_threads-1) concurrently and waits for all.  With n_threads == 1 it is a plain call.
 * Regions do not nest: a region started inside a region runs its threads one after another on the caller, as
 * does a region for which the system grants too few threads. */
void ls_parallel_run(int n_threads, ls_parallel_fn fn, void *arg);

/* The half-open part [*lo, *hi) of 0..n that belongs to `thread`; parts differ by at most one element. */
void ls_parallel_range(int64_t n, int thread, int n_threads, int64_t *lo, int64_t *hi);
/* The same in units of `grain` elements (the last part takes the rest). */
void ls_parallel_range_grain(int64_t n, int64_t grain, int thread, int n_threads, int64_t *lo, int64_t *hi);

/* Pieces of work that the threads of a region take one by one, because some may be slower than others (a core
 * that other work shares).  What a piece gives must not depend on who takes it.  Begins as {0}.
 * The number is all that threads share by it: it orders nothing, the region does. */
typedef struct ls_parallel_pieces {
    _Alignas(64) _Atomic int64_t taken;
} ls_parallel_pieces;
/* The next piece's number: 0, 1, 2, ...; how many there are, the caller knows. */
static inline int64_t ls_parallel_take(ls_parallel_pieces *p)
{
    return atomic_fetch_add_explicit(&p->taken, 1, memory_order_relaxed);
}

/* The same where a thread's share of the data is likely to be in its own cache: each share (as
 * ls_parallel_range cuts them, for `n` threads) has pieces, all of them as many.  A thread walks through its
 * own, then through what others have left of theirs.  Begins as {0}; so many shares at most. */
enum { LS_PARALLEL_SHARES = 64 };
typedef struct ls_parallel_shares {
    ls_parallel_pieces of[LS_PARALLEL_SHARES];
} ls_parallel_shares;
typedef struct ls_parallel_walk {
    ls_parallel_shares *shares;
    int n, share, passed; /* shares; the one of now; those that have nothing left */
} ls_parallel_walk;
static inline ls_parallel_walk ls_parallel_walk_begin(ls_parallel_shares *s, int thread, int n_threads)
{
    const int n = n_threads < LS_PARALLEL_SHARES ? n_threads : LS_PARALLEL_SHARES;

    return (ls_parallel_walk){s, n, thread % n, 0};
}
/* The next piece of share `w->share` of `w->n`, or -1 when nothing is left. */
static inline int64_t ls_parallel_walk_next(ls_parallel_walk *w, int64_t pieces)
{
    for (; w->passed < w->n; w->passed++, w->share = (w->share + 1) % w->n) {
        const int64_t piece = ls_parallel_take(&w->shares->of[w->share]);
        if (piece < pieces) return piece;
    }
    return -1;
}

/* Waits for all threads of the current region.  Every thread of the region must call it, and the region must
 * not be nested in another: threads that run one after another can never meet, which aborts. */
void ls_parallel_barrier(int thread, int n_threads);

/* Cores this process may use (its affinity mask), at least 1. */
int ls_parallel_cores(void);
/* Threads for a process that shares the machine with `local_ranks` - 1 others: LOCKSTEP_THREADS or
 * OMP_NUM_THREADS when set, else cores / local_ranks, at least 1. */
int ls_parallel_default_threads(int local_ranks);
/* For the start of main(), before any other thread.  Threads that wait for others spin; by default OpenMP
 * lets them do so for milliseconds, which makes a training step several times slower as soon as anything else
 * runs on the machine.  It reads its settings when the process is loaded, so where the user's environment has
 * none (OMP_WAIT_POLICY, GOMP_SPINCOUNT), this adds one and starts the program again in its place; otherwise
 * it returns. */
void ls_parallel_settle(char **argv);
/* Spinning is right when every thread has a core of its own and disastrous otherwise: call once, before the
 * first region, with the number of threads of all ranks on this machine.  A launcher calls it before it
 * starts ranks, which inherit the policy by their environment; what the user has set there stays. */
void ls_parallel_set_wait_policy(int threads_on_machine);
/* "openmp" or "pthread". */
const char *ls_parallel_name(void);

#endif
