/* replay.c: max-plus replay of a program (replay_internal.h). */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "base/rng.h"
#include "predict/replay_internal.h"

enum { LANES = 2 }; /* between machines, within machines */
static const double never = -1;

/* A transfer that was started and has not ended. */
typedef struct pending {
    int32_t transfer;
    double ready, left; /* seconds of the wire */
} pending;

/* When a lane was busy, and the share of a processor that it took. */
typedef struct busy {
    double begin, end, share;
} busy;

typedef struct lane {
    pending *queue; /* in the order of their starts */
    size_t n_queue, cap_queue;
    double clock;
    busy *times; /* in the order of time; those before `first` are over for all ranks */
    size_t n_times, cap_times, first;
    double busy_until;
} lane;

typedef struct state {
    const lsi_replay_args *a;
    lsi_replay *r;
    double *at, *factor; /* of each rank: its clock; its factor in this step */
    double *ready;       /* of each transfer: when the last rank has started it last */
    double *end;         /* the same: when it was over; `never`: it is under way, or was never started */
    lane lanes[LANES];
    bool newest_first, counts;
    double compute, core;
} state;

double lsi_replay_draw(const double *jitter, uint64_t seed, uint32_t step, uint32_t rank)
{
    const uint32_t counter[4] = {rank, step, 0, 0x6a697474}, /* "jitt" */
        key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];
    double x;
    int i;

    ls_philox(counter, key, word);
    x = ((double)word[0] + 0.5) / 4294967296.0 * (LS_JITTER_N - 1);
    i = (int)x;
    return jitter[i] + (jitter[i + 1] - jitter[i]) * (x - i);
}

/* -- the wire ---------------------------------------------------------------------------------------------
 */

static ls_status no_memory(ls_err *err)
{
    return ls_fail(err, LS_NOMEM, "no memory for a replay");
}

/* What takes the processor when depends on how long the lane is busy, not on who goes first. */
static ls_status start(state *s, int32_t transfer, double ready, ls_err *err)
{
    lane *l = &s->lanes[s->a->inside[transfer]];
    const ls_transfer_cost *c = &s->a->costs[transfer];
    const double begin = fmax(ready, l->busy_until);

    if (!LS_GROW(LS_MEM_CLI, l->queue, l->n_queue + 1, l->cap_queue) ||
        !LS_GROW(LS_MEM_CLI, l->times, l->n_times + 1, l->cap_times))
        return no_memory(err);
    l->queue[l->n_queue++] = (pending){transfer, ready, c->seconds};
    l->busy_until = begin + c->seconds;
    if (s->a->program->own_exchange && c->core_s > 0 && c->seconds > 0)
        l->times[l->n_times++] = (busy){begin, l->busy_until, fmin(1, c->core_s / c->seconds)};
    s->ready[transfer] = ready;
    s->end[transfer] = never;
    return LS_OK;
}

/* Which of the queue the wire works on at its clock, and until when it may; -1: none is ready. */
static int active(const state *s, const lane *l, double *until)
{
    int chosen = -1;

    *until = INFINITY;
    for (size_t i = 0; i < l->n_queue; i++) {
        if (l->queue[i].ready > l->clock) {
            *until = fmin(*until, l->queue[i].ready);
            continue;
        }
        if (chosen < 0 || s->newest_first) chosen = (int)i;
    }
    if (!s->newest_first) *until = INFINITY; /* who comes later waits */
    return chosen;
}

/* Lets the lane work until the transfer is over; ranks that could start others before that have done so. */
static void finish(state *s, int32_t transfer)
{
    lane *l = &s->lanes[s->a->inside[transfer]];

    while (s->end[transfer] == never && l->n_queue > 0) {
        double until;
        const int i = active(s, l, &until);
        if (i < 0) {
            double next = INFINITY;
            for (size_t q = 0; q < l->n_queue; q++) next = fmin(next, l->queue[q].ready);
            l->clock = next;
            continue;
        }
        if (l->clock + l->queue[i].left > until) {
            l->queue[i].left -= until - l->clock;
            l->clock = until;
            continue;
        }
        l->clock += l->queue[i].left;
        s->end[l->queue[i].transfer] = l->clock;
        memmove(&l->queue[i], &l->queue[i + 1], sizeof *l->queue * (l->n_queue - (size_t)i - 1));
        l->n_queue--;
    }
}

/* -- computing --------------------------------------------------------------------------------------------
 */

/* The share of the processor that lanes take at a time, and how long it stays so. */
static double share_at(const state *s, double at, double *until)
{
    double share = 0;

    *until = INFINITY;
    for (int k = 0; k < LANES; k++) {
        const lane *l = &s->lanes[k];
        for (size_t i = l->first; i < l->n_times; i++) {
            if (l->times[i].end <= at) continue;
            if (l->times[i].begin > at) {
                *until = fmin(*until, l->times[i].begin);
            } else {
                share += l->times[i].share;
                *until = fmin(*until, l->times[i].end);
                continue;
            }
            break;
        }
    }
    return fmin(share, 1);
}

/* When work that begins at a time is done. */
static double computed(const state *s, double at, double work)
{
    while (work > 0) {
        double until;
        const double rate = 1 - share_at(s, at, &until);
        if (rate * (until - at) >= work || until == INFINITY) return at + work / rate;
        work -= rate * (until - at);
        at = until;
    }
    return at;
}

