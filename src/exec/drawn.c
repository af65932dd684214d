/* drawn.c: a run in an order of its queues that is drawn.
 *
 * A device with queues of its own runs them side by side, and what comes first is chance.  Here it is drawn,
 * from a seed: of the queues whose next node waits for nothing any more, one goes on.  What the schedule's
 * order hides (an edge that is missing, memory that is given away too early) shows as other bits. */
#include "base/rng.h"
#include "exec/plan_internal.h"

/* The next node of queue q after schedule position i, or schedule.n. */
static int32_t next_of(const ls_plan *p, int q, int32_t i)
{
    while (i < p->schedule.n && (int)p->steps[i].node->op->queue != q) i++;
    return i;
}

static bool is_ready(const ls_plan *p, int32_t i, const int32_t over[LS_QUEUE_N])
{
    if (i == p->schedule.n) return false;
    for (int q = 0; q < LS_QUEUE_N; q++)
        if (p->waits[i][q] > over[q]) return false;
    return true;
}

void lsi_plan_run_drawn(ls_plan *p)
{
    const ls_rng_key key = {(uint32_t)p->dev->draws, (uint32_t)(p->dev->draws >> 32), p->runs++,
                            (uint32_t)lsi_peers_rank(p->peers)};
    int32_t over[LS_QUEUE_N] = {0}, next[LS_QUEUE_N];

    for (int q = 0; q < LS_QUEUE_N; q++) next[q] = next_of(p, q, 0);
    for (int32_t k = 0; k < p->schedule.n; k++) {
        int ready[LS_QUEUE_N], n = 0, q;
        for (q = 0; q < LS_QUEUE_N; q++)
            if (is_ready(p, next[q], over)) ready[n++] = q;
        LS_BUG_IF(n == 0); /* the schedule is one order that does not */
        q = ready[ls_rng_word(&key, 0, 0, (uint64_t)k) % (uint32_t)n];
        lsi_plan_run_node(p, next[q]);
        next[q] = next_of(p, q, next[q] + 1);
        over[q]++;
    }
}
