/* parallel_pthread.c: regions on a small thread pool of our own, for builds without OpenMP.
 *
 * Every thread that starts regions has its own pool (as in libgomp), so ranks that live as threads of one
 * process do not wait for each other.  A pool is made at the first region, grows to the largest region seen,
 * and ends with its owner.  All hand-over goes through atomics that ThreadSanitizer understands; the futex
 * only puts to sleep. */
#include "base/denormals.h"
#include "base/parallel_internal.h"

#ifdef LS_PARALLEL_PTHREAD

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep/status.h"

#define SPINS_ALONE                                                                                          \
    1000               /* some microseconds: longer than the gap between two kernels; see parallel_openmp.c */
#define SPINS_SHARED 0 /* somebody else needs the core */
#define MAX_THREADS  1024

static atomic_int spins = SPINS_ALONE;

/* --- a word that threads wait on --- */

typedef struct event {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} event;

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, (uint32_t *)word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Returns when e->value is no longer `old`, with everything visible that was written before the change. */
static void event_wait(event *e, uint32_t old)
{
    for (int i = atomic_load_explicit(&spins, memory_order_relaxed); i > 0; i--) {
        if (atomic_load_explicit(&e->value, memory_order_acquire) != old) return;
        __builtin_ia32_pause();
    }
    /* Sequential consistency: either the waker sees the sleeper, or the sleeper (the kernel compares again)
     * sees the new value. */
    atomic_fetch_add(&e->sleepers, 1);
    while (atomic_load(&e->value) == old) futex(&e->value, FUTEX_WAIT, old);
    atomic_fetch_sub(&e->sleepers, 1);
}

static void event_wake(event *e)
{
    if (atomic_load(&e->sleepers)) futex(&e->value, FUTEX_WAKE, INT_MAX);
}

/* --- the pool --- */

typedef struct region {
    ls_parallel_fn fn;
    void *arg;
    int n_threads;
    unsigned long mode;       /* of the owner (denormals.h) */
    event running;            /* threads of the region, apart from the owner, that are not done */
    event phase;              /* number of barriers passed */
    _Atomic uint32_t arrived; /* threads waiting at the barrier */
} region;

typedef struct worker {
    event posted;   /* counts the jobs given to this worker */
    region *region; /* NULL asks the worker to end; written before `posted` changes, read after */
    int thread;
    pthread_t handle;
} worker;

typedef struct pool {
    int n_workers;
    worker *workers[MAX_THREADS - 1];
    region region;
} pool;

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static pthread_key_t pool_key;
static _Thread_local pool *pool_mine;
static _Thread_local region *region_current; /* the concurrent region this thread is part of */

static void run_part(region *r, int thread)
{
    region_current = r;
    ls_denormals_take(r->mode);
    r->fn(thread, r->n_threads, r->arg);
    region_current = NULL;
}

static void post(worker *w, region *r)
{
    w->region = r;
    atomic_fetch_add(&w->posted.value, 1);
    event_wake(&w->posted);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    for (uint32_t seen = 0;; seen++) {
        event_wait(&w->posted, seen);
        region *r = w->region;
        if (!r) return NULL;
        run_part(r, w->thread);
        if (atomic_fetch_sub(&r->running.value, 1) == 1) event_wake(&r->running);
    }
}

static void pool_destroy(void *arg)
{
    pool *p = arg;
    for (int i = 0; i < p->n_workers; i++) {
        post(p->workers[i], NULL);
        pthread_join(p->workers[i]->handle, NULL);
        free(p->workers[i]);
    }
    free(p);
    pool_mine = NULL;
}

static void pool_key_create(void)
{
    LS_BUG_IF(pthread_key_create(&pool_key, pool_destroy) != 0);
}

/* The pool is plumbing of the threads themselves, created lazily at whatever moment the first region runs; it
 * stays out of the counted allocator so that this moment does not look like an allocation of the step. */
static pool *pool_get(void)
{
    if (pool_mine) return pool_mine;
    pthread_once(&pool_once, pool_key_create);
    pool *p = aligned_alloc(_Alignof(pool), sizeof *p);
    if (!p) return NULL;
    *p = (pool){0};
    if (pthread_setspecific(pool_key, p) != 0) {
        free(p);
        return NULL;
    }
    pool_mine = p;
    return p;
}

static bool pool_grow(pool *p, int n_workers)
{
    while (p->n_workers < n_workers) {
        worker *w = aligned_alloc(_Alignof(worker), sizeof *w);
        if (!w) return false;
        *w = (worker){.thread = p->n_workers + 1};
        if (pthread_create(&w->handle, NULL, worker_main, w) != 0) {
            free(w);
            return false;
        }
        p->workers[p->n_workers++] = w;
    }
    return true;
}

void ls_parallel_run(int n_threads, ls_parallel_fn fn, void *arg)
{
    LS_BUG_IF(n_threads < 1);
    if (n_threads == 1) {
        fn(0, 1, arg);
        return;
    }
    pool *p = region_current || lsi_parallel_is_serial() || n_threads > MAX_THREADS ? NULL : pool_get();
    if (!p || !pool_grow(p, n_threads - 1)) {
        lsi_parallel_run_serially(n_threads, fn, arg);
        return;
    }
    region *r = &p->region;
    r->fn = fn;
    r->arg = arg;
    r->n_threads = n_threads;
    r->mode = ls_denormals_mode();
    atomic_store(&r->running.value, (uint32_t)n_threads - 1);
    for (int t = 1; t < n_threads; t++) post(p->workers[t - 1], r);
    run_part(r, 0);
    for (uint32_t left; (left = atomic_load(&r->running.value)) != 0;) event_wait(&r->running, left);
}

void ls_parallel_barrier(int thread, int n_threads)
{
    (void)thread;
    if (n_threads == 1) return;
    region *r = region_current;
    LS_BUG_IF(!r || lsi_parallel_is_serial() || n_threads != r->n_threads);
    uint32_t phase = atomic_load(&r->phase.value);
    if (atomic_fetch_add(&r->arrived, 1) + 1 == (uint32_t)n_threads) {
        atomic_store(&r->arrived, 0); /* before the phase changes: the first to leave may arrive again */
        atomic_fetch_add(&r->phase.value, 1);
        event_wake(&r->phase);
    } else {
        event_wait(&r->phase, phase);
    }
}

/* Our own pool starts with a short spin and needs no environment. */
void ls_parallel_settle(char **argv)
{
    (void)argv;
}

void lsi_parallel_apply_wait_policy(int oversubscribed)
{
    atomic_store(&spins, oversubscribed ? SPINS_SHARED : SPINS_ALONE);
}

int lsi_parallel_thread_limit(void)
{
    return MAX_THREADS;
}

const char *ls_parallel_name(void)
{
    return "pthread";
}

#endif
