/* queued.c: a plan on a device with queues.
 *
 * Nodes are put into their queues in the schedule's order.  Where a node comes after one of another queue
 * (passes/waits.c), its queue waits for an event behind that one.  What the host itself does, the collectives
 * of ranks that share no device, has a queue too, which the thread that runs the plan works off: it polls the
 * events that such a node comes after, and lets exchanges go on meanwhile; nodes of the device that come
 * after it are enqueued when it is done, and all others before. */
#include "exec/queued_internal.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "exec/branches.h"
#include "exec/links.h"
#include "exec/results.h"

/* -- making -----------------------------------------------------------------------------------------------
 */

static ls_status list_nodes(ls_plan *p, ls_err *err)
{
    lsi_queued *q = p->queued;
    const size_t n = (size_t)p->schedule.n + 1;

    for (int k = 0; k < LS_QUEUE_N; k++) {
        q->order[k] = ls_alloc(LS_MEM_PLAN, sizeof *q->order[k] * n);
        if (q->order[k] == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory");
    }
    q->marks = ls_alloc(LS_MEM_PLAN, sizeof *q->marks * n);
    if (q->marks == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory");
    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_queue of = p->steps[i].node->queue;
        q->order[of][q->n[of]++] = i;
    }
    return LS_OK;
}

/* Nodes of one queue, which is that of kernels: what comes before and behind them can be there, too, and
 * nobody has to wait for another queue. */
static bool in_one_queue(const ls_plan *p)
{
    for (int k = 0; k < LS_QUEUE_N; k++)
        if (k != LS_QUEUE_COMPUTE && p->queued->n[k] > 0) return false;
    return true;
}

/* What a queue has waited for once, its later nodes come after, too. */
static void drop_known(ls_plan *p)
{
    lsi_queued *q = p->queued;
    int32_t known[LS_QUEUE_N][LS_QUEUE_N] = {{0}};

    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_queue of = p->steps[i].node->queue;
        for (int k = 0; k < LS_QUEUE_N; k++) {
            int32_t *wait = &q->waits[i][k];
            if (k == (int)of || *wait <= known[of][k])
                *wait = 0;
            else
                known[of][k] = *wait;
        }
    }
}

/* An event behind every node of the device that another queue waits for. */
static ls_status make_marks(ls_plan *p, ls_err *err)
{
    lsi_queued *q = p->queued;
    ls_status st = LS_OK;

    for (int32_t i = 0; i < p->schedule.n; i++)
        for (int k = 0; k < LS_QUEUE_DEVICE_N; k++) {
            ls_event **mark = q->waits[i][k] > 0 ? &q->marks[q->order[k][q->waits[i][k] - 1]] : NULL;
            if (mark != NULL && *mark == NULL) LS_TRY(lsi_queues(p)->make_event(p->dev, mark, err));
        }
out:
    return st;
}

