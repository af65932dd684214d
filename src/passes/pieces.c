/* pieces.c: updates of variables that the ranks of a machine keep once (decision 13).
 *
 * Needs: optimiser nodes, and the homes that memory was found for.  Leaves: this rank's piece in each of
 * them, two barriers around every such update, and edges to and from these.
 *
 * An update is one optimiser node for every bucket of gradients, chained by the counter t.  Each rank writes
 * a piece of every variable, so between the first node and the last other ranks write too: a barrier before
 * them all, when every rank has read what it needs of the old values, and one after them all, when every rank
 * has written. */
#include "ops/ops.h"
#include "passes/passes.h"

enum { COUNTER = 2 }; /* t among the inputs of an optimiser */

/* The two barriers of the update that a node belongs to; -1: of none. */
typedef struct guards {
    int32_t before, after;
} guards;

static bool is_piece(const ls_graph *g, const ls_node *n)
{
    if (n->dead || !ls_optim_by_element(n->op)) return false;
    for (int k = 0; k < n->n_out; k++) {
        const int32_t var = g->values[n->out[k]]->var;
        if (var >= 0 && g->vars[var]->home == LS_HOME_MACHINE) return true;
    }
    return false;
}

static int32_t add_barrier(ls_graph *g, const ls_node *update, ls_barrier_at at)
{
    ls_value token;

    g->here = update->src;
    g->scope = update->scope;
    token = ls_barrier(g, at);
    if (!ls_value_ok(token)) return -1;
    ls_graph_stand_for(g->nodes[g->values[token.id]->node], update);
    return g->values[token.id]->node;
}

/* Those of the update whose next node n is. */
static guards guards_of(ls_graph *g, const ls_node *n, const guards *all)
{
    if (((const ls_optim_attr *)n->attr)->later) {
        const int32_t earlier = g->values[n->in[COUNTER]]->node;
        if (earlier >= 0 && all[earlier].before >= 0) return all[earlier];
    }
    return (guards){add_barrier(g, n, LS_BARRIER_BEFORE_UPDATE), add_barrier(g, n, LS_BARRIER_AFTER_UPDATE)};
}

void ls_pass_pieces(ls_graph *g, int rank, int ranks)
{
    const int32_t n_nodes = g->n_nodes;
    guards *all = ls_arena_alloc(g->arena, sizeof *all * ((size_t)n_nodes + 1));

    if (all == NULL) ls_graph_fail(g, LS_NOMEM, "pieces pass: no memory");
    for (int32_t i = 0; i < n_nodes && g->err.status == LS_OK; i++) {
        ls_node *n = g->nodes[i];
        all[i] = (guards){-1, -1};
        if (!is_piece(g, n)) continue;
        all[i] = guards_of(g, n, all);
        if (g->err.status != LS_OK) return;
        ((ls_optim_attr *)n->attr)->piece = rank;
        ((ls_optim_attr *)n->attr)->pieces = ranks;
        ls_graph_order(g, all[i].before, i, LS_EDGE_BARRIER);
        ls_graph_order(g, i, all[i].after, LS_EDGE_BARRIER);
    }
}
