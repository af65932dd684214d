/* waits.c: what a node of one queue waits for in the others.
 *
 * Needs: the order and all edges.  Leaves: numbers beside the graph.  For devices whose queues run side by
 * side (exec/queued.c); it changes nothing, and is not in the list. */
#include "passes/passes.h"

#include <string.h>

/* Takes over what `from` says that `to` has not yet. */
static void join(int32_t to[LS_QUEUE_N], const int32_t from[LS_QUEUE_N])
{
    for (int q = 0; q < LS_QUEUE_N; q++)
        if (from[q] > to[q]) to[q] = from[q];
}

typedef struct finder {
    const ls_graph *g;
    int32_t *place;               /* per node: its place in its queue, from 1; 0: in none, as a view is */
    int32_t (*after)[LS_QUEUE_N]; /* per node, views included */
} finder;

/* `node` comes after `earlier`: after its place, or where it has none after what it comes after itself. */
static void come_after(finder *f, int32_t node, int32_t earlier)
{
    int32_t alone[LS_QUEUE_N] = {0};

    if (earlier < 0 || f->g->nodes[earlier]->dead) return;
    alone[f->g->nodes[earlier]->queue] = f->place[earlier];
    join(f->after[node], f->place[earlier] > 0 ? alone : f->after[earlier]);
}

static void follow_edges(finder *f, const ls_schedule *all)
{
    const ls_graph *g = f->g;

    for (int32_t i = 0; i < all->n; i++) {
        const int32_t node = all->order[i];
        for (int k = 0; k < g->nodes[node]->n_in; k++)
            come_after(f, node, g->values[g->nodes[node]->in[k]]->node);
        for (int32_t e = 0; e < g->n_edges; e++)
            if (g->edges[e].to == node) come_after(f, node, g->edges[e].from);
    }
}

ls_status ls_pass_waits(const ls_graph *g, const ls_schedule *s, int32_t (**out)[LS_QUEUE_N], ls_err *err)
{
    int32_t n[LS_QUEUE_N] = {0};
    finder f = {.g = g};
    ls_schedule all = {0};
    ls_status st = LS_OK;

    *out = ls_alloc(LS_MEM_PLAN, sizeof **out * ((size_t)s->n + 1));
    f.place = ls_alloc(LS_MEM_PLAN, sizeof *f.place * ((size_t)g->n_nodes + 1));
    f.after = ls_alloc(LS_MEM_PLAN, sizeof *f.after * ((size_t)g->n_nodes + 1));
    if (*out == NULL || f.place == NULL || f.after == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan: no memory");
        goto out;
    }
    LS_TRY(ls_pass_topological(g, &all, err));
    for (int32_t i = 0; i < s->n; i++) f.place[s->order[i]] = ++n[g->nodes[s->order[i]]->queue];
    follow_edges(&f, &all);
    for (int32_t i = 0; i < s->n; i++) memcpy((*out)[i], f.after[s->order[i]], sizeof **out);
out:
    ls_schedule_release(&all);
    ls_free(f.place);
    ls_free(f.after);
    return st;
}
