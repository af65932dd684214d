/* share.c: flows that share links max-min fairly, until the last has ended.
 *
 * When a flow begins or ends, all rates are found anew.  Flows that would end within a ten thousandth of the
 * time that has passed end together: on a crowded network nearly every flow has a rate of its own, and no
 * prediction is as good as that. */
#include <math.h>

#include "predict/share_internal.h"

#define TOGETHER 1e-4

typedef struct solver {
    lsi_shares s;
    lsi_rates w;
    int32_t *active; /* classes under way */
    int32_t *later;  /* those that have not begun, in no order */
    int32_t n_active, n_later;
} solver;

static bool start(solver *v, double now)
{
    bool changed = false;

    for (int32_t i = 0; i < v->n_later;) {
        const int32_t c = v->later[i];
        if (v->s.tasks[c].latency_s > now) {
            i++;
            continue;
        }
        v->later[i] = v->later[--v->n_later];
        if (v->s.tasks[c].bytes > 0) v->active[v->n_active++] = c;
        changed = true;
    }
    return changed;
}

/* When the next class begins or ends, if rates stay as they are. */
static double next_event(const solver *v, double now)
{
    double next = INFINITY;

    for (int32_t i = 0; i < v->n_later; i++) next = fmin(next, v->s.tasks[v->later[i]].latency_s);
    for (int32_t i = 0; i < v->n_active; i++)
        next = fmin(next, now + v->s.tasks[v->active[i]].bytes / v->s.classes[v->active[i]].rate);
    return next;
}

static bool advance(solver *v, double now, double to)
{
    bool changed = false;

    for (int32_t i = 0; i < v->n_active;) {
        lsi_task *t = &v->s.tasks[v->active[i]];
        const double rate = v->s.classes[v->active[i]].rate;
        t->bytes -= (to - now) * rate;
        if (t->bytes > to * TOGETHER * rate) {
            i++;
            continue;
        }
        v->active[i] = v->active[--v->n_active];
        changed = true;
    }
    return changed;
}

static void run(solver *v, double *first_s, double *last_s)
{
    double now = 0, next;
    bool changed = true, any_ended = false;

    for (;;) {
        changed = start(v, now) || changed;
        if (changed) lsi_rates_find(&v->w, v->s.classes, v->active, v->n_active);
        next = next_event(v, now);
        if (isinf(next)) break;
        changed = advance(v, now, next);
        now = next;
        if (changed && !any_ended) *first_s = now;
        any_ended = any_ended || changed;
    }
    *last_s = now;
}

static bool make_room(solver *v)
{
    const size_t n = (size_t)v->s.n_classes + 1;

    v->active = ls_arena_alloc(v->s.arena, n * sizeof *v->active);
    v->later = ls_arena_alloc(v->s.arena, n * sizeof *v->later);
    v->w.capacity = v->s.capacity;
    if (v->active == NULL || v->later == NULL ||
        !lsi_rates_make(&v->w, v->s.arena, v->s.n_links, v->s.n_classes, v->s.n_refs) ||
        !lsi_rates_rank(&v->w, v->s.arena, v->s.classes, v->s.n_classes))
        return false;
    for (int32_t c = 0; c < v->s.n_classes; c++) v->later[v->n_later++] = c;
    return true;
}

ls_status lsi_flows_time(const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows,
                         double *first_s, double *last_s, ls_flow_work *work, ls_err *err)
{
    solver v = {0};
    ls_status st = LS_OK;

    *first_s = *last_s = 0;
    LS_TRY(lsi_shares_make(&v.s, n, nodes, flows, n_flows, LSI_MERGED, err));
    if (!make_room(&v)) {
        st = ls_fail(err, LS_NOMEM, "no memory for %lld flows", (long long)n_flows);
        goto out;
    }
    run(&v, first_s, last_s);
    if (work != NULL) {
        work->classes += v.s.n_classes;
        work->solves += v.w.work.solves;
        work->visits += v.w.work.visits;
    }
out:
    lsi_shares_release(&v.s);
    return st;
}

ls_status ls_flows_time(const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows,
                        double *seconds, ls_flow_work *work, ls_err *err)
{
    double first;

    return lsi_flows_time(n, nodes, flows, n_flows, &first, seconds, work, err);
}
