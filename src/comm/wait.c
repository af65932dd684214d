/* wait.c: how a rank waits for others, and how it notices that one will not come.
 *
 * A wait first spins, for a time in which a peer with a core of its own would have answered, then yields,
 * then sleeps for moments: ranks may outnumber cores, and a core that is polled away is taken from the rank
 * that is being waited for.  Every few milliseconds it looks whether missing ranks still exist.  It finds out
 * by itself, without a launcher's help: a pidfd becomes readable when its process ends. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "comm/comm_internal.h"

enum { SPIN_TURNS = 30 };
#define SLEEP_AFTER_NS UINT64_C(500000)
#define LOOK_EVERY_NS  UINT64_C(20000000)

void lsi_note(ls_comm *c, const char *what)
{
    lsi_slot *s = &c->heap->region->slot[c->local_rank];
    uint64_t words[LSI_WHAT_WORDS] = {0};

    memcpy(words, what, strnlen(what, LS_COMM_WHAT_MAX - 1));
    for (int i = 0; i < LSI_WHAT_WORDS; i++)
        atomic_store_explicit(&s->what[i], words[i], memory_order_relaxed);
    ls_comm_beat(c);
}

/* One rank writes its own: a load and a store, no locked instruction.  Threads of a rank that meet here lose
 * beats, which matters to nobody. */
void ls_comm_beat(ls_comm *c)
{
    _Atomic uint64_t *beats = &c->heap->region->slot[c->local_rank].beats;

    atomic_store_explicit(beats, atomic_load_explicit(beats, memory_order_relaxed) + 1, memory_order_relaxed);
}

ls_comm_doing ls_comm_set_doing(ls_comm *c, ls_comm_doing doing)
{
    _Atomic int32_t *now = &c->heap->region->slot[c->local_rank].doing;
    const ls_comm_doing before = (ls_comm_doing)atomic_load_explicit(now, memory_order_relaxed);

    atomic_store_explicit(now, (int32_t)doing, memory_order_relaxed);
    ls_comm_beat(c);
    return before;
}

ls_comm_heap *ls_comm_heap_of(const ls_comm *c)
{
    return c->heap;
}

void ls_comm_note_step(ls_comm *c, int64_t step)
{
    atomic_store_explicit(&c->heap->region->slot[c->local_rank].step, step, memory_order_relaxed);
}

void ls_comm_set_stall(ls_comm *c, double report, double limit)
{
    lsi_region *r = c->heap->region;

    c->stall_seconds = report;
    atomic_store_explicit(&r->stall_us, (int64_t)(report * 1e6), memory_order_relaxed);
    atomic_store_explicit(&r->stall_limit_us, (int64_t)(limit * 1e6), memory_order_relaxed);
}

void ls_comm_abort(ls_comm *c, const char *why)
{
    ls_comm_heap_abort(c->heap, c->rank, why);
}

static int rank_of(const ls_comm *c, int local)
{
    return atomic_load_explicit(&c->heap->region->slot[local].rank, memory_order_relaxed);
}

/* "in bucket 3 (step 120)": what the rank did last. */
static void describe(const ls_comm *c, int local, char *text, size_t bytes)
{
    ls_comm_look look;

    ls_comm_heap_look(c->heap, local, &look);
    if (look.what[0] == '\0')
        snprintf(text, bytes, look.pid == 0 ? "never seen" : "in no operation yet");
    else if (look.step >= 0)
        snprintf(text, bytes, "last in %s, step %lld", look.what, (long long)look.step);
    else
        snprintf(text, bytes, "last in %s", look.what);
}

ls_status lsi_lost(const ls_comm *c, const char *what, ls_err *err)
{
    lsi_region *r = c->heap->region;
    uint64_t begun = ls_clock_ns();
    char last[128] = "";

    /* Whoever wrote the record may have died over it; the wait for it is therefore bounded. */
    while (atomic_load_explicit(&r->abort_state, memory_order_acquire) != LSI_ABORTED)
        if (ls_clock_ns() - begun > UINT64_C(100000000))
            return ls_fail(err, LS_LOST, "a rank is gone while waiting in %s", what);
    if (r->abort_rank < 0) return ls_fail(err, (ls_status)r->abort_status, "%s", r->abort_why);
    for (int i = 0; i < c->local_size; i++)
        if (rank_of(c, i) == r->abort_rank) describe(c, i, last, sizeof last);
    return ls_fail(err, LS_LOST, "rank %d is gone (%s%s%s) while waiting in %s", r->abort_rank, r->abort_why,
                   last[0] != '\0' ? "; " : "", last, what);
}

/* Whether the process of that rank has ended. */
static bool ended(const ls_comm *c, int local)
{
    struct pollfd p = {.events = POLLIN};

    if (c->pidfd == NULL || c->pidfd[local] < 0) return false;
    p.fd = c->pidfd[local];
    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0;
}