ls_status lsi_queued_make(ls_plan *p, ls_err *err)
{
    ls_status st = LS_OK;

    p->queued = ls_alloc(LS_MEM_PLAN, sizeof *p->queued);
    if (p->queued == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory");
    LS_TRY(list_nodes(p, err));
    p->queued->copies = in_one_queue(p) && !p->dev->copies_apart ? LS_QUEUE_COMPUTE : LS_QUEUE_COPY;
    LS_TRY(ls_pass_waits(p->graph, &p->schedule, &p->queued->waits, err));
    drop_known(p);
    LS_TRY(make_marks(p, err));
    LS_TRY(lsi_flights_make(p, err));
out:
    return st;
}

static void free_event(const ls_plan *p, ls_event *e)
{
    if (e != NULL) lsi_queues(p)->free_event(p->dev, e);
}

/* Behind whatever was fed so far. */
static void mark_inputs(ls_plan *p)
{
    lsi_queues(p)->mark(p->dev, p->queued->copies, p->dev->end[LS_QUEUE_COPY]);
    lsi_queues(p)->mark(p->dev, LS_QUEUE_FEED, p->dev->end[LS_QUEUE_FEED]);
}

void lsi_queued_release(ls_plan *p)
{
    lsi_queued *q = p->queued;

    if (q == NULL) return;
    /* Inputs may be on their way for a run that never came. */
    mark_inputs(p);
    for (int k = LS_QUEUE_COPY; k <= LS_QUEUE_FEED; k++)
        (void)lsi_queues(p)->join(p->dev, p->dev->end[k], &(ls_err){0});
    for (int32_t i = 0; i < p->schedule.n; i++) {
        if (q->marks != NULL) free_event(p, q->marks[i]);
        if (q->noted == NULL) continue;
        free_event(p, q->noted[i].begun);
        free_event(p, q->noted[i].ended);
    }
    lsi_flights_release(p);
    if (q->recording != NULL) lsi_queues(p)->free_recording(p->dev, q->recording);
    for (int k = 0; k < LS_QUEUE_N; k++) ls_free(q->order[k]);
    ls_free(q->waits);
    ls_free(q->marks);
    ls_free(q->noted);
    ls_free(q);
    p->queued = NULL;
}

void lsi_queued_forget(ls_plan *p)
{
    lsi_queued *q = p->queued;

    if (q == NULL || q->recording == NULL) return;
    lsi_queues(p)->free_recording(p->dev, q->recording);
    q->recording = NULL;
}

/* -- waiting ----------------------------------------------------------------------------------------------
 */

enum { YIELDS = 200 };

/* The host has nothing to do for a moment; exchanges may have. */
static void idle(ls_plan *p, int turn)
{
    const struct timespec moment = {0, 50000};
    ls_err err = {0};

    if (p->peers != NULL) lsi_coll_progress(p->peers);
    if (lsi_links_watch(p->peers, &err) != LS_OK)
        ls_stream_fail(&(ls_stream){&p->failure, LSI_BETWEEN_RUNS}, err.status, "%s", err.text);
    if (turn < YIELDS)
        sched_yield();
    else
        nanosleep(&moment, NULL);
}

/* What has gone wrong on the device itself before an event.  Events of a device that has failed count as
 * reached, and what should lie behind them was never written. */
static void hear(ls_plan *p, ls_event *e)
{
    ls_err err = {0};

    if (lsi_queues(p)->join(p->dev, e, &err) != LS_OK)
        ls_stream_fail(&(ls_stream){&p->failure, LSI_BETWEEN_RUNS}, err.status, "%s", err.text);
}

void lsi_queued_join(ls_plan *p, ls_event *e)
{
    /* Other ranks wait for this one's beats and its part in what is under way. */
    for (int turn = 0; p->peers != NULL && !lsi_queues(p)->reached(p->dev, e); turn++) idle(p, turn);
    hear(p, e);
}

void lsi_queued_take_inputs(ls_plan *p)
{
    lsi_flights_land(p);
    mark_inputs(p);
    for (int k = LS_QUEUE_COPY; k <= LS_QUEUE_FEED; k++) lsi_queued_join(p, p->dev->end[k]);
}

/* -- running ----------------------------------------------------------------------------------------------
 */

/* One run, so far. */
typedef struct progress {
    ls_plan *p;
    bool noted;
    int32_t done[LS_QUEUE_N]; /* enqueued, or run by the host */
    bool after_last_run;      /* the host knows that the device is over with the run before */
} progress;

static ls_event *mark_of(const lsi_queued *q, int queue, int32_t place)
{
    return q->marks[q->order[queue][place - 1]];
}

static void enqueue(const progress *r, int queue, int32_t i)
{
    const ls_queues *to = lsi_queues(r->p);
    const lsi_queued *q = r->p->queued;
    const lsi_step *s = &r->p->steps[i];
    ls_device *dev = r->p->dev;

    for (int k = 0; k < LS_QUEUE_DEVICE_N; k++)
        if (q->waits[i][k] > 0) to->wait(dev, (ls_queue)queue, mark_of(q, k, q->waits[i][k]));
    if (r->noted) to->mark(dev, (ls_queue)queue, q->noted[i].begun);
    to->enqueue(dev, (ls_queue)queue, &s->kernel, &s->call);
    if (r->noted) to->mark(dev, (ls_queue)queue, q->noted[i].ended);
    if (q->marks[i] != NULL) to->mark(dev, (ls_queue)queue, q->marks[i]);
}

/* Whether all that the node comes after is enqueued, and done where the host does it. */
static bool is_due(const progress *r, int32_t i)
{
    for (int k = 0; k < LS_QUEUE_N; k++)
        if (r->p->queued->waits[i][k] > r->done[k]) return false;
    return true;
}

/* Enqueues what can be, in the schedule's order; true if there was something. */
static bool enqueue_due(progress *r)
{
    const lsi_queued *q = r->p->queued;

    for (bool any = false;; any = true) {
        int32_t first = r->p->schedule.n;
        int of = -1;
        for (int k = 0; k < LS_QUEUE_DEVICE_N; k++) {
            const int32_t i = r->done[k] < q->n[k] ? q->order[k][r->done[k]] : first;
            if (i >= first || !is_due(r, i)) continue;
            first = i;
            of = k;
        }
        if (of < 0) return any;
        enqueue(r, of, first);
        r->done[of]++;
    }
}

static bool is_over(ls_plan *p, ls_event *e)
{
    if (!lsi_queues(p)->reached(p->dev, e)) return false;
    hear(p, e);
    return true;
}

/* Something of this run is over, or all that was there before it: so is the run before, whatever the host's
 * nodes will find. */
static void note_last_run(progress *r)
{
    lsi_queued *q = r->p->queued;

    if (!r->after_last_run && !r->p->failure.told) q->sound = q->runs - 1;
    r->after_last_run = true;
}

/* Whether what the host's node comes after is over; if that is nothing, then the run before. */
static bool can_run(progress *r, int32_t i)
{
    const lsi_queued *q = r->p->queued;
    bool waits = false;

    if (!is_due(r, i)) return false;
    for (int k = 0; k < LS_QUEUE_DEVICE_N; k++) {
        if (q->waits[i][k] == 0) continue;
        if (!is_over(r->p, mark_of(q, k, q->waits[i][k]))) return false;
        waits = true;
    }
    if (!waits && !r->after_last_run && !is_over(r->p, r->p->dev->end[LS_QUEUE_COPY])) return false;
    note_last_run(r);
    return true;
}

static bool run_due(progress *r)
{
    const lsi_queued *q = r->p->queued;
    const int32_t at = r->done[LS_QUEUE_HOST];
    const lsi_step *s;
    uint64_t begun, ended;

    if (at == q->n[LS_QUEUE_HOST] || !can_run(r, q->order[LS_QUEUE_HOST][at])) return false;
    s = &r->p->steps[q->order[LS_QUEUE_HOST][at]];
    begun = r->noted ? ls_clock_ns() : 0;
    lsi_plan_run_node(r->p, s);
    ended = r->noted ? ls_clock_ns() : 0;
    if (r->p->peers != NULL) lsi_coll_progress(r->p->peers);
    r->done[LS_QUEUE_HOST]++;
    if (r->noted) {
        lsi_noted *n = &q->noted[s - r->p->steps];
        n->begun_ns = begun;
        n->ended_ns = ended;
        n->progressed_ns = ls_clock_ns();
    }
    return true;
}

static bool is_complete(const progress *r)
{
    for (int k = 0; k < LS_QUEUE_N; k++)
        if (r->done[k] < r->p->queued->n[k]) return false;
    return true;
}

/* -- runs that are recorded -------------------------------------------------------------------------------
 *
 * Nodes of one queue that neither the host nor another queue has a part in are the same work in every run, at
 * the same addresses: the second run is recorded, and every later one is a single command.  The first is not,
 * since libraries may have to prepare themselves. */

static bool can_record(const ls_plan *p)
{
    return lsi_queues(p)->record != NULL && in_one_queue(p);
}

/* All nodes, in the schedule's order; side by side where they have nothing to do with each other. */
static void record_nodes(progress *r, const lsi_branches *b)
{
    const ls_queues *to = lsi_queues(r->p);

    if (b->first == NULL) {
        (void)enqueue_due(r);
        return;
    }
    for (int32_t i = 0; i < r->p->schedule.n; i++) {
        to->after(r->p->dev, LS_QUEUE_COMPUTE, b->before + b->first[i], b->first[i + 1] - b->first[i]);
        enqueue(r, LS_QUEUE_COMPUTE, i);
    }
}

static void make_recording(progress *r)
{
    const ls_queues *to = lsi_queues(r->p);
    lsi_queued *q = r->p->queued;
    lsi_branches b = {0};

    /* Without memory for it, the order of the queue is kept. */
    if (can_record(r->p) && r->p->memory.apart > 0 && lsi_branches_make(r->p, &b, &(ls_err){0}) != LS_OK)
        lsi_branches_release(&b);
    if (can_record(r->p) && to->record(r->p->dev, LS_QUEUE_COMPUTE)) {
        record_nodes(r, &b);
        q->recording = to->recorded(r->p->dev, LS_QUEUE_COMPUTE);
        r->done[LS_QUEUE_COMPUTE] = 0;
    }
    lsi_branches_release(&b);
    q->unrecorded = q->recording == NULL;
}

static void replay(progress *r)
{
    lsi_queued *q = r->p->queued;

    if (r->noted || q->unrecorded || q->runs < 2 || r->p->failure.told) return;
    if (q->recording == NULL) make_recording(r);
    if (q->recording == NULL || r->p->failure.told) return;
    lsi_queues(r->p)->replay(r->p->dev, LS_QUEUE_COMPUTE, q->recording);
    r->done[LS_QUEUE_COMPUTE] = q->n[LS_QUEUE_COMPUTE];
}

/* -- runs with a clock ------------------------------------------------------------------------------------
 */

static ls_status make_noted(ls_plan *p, ls_err *err)
{
    lsi_queued *q = p->queued;
    ls_status st = LS_OK;

    if (q->noted != NULL) return LS_OK;
    q->noted = ls_alloc(LS_MEM_PLAN, sizeof *q->noted * ((size_t)p->schedule.n + 1));
    if (q->noted == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory for a clock");
    for (int32_t i = 0; i < p->schedule.n; i++) {
        if (p->steps[i].node->queue == LS_QUEUE_HOST) continue;
        LS_TRY(lsi_queues(p)->make_event(p->dev, &q->noted[i].begun, err));
        LS_TRY(lsi_queues(p)->make_event(p->dev, &q->noted[i].ended, err));
    }
out:
    return st;
}

static void tell(ls_plan *p, ls_plan_note note, void *ctx)
{
    for (int32_t i = 0; i < p->schedule.n; i++) {
        lsi_noted *n = &p->queued->noted[i];
        if (n->begun != NULL) {
            n->begun_ns = lsi_queues(p)->when(p->dev, n->begun);
            n->ended_ns = n->progressed_ns = lsi_queues(p)->when(p->dev, n->ended);
        }
        note(ctx, i, n->begun_ns, n->ended_ns, n->progressed_ns);
    }
}

ls_status lsi_queued_run(ls_plan *p, ls_plan_note note, void *ctx, ls_err *err)
{
    progress r = {.p = p, .noted = note != NULL};
    ls_status st = LS_OK;

    if (r.noted) LS_TRY(make_noted(p, err));
    lsi_flights_depart(p);
    replay(&r);
    for (int turn = 0; !is_complete(&r); turn++) {
        const bool enqueued = enqueue_due(&r);
        if (run_due(&r) || enqueued)
            turn = 0;
        else
            idle(p, turn);
    }
    lsi_flights_arrive(p);
    if (!r.noted && !p->failure.told) return LS_OK;
    LS_TRY(ls_plan_join(p, err));
    tell(p, note, ctx);
out:
    return st;
}

/* -- steps that are begun ---------------------------------------------------------------------------------
 */

bool ls_plan_is_queued(const ls_plan *p)
{
    return p->queued != NULL;
}

uint64_t ls_plan_runs(const ls_plan *p)
{
    return p->queued != NULL ? p->queued->runs : 0;
}

ls_status ls_plan_start(ls_plan *p, ls_err *err)
{
    if (p->queued == NULL || p->failure.told) return ls_plan_run(p, err);
    LS_BUG_IF(p->peers != NULL && lsi_peers_absent(p->peers));
    return lsi_queued_run(p, NULL, NULL, err);
}

ls_status ls_plan_join(ls_plan *p, ls_err *err)
{
    if (p->queued != NULL) lsi_queued_join(p, p->dev->end[LS_QUEUE_COPY]);
    return lsi_plan_outcome(p, err);
}
