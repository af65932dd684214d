/* hold.c: edges to nodes that wait for a value which they do not read.
 *
 * Needs: nodes as they will run (ls_node.after: recompute).  Leaves: edges of the kind hold.
 *
 * Passes that rewrite cannot carry edges, a value they can: so who makes a node that must not begin early
 * notes what it waits for, and the edge is made here, when nobody rewrites any more.  What waits for nothing
 * that is computed (a value of a node that is dead, an input) simply runs. */
#include "passes/passes.h"

void ls_pass_hold(ls_graph *g)
{
    for (int32_t i = 0; i < g->n_nodes && g->err.status == LS_OK; i++) {
        const ls_node *n = g->nodes[i];
        int32_t maker;
        /* A view does nothing; those who read it wait themselves. */
        if (n->dead || n->after < 0 || (n->op->flags & LS_OP_VIEW)) continue;
        maker = g->values[ls_graph_storage(g, n->after)]->node;
        if (maker >= 0 && !g->nodes[maker]->dead) ls_graph_order(g, maker, i, LS_EDGE_HOLD);
    }
}