/* Times that lie behind every rank are no longer looked at. */
static void forget(state *s)
{
    double first = INFINITY;

    for (int32_t i = 0; i < s->a->copies; i++) first = fmin(first, s->at[i]);
    for (int k = 0; k < LANES; k++) {
        lane *l = &s->lanes[k];
        while (l->first < l->n_times && l->times[l->first].end <= first) l->first++;
        if (l->first < 1024) continue;
        memmove(l->times, l->times + l->first, sizeof *l->times * (l->n_times - l->first));
        l->n_times -= l->first;
        l->first = 0;
    }
}

static void span(state *s, const char *name, int32_t deed, int32_t transfer, double begin, double end)
{
    lsi_replay *r = s->r;

    if (r->spans == NULL || r->n_spans == r->most_spans || end <= begin) return;
    r->spans[r->n_spans++] = (ls_predict_span){name, deed, transfer, begin, end};
}

static double work_of(const state *s, const ls_deed *d)
{
    double work = d->seconds;

    for (int k = 0; k < LS_SCOPE_N; k++)
        work += d->owned_s[k] / ls_program_members(s->a->program, (ls_scope)k, s->a->ranks, s->a->here);
    return work * s->a->crowding;
}

static void run(state *s, int32_t deed, double work, bool shown)
{
    bool shared = false;
    double compute = 0, core = 0;

    for (int k = 0; k < LANES; k++) shared |= s->lanes[k].first < s->lanes[k].n_times;
    if (shown) span(s, "compute", deed, -1, s->at[0], computed(s, s->at[0], work * s->factor[0]));
    for (int32_t i = 0; i < s->a->copies; i++) {
        const double own = work * s->factor[i];
        const double end = shared ? computed(s, s->at[i], own) : s->at[i] + own;
        compute += own;
        core += end - s->at[i] - own;
        s->at[i] = end;
    }
    if (shared) forget(s);
    s->compute += compute;
    s->core += core;
}

static ls_status move(state *s, int32_t deed, const ls_deed *d, bool shown, ls_err *err)
{
    const int32_t t = d->transfer;
    double last = s->at[0];

    if (d->kind == LS_DEED_START) {
        for (int32_t i = 1; i < s->a->copies; i++) last = fmax(last, s->at[i]);
        return start(s, t, last, err);
    }
    if (s->ready[t] == never) return LS_OK; /* the first step: nothing was carried to it */
    finish(s, t);
    if (shown) span(s, "exchange", -1, t, s->end[t] - s->a->costs[t].seconds, s->end[t]);
    if (shown) span(s, "wait", deed, t, s->at[0], s->end[t]);
    for (int32_t i = 0; i < s->a->copies; i++) s->at[i] = fmax(s->at[i], s->end[t]);
    return LS_OK;
}

/* -- steps ------------------------------------------------------------------------------------------------
 */

static ls_status step(state *s, uint32_t number, bool shown, ls_err *err)
{
    const ls_program *p = s->a->program;
    ls_status st = LS_OK;

    for (int32_t i = 0; i < s->a->copies; i++) {
        s->factor[i] =
            s->a->jitter != NULL ? lsi_replay_draw(s->a->jitter, s->a->seed, number, (uint32_t)i) : 1;
        if (s->a->machine != NULL)
            s->factor[i] *= ls_machine_uneven(s->a->machine, i % s->a->here, s->a->here);
    }
    for (int32_t d = 0; d < p->n_deeds; d++) {
        if (p->deeds[d].kind == LS_DEED_RUN)
            run(s, d, work_of(s, &p->deeds[d]), shown);
        else
            LS_TRY(move(s, d, &p->deeds[d], shown, err));
    }
    run(s, -1, p->rest_s * s->a->crowding, shown);
    s->r->visits += (int64_t)(p->n_deeds + 1) * s->a->copies;
out:
    return st;
}

static double last_of(const state *s)
{
    double last = s->at[0];

    for (int32_t i = 1; i < s->a->copies; i++) last = fmax(last, s->at[i]);
    return last;
}

static ls_status steps(state *s, ls_err *err)
{
    double before = 0;
    ls_status st = LS_OK;

    for (int k = 0; k < s->a->settle + s->a->steps; k++) {
        const bool last = k + 1 == s->a->settle + s->a->steps;
        if (k == s->a->settle) s->compute = s->core = 0;
        LS_TRY(step(s, (uint32_t)k, last, err));
        if (k >= s->a->settle) s->r->step_s[k - s->a->settle] = last_of(s) - before;
        if (last)
            for (int i = 0; i < s->r->n_spans; i++) {
                s->r->spans[i].begin_s -= before;
                s->r->spans[i].end_s -= before;
            }
        before = last_of(s);
    }
    s->r->compute_s = s->compute / s->a->copies / s->a->steps;
    s->r->core_s = s->core / s->a->copies / s->a->steps;
out:
    return st;
}

ls_status lsi_replay_run(const lsi_replay_args *a, lsi_replay *r, ls_err *err)
{
    const size_t ranks = (size_t)a->copies, transfers = (size_t)a->program->n_transfers;
    state s = {.a = a, .r = r};
    double *room = ls_alloc(LS_MEM_CLI, sizeof *room * 2 * (ranks + transfers));
    ls_status st = room != NULL ? LS_OK : no_memory(err);

    if (room == NULL) return st;
    s.at = room;
    s.factor = s.at + ranks;
    s.ready = s.factor + ranks;
    s.end = s.ready + transfers;
    for (size_t i = 0; i < transfers; i++) {
        s.ready[i] = s.end[i] = never;
        s.newest_first |= a->program->transfers[i].carried;
    }
    r->visits = 0;
    r->n_spans = 0;
    st = steps(&s, err);
    for (int k = 0; k < LANES; k++) {
        ls_free(s.lanes[k].queue);
        ls_free(s.lanes[k].times);
    }
    ls_free(room);
    return st;
}
