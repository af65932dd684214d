/* updates.c: which optimiser nodes are one update of shared variables. */
#include "passes/updates.h"

#include "ops/ops.h"

enum { COUNTER = 2 }; /* t among the inputs of an optimiser */

static bool updates_shared(const ls_graph *g, const ls_node *n)
{
    for (int k = 0; k < n->n_out; k++) {
        const int32_t var = g->values[n->out[k]]->var;
        if (var >= 0 && g->vars[var]->shared) return true;
    }
    return false;
}

/* The node before it in the same update, or -1. */
static int32_t node_before(const ls_graph *g, const ls_node *n)
{
    if (n->dead || !ls_optim_by_element(n->op) || !updates_shared(g, n)) return -1;
    return ((const ls_optim_attr *)n->attr)->later ? g->values[n->in[COUNTER]]->node : -1;
}

bool lsi_updates_find(const ls_graph *g, lsi_updates *out)
{
    const size_t n = (size_t)g->n_nodes + 1;

    out->n = g->n_nodes;
    out->first = ls_arena_alloc(g->arena, sizeof *out->first * n);
    out->last = ls_arena_alloc(g->arena, sizeof *out->last * n);
    if (out->first == NULL || out->last == NULL) return false;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const int32_t before = node_before(g, g->nodes[i]);
        out->first[i] = before >= 0 ? out->first[before] : i;
        out->last[out->first[i]] = i;
    }
    for (int32_t i = 0; i < g->n_nodes; i++) out->last[i] = out->last[out->first[i]];
    return true;
}

bool lsi_update_hands_on(const ls_graph *g, const lsi_updates *u, int32_t node, int32_t value)
{
    const int32_t producer = g->values[value]->node;

    return producer >= 0 && producer < u->n && u->first[producer] == u->first[node];
}
