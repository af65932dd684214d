/* share.c: flows that share links max-min fairly, until the last has ended.
 *
 * Rates by progressive filling: of all links the one that leaves least to each of its flows decides theirs;
 * what they take elsewhere is gone, and the next link decides.  Who is held up by a link of its own before
 * (its cap) takes that.  When a flow begins or ends, all rates are found anew.  Flows that would end within a
 * ten thousandth of the time that has passed end together: on a crowded network nearly every flow has a rate
 * of its own, and no prediction is as good as that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/share_internal.h"

#define TOGETHER 1e-4

typedef enum state { WAITS, FLOWS, ENDED } state;

typedef struct candidate {
    double share; /* when it was put in: shares only grow */
    int32_t link;
} candidate;

typedef struct capped {
    double cap;
    int32_t class;
} capped;

typedef struct solver {
    lsi_shares s;
    double *left, *weight; /* of links, while rates are found: rate that is free, flows without one */
    double *rate;          /* of a flow of each class */
    bool *fixed;           /* classes that have theirs */
    state *state;
    capped *by_cap;  /* classes in the order of their caps */
    candidate *heap; /* of links, the least share first */
    int32_t n_heap;
    ls_flow_work work;
} solver;

/* -- a heap of links --------------------------------------------------------------------------------------
 */

static void sift_down(solver *v, int32_t i)
{
    const candidate c = v->heap[i];

    for (int32_t child; (child = 2 * i + 1) < v->n_heap; i = child) {
        if (child + 1 < v->n_heap && v->heap[child + 1].share < v->heap[child].share) child++;
        if (v->heap[child].share >= c.share) break;
        v->heap[i] = v->heap[child];
    }
    v->heap[i] = c;
}

static double share_of(const solver *v, int32_t link)
{
    const double left = v->left[link] > 0 ? v->left[link] : 0;

    return v->weight[link] > 0 ? left / v->weight[link] : INFINITY;
}

/* The link that decides next; -1: none is left.  Shares in the heap may be old: those at its top are brought
 * up to date until one was. */
static int32_t next_link(solver *v)
{
    while (v->n_heap > 0) {
        const int32_t link = v->heap[0].link;
        const double share = share_of(v, link);
        if (isinf(share)) {
            v->heap[0] = v->heap[--v->n_heap];
            if (v->n_heap > 0) sift_down(v, 0);
        } else if (share > v->heap[0].share) {
            v->heap[0].share = share;
            sift_down(v, 0);
            if (v->heap[0].link == link) return link;
        } else {
            return link;
        }
    }
    return -1;
}

static void fill_heap(solver *v)
{
    v->n_heap = 0;
    for (int32_t l = 0; l < v->s.n_links; l++)
        if (v->weight[l] > 0) v->heap[v->n_heap++] = (candidate){share_of(v, l), l};
    for (int32_t i = v->n_heap / 2; i-- > 0;) sift_down(v, i);
}

/* -- rates ------------------------------------------------------------------------------------------------
 */

static void fix(solver *v, int32_t class, double rate)
{
    const lsi_class *c = &v->s.classes[class];

    v->rate[class] = rate;
    v->fixed[class] = true;
    for (int32_t k = 0; k < c->n_links; k++) {
        const int32_t l = v->s.of_class[c->first + k];
        v->left[l] -= rate * c->count;
        v->weight[l] -= c->count;
        v->work.visits++;
    }
}

static void begin_rates(solver *v)
{
    for (int32_t l = 0; l < v->s.n_links; l++) {
        v->left[l] = v->s.links[l].rate;
        v->weight[l] = 0;
    }
    for (int32_t c = 0; c < v->s.n_classes; c++) {
        v->fixed[c] = v->state[c] != FLOWS;
        if (v->fixed[c]) continue;
        for (int32_t k = 0; k < v->s.classes[c].n_links; k++)
            v->weight[v->s.of_class[v->s.classes[c].first + k]] += v->s.classes[c].count;
    }
    fill_heap(v);
    v->work.solves++;
}