/* Records the first rank that will not come.  A rank that has closed or ended may have arrived just before:
 * the caller's condition is asked after that was seen, never before. */
static void look_for_lost(ls_comm *c, lsi_missing missing, const void *arg)
{
    for (int i = 0; i < c->local_size; i++) {
        const lsi_slot *s = &c->heap->region->slot[i];
        bool left = atomic_load_explicit(&s->left, memory_order_acquire) != 0, gone = !left && ended(c, i);

        if (i == c->local_rank || !(left || gone)) continue;
        /* One that died without a word may also have died over work it had taken on. */
        if (left && (missing == NULL || !missing(arg, i))) continue;
        ls_comm_heap_abort(c->heap, rank_of(c, i), left ? "it has left the run" : "its process has ended");
        return;
    }
}

ls_status ls_comm_alive(ls_comm *c, const char *what, ls_err *err)
{
    if (!lsi_aborted(c)) look_for_lost(c, NULL, NULL);
    return lsi_aborted(c) ? lsi_lost(c, what, err) : LS_OK;
}

/* All have arrived, but somebody has not finished what he took on: one who does not wait. */
static bool has_work(const ls_comm *c, int local)
{
    ls_comm_look look;

    ls_comm_heap_look(c->heap, local, &look);
    return !look.left && !look.waiting;
}

/* " rank 2 of another machine, ...": whoever is waited for there, as far as it is known and fits. */
static void describe_far(const ls_comm *c, const lsi_wait *w, char *text, size_t bytes)
{
    bool *far = w->awaited != NULL ? ls_alloc(LS_MEM_COMM, (size_t)c->size * sizeof *far) : NULL;
    size_t used = 0;

    if (far != NULL) w->awaited(w->of, far);
    for (int r = 0; far != NULL && r < c->size && used < bytes; r++)
        if (far[r])
            used += (size_t)snprintf(text + used, bytes - used, "%s rank %d of another machine",
                                     used > 0 ? "," : "", r);
    if (used == 0) snprintf(text, bytes, " other machines");
    ls_free(far);
}

static void report_stall(ls_comm *c, const lsi_wait *w, lsi_missing missing, const void *arg, double seconds)
{
    char text[512] = "", last[128];
    size_t used = 0;
    bool all_came = missing != NULL;

    for (int i = 0; missing != NULL && i < c->local_size; i++)
        if (i != c->local_rank && missing(arg, i)) all_came = false;
    for (int i = 0; missing != NULL && i < c->local_size && used < sizeof text; i++) {
        if (i == c->local_rank || !(all_came ? has_work(c, i) : missing(arg, i))) continue;
        describe(c, i, last, sizeof last);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s rank %d (%s)", used > 0 ? "," : "",
                                 rank_of(c, i), last);
    }
    if (used == 0 && c->hosts > 1) describe_far(c, w, text, sizeof text);
    ls_log(LS_LOG_WARN, "rank %d has been waiting for %.0f s in %s; not there:%s", c->rank, seconds, w->what,
           text[0] != '\0' ? text : " nobody is missing, but work is unfinished");
}

/* The slow part of a turn: asked for every LOOK_EVERY_NS. */
static void look_around(ls_comm *c, lsi_wait *w, lsi_missing missing, const void *arg, uint64_t now)
{
    double waited = (double)(now - w->begun_ns) * 1e-9;
    lsi_slot *own = &c->heap->region->slot[c->local_rank];

    w->looked_ns = now;
    atomic_store_explicit(&own->waited, atomic_load_explicit(&own->beats, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    look_for_lost(c, missing, arg);
    if (!w->reported && waited >= c->stall_seconds) {
        w->reported = true;
        report_stall(c, w, missing, arg, waited);
    }
}

void lsi_wait_end(ls_comm *c, const lsi_wait *w)
{
    if (w->begun_ns != 0) ls_comm_beat(c);
}

ls_status lsi_wait_turn(ls_comm *c, lsi_wait *w, lsi_missing missing, const void *arg, ls_err *err)
{
    if (lsi_aborted(c)) return lsi_lost(c, w->what, err);
    if (w->turns++ < SPIN_TURNS) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return LS_OK;
    }
    uint64_t now = ls_clock_ns();
    if (w->begun_ns == 0) w->begun_ns = w->looked_ns = now;
    if (now - w->looked_ns >= LOOK_EVERY_NS) look_around(c, w, missing, arg, now);
    if (now - w->begun_ns < SLEEP_AFTER_NS) {
        sched_yield();
    } else if (w->rest != NULL) {
        w->rest(w->of);
    } else {
        nanosleep(&(struct timespec){.tv_nsec = LSI_REST_NS}, NULL);
    }
    return LS_OK;
}
