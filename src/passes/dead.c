/* dead.c: removes what nobody needs.
 *
 * Needs: a graph.  Leaves: `dead` set on every node that no fetch, no newest version of a variable and no
 * effect needs.  Passes append nodes out of order, so this walks backwards from the results rather than down
 * the list.
 */
#include "passes/passes.h"

typedef struct walk {
    ls_graph *g;
    bool *needed;   /* per node */
    int32_t *stack; /* nodes whose inputs are still to be visited */
    int32_t n;
} walk;

static void need(walk *w, int32_t value)
{
    int32_t node = w->g->values[value]->node;

    if (node < 0 || w->needed[node]) return;
    w->needed[node] = true;
    w->stack[w->n++] = node;
}

void ls_pass_dead(ls_graph *g)
{
    walk w = {g, NULL, NULL, 0};

    w.needed = ls_arena_alloc(g->arena, (size_t)g->n_nodes + 1);
    w.stack = ls_arena_alloc(g->arena, sizeof *w.stack * ((size_t)g->n_nodes + 1));
    if (w.needed == NULL || w.stack == NULL) {
        ls_graph_fail(g, LS_NOMEM, "dead code pass: no memory");
        return;
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->fetch) need(&w, i);
    for (int32_t i = 0; i < g->n_vars; i++) need(&w, g->vars[i]->current);
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (((g->nodes[i]->op->flags & LS_OP_EFFECT) || g->nodes[i]->kept) && !g->nodes[i]->dead)
            need(&w, g->nodes[i]->out[0]);
    while (w.n > 0) {
        const ls_node *n = g->nodes[w.stack[--w.n]];
        for (int k = 0; k < n->n_in; k++) need(&w, n->in[k]);
    }
    for (int32_t i = 0; i < g->n_nodes; i++) g->nodes[i]->dead = !w.needed[i];
}