static void find_rates(solver *v)
{
    int32_t at = 0;

    begin_rates(v);
    for (;;) {
        const int32_t link = next_link(v);
        const double share = link >= 0 ? share_of(v, link) : INFINITY;
        while (at < v->s.n_classes && v->fixed[v->by_cap[at].class]) at++;
        if (at < v->s.n_classes && v->by_cap[at].cap <= share) {
            fix(v, v->by_cap[at].class, v->by_cap[at].cap);
            continue;
        }
        if (link < 0) return;
        for (int32_t k = 0; k < v->s.links[link].n_classes; k++) {
            const int32_t c = v->s.of_link[v->s.links[link].first + k];
            v->work.visits++;
            if (!v->fixed[c]) fix(v, c, share);
        }
    }
}

/* -- time -------------------------------------------------------------------------------------------------
 */

static bool start(solver *v, double now)
{
    bool changed = false;

    for (int32_t c = 0; c < v->s.n_classes; c++)
        if (v->state[c] == WAITS && v->s.classes[c].latency_s <= now) {
            v->state[c] = v->s.classes[c].bytes > 0 ? FLOWS : ENDED;
            changed = true;
        }
    return changed;
}

/* When the next class begins or ends, if rates stay as they are. */
static double next_event(const solver *v, double now)
{
    double next = INFINITY;

    for (int32_t c = 0; c < v->s.n_classes; c++) {
        double at = INFINITY;
        if (v->state[c] == WAITS) at = v->s.classes[c].latency_s;
        if (v->state[c] == FLOWS) at = now + v->s.classes[c].bytes / v->rate[c];
        if (at < next) next = at;
    }
    return next;
}

static bool advance(solver *v, double now, double to)
{
    bool changed = false;

    for (int32_t c = 0; c < v->s.n_classes; c++) {
        lsi_class *x = &v->s.classes[c];
        if (v->state[c] != FLOWS) continue;
        x->bytes -= (to - now) * v->rate[c];
        if (x->bytes > to * TOGETHER * v->rate[c]) continue;
        v->state[c] = ENDED;
        changed = true;
    }
    return changed;
}

static double run(solver *v)
{
    double now = 0, next;
    bool changed = true;

    for (;;) {
        changed = start(v, now) || changed;
        if (changed) find_rates(v);
        next = next_event(v, now);
        if (isinf(next)) return now;
        changed = advance(v, now, next);
        now = next;
    }
}

/* -- all --------------------------------------------------------------------------------------------------
 */

static int cap_order(const void *a, const void *b)
{
    const capped *x = a, *y = b;

    return x->cap < y->cap ? -1 : x->cap > y->cap;
}

static bool make_room(solver *v)
{
    const size_t n_classes = (size_t)v->s.n_classes + 1, n_links = (size_t)v->s.n_links + 1;

    v->left = ls_arena_alloc(v->s.arena, n_links * sizeof *v->left);
    v->weight = ls_arena_alloc(v->s.arena, n_links * sizeof *v->weight);
    v->heap = ls_arena_alloc(v->s.arena, n_links * sizeof *v->heap);
    v->rate = ls_arena_alloc(v->s.arena, n_classes * sizeof *v->rate);
    v->fixed = ls_arena_alloc(v->s.arena, n_classes * sizeof *v->fixed);
    v->state = ls_arena_alloc(v->s.arena, n_classes * sizeof *v->state);
    v->by_cap = ls_arena_alloc(v->s.arena, n_classes * sizeof *v->by_cap);
    if (v->left == NULL || v->weight == NULL || v->heap == NULL || v->rate == NULL || v->fixed == NULL ||
        v->state == NULL || v->by_cap == NULL)
        return false;
    for (int32_t c = 0; c < v->s.n_classes; c++) v->by_cap[c] = (capped){v->s.classes[c].cap, c};
    qsort(v->by_cap, (size_t)v->s.n_classes, sizeof *v->by_cap, cap_order);
    return true;
}

ls_status ls_flows_time(const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows,
                        double *seconds, ls_flow_work *work, ls_err *err)
{
    solver v = {0};
    ls_status st = LS_OK;

    *seconds = 0;
    LS_TRY(lsi_shares_make(&v.s, n, nodes, flows, n_flows, err));
    if (!make_room(&v)) {
        st = ls_fail(err, LS_NOMEM, "no memory for %lld flows", (long long)n_flows);
        goto out;
    }
    v.work.classes = v.s.n_classes;
    *seconds = run(&v);
    if (work != NULL) {
        work->classes += v.work.classes;
        work->solves += v.work.solves;
        work->visits += v.work.visits;
    }
out:
    lsi_shares_release(&v.s);
    return st;
}
