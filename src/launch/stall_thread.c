/* stall_thread.c: the watcher of a rank that no launcher of ours watches. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "launch/launch_internal.h"
#include "launch/stall.h"

#define LEAVE_S 0.4 /* from the end of all waits until the process is ended */

struct lsi_stall_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool leaving;
    ls_comm_heap *heap;
    lsi_stall stall;
    bool far; /* some ranks are on other machines */
};

/* Sleeps; false when the rank has ended. */
static bool rest(lsi_stall_thread *t, double seconds)
{
    struct timespec until;
    int64_t ns;
    bool goes_on;

    clock_gettime(CLOCK_MONOTONIC, &until);
    ns = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&t->lock);
    while (!t->leaving && pthread_cond_timedwait(&t->wake, &t->lock, &until) == 0) continue;
    goes_on = !t->leaving;
    pthread_mutex_unlock(&t->lock);
    return goes_on;
}

static void *watch(void *arg)
{
    lsi_stall_thread *t = arg;
    double asked_at = (double)INFINITY;
    char text[512];

    while (rest(t, LSI_STALL_LOOK_S)) {
        const double now = ls_clock_seconds();
        const bool asked = *ls_launch_stop_requests() > 0;
        if (asked && isinf(asked_at)) asked_at = now;
        if (!lsi_stall_look(&t->stall, now, asked_at, t->far ? LSI_STALL_DEAF : 0, text, sizeof text))
            continue;
        /* First the way through the rank's own errors: who waits for others leaves its wait with this status,
         * and the run is told and closed as after any failure. */
        ls_comm_heap_end(t->heap, asked ? LS_CANCELLED : LS_LOST, text);
        if (!rest(t, LEAVE_S)) break;
        lsi_say("%s", text); /* it waits for something else */
        lsi_end_process(asked ? 0 : LS_EXIT_LOST);
    }
    return NULL;
}

static bool begin(lsi_stall_thread *t)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    bool begun;

    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&monotonic);
    /* A clock that somebody sets must neither end a run nor let its watcher sleep. */
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* signals are for the thread that trains */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    begun = pthread_create(&t->thread, NULL, watch, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return begun;
}

static void release(lsi_stall_thread *t)
{
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    lsi_stall_release(&t->stall);
    ls_free(t);
}

lsi_stall_thread *lsi_stall_thread_start(ls_comm *c)
{
    lsi_stall_thread *t = ls_alloc(LS_MEM_CLI, sizeof *t);

    if (t == NULL) return NULL;
    t->heap = ls_comm_heap_of(c);
    t->far = ls_comm_hosts(c) > 1;
    if (lsi_stall_open(&t->stall, t->heap, ls_comm_local_size(c), NULL) == LS_OK && begin(t)) return t;
    release(t);
    return NULL;
}

void lsi_stall_thread_stop(lsi_stall_thread *t)
{
    if (t == NULL) return;
    pthread_mutex_lock(&t->lock);
    t->leaving = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    release(t);
}
