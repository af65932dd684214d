/* check_collectives.c: proves that what ranks start together they also end, one after the other in each
 * bucket, that they start and wait in one order, and that nobody takes a piece of a variable for the whole.
 */
#include "ops/ops.h"
#include "passes/check_internal.h"

static bool is(const ls_node *n, ls_coll_op what)
{
    return !n->dead && (n->op->flags & LS_OP_COLLECTIVE) && n->op->coll_op == what;
}

static const ls_collective_attr *attr_of(const ls_node *n)
{
    return n->attr;
}

static ls_status refuse(const ls_graph *g, const ls_node *a, const ls_node *b, const char *what, ls_err *err)
{
    char first[LSI_NODE_NAME], second[LSI_NODE_NAME] = "";

    return ls_fail(err, LS_INVALID, "plan check: %s%s%s: %s", lsi_node_name(g, a->id, first),
                   b != NULL ? " and " : "", b != NULL ? lsi_node_name(g, b->id, second) : "", what);
}

static bool same_bucket(const ls_node *a, const ls_node *b)
{
    return a->op->collective == b->op->collective && attr_of(a)->bucket == attr_of(b)->bucket &&
           attr_of(a)->group == attr_of(b)->group;
}

/* The node that waits for what `start` has begun, or NULL; that of a carried one stands earlier, and finds it
 * by the bucket. */
static const ls_node *wait_of(const ls_graph *g, const ls_node *start)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!is(n, LS_COLL_OP_WAIT)) continue;
        if (attr_of(start)->carried ? attr_of(n)->carried && same_bucket(start, n)
                                    : g->values[n->in[0]]->node == start->id)
            return n;
    }
    return NULL;
}

/* A run waits for what the run before has started before it starts the same itself. */
static ls_status prove_carried(const ls_graph *g, const lsi_relation *r, const ls_node *start, ls_err *err)
{
    const ls_node *wait = wait_of(g, start);

    for (int k = 0; k < wait->n_out; k++)
        if (ls_shape_count(g->values[start->in[1 + k]]->shape) !=
            ls_shape_count(g->values[wait->out[k]]->shape))
            return refuse(g, start, wait, "what the next run waits for has other tensors", err);
    if (!lsi_before(r, wait->id, start->id))
        return refuse(g, wait, start, "no edge puts the end of the run before's exchange first", err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        for (int k = 0; !n->dead && k < n->n_in; k++)
            if (g->values[ls_graph_storage(g, n->in[k])]->node == wait->id && !lsi_before(r, i, start->id))
                return refuse(g, n, start, "no edge keeps what came until it is read", err);
    }
    return LS_OK;
}

/* Carried nodes run without the others, and the others without them: they read each other's variables, and
 * nothing else of what they make. */
static ls_status prove_apart(const ls_graph *g, const ls_node *n, ls_err *err)
{
    for (int k = 0; k < n->n_in; k++) {
        const ls_vinfo *v = g->values[ls_graph_storage(g, n->in[k])];
        if (v->node < 0 || g->nodes[v->node]->carried == n->carried || (!n->carried && v->var >= 0)) continue;
        return refuse(g, g->nodes[v->node], n,
                      n->carried ? "a carried node reads what is not there when it runs alone"
                                 : "a node reads what is not there when nothing was carried",
                      err);
    }
    return LS_OK;
}

/* Start and wait name the same tensors: they stay where they are until they have arrived. */
static ls_status prove_pair(const ls_graph *g, const ls_node *start, ls_err *err)
{
    const ls_node *wait = wait_of(g, start);
    const int first = wait != NULL ? start->n_in - wait->n_out : 0;

    if (wait == NULL && attr_of(start)->carried)
        return refuse(g, start, NULL, "nothing in the next run waits for what it starts", err);
    if (wait == NULL) return refuse(g, start, NULL, "nobody waits for what it starts", err);
    if (!same_bucket(start, wait) || first < 0 || first > 1)
        return refuse(g, start, wait, "one waits for another collective than was started", err);
    for (int k = 0; k < wait->n_out && !attr_of(start)->carried; k++)
        if (wait->in[1 + k] != start->in[first + k])
            return refuse(g, start, wait, "a tensor that is on its way is not held until it has arrived",
                          err);
    return LS_OK;
}

static ls_status prove_order(const ls_graph *g, const lsi_relation *r, const ls_node *a, const ls_node *b,
                             ls_err *err)
{
    if (a == b || !same_bucket(a, b) || !is(b, LS_COLL_OP_START)) return LS_OK;
    if (is(a, LS_COLL_OP_LEAF) && !lsi_before(r, a->id, b->id))
        return refuse(g, a, b, "no edge puts the leaf before the start of its sum", err);
    if (is(a, LS_COLL_OP_START) && !lsi_before(r, wait_of(g, a)->id, b->id) &&
        !lsi_before(r, wait_of(g, b)->id, a->id))
        return refuse(g, a, b, "both work in one bucket, and no edge puts the end of one before the other",
                      err);
    return LS_OK;
}

/* Whether it makes 16 bits of a piece that are gathered, and nothing else. */
static bool narrows_piece(const ls_graph *g, const ls_node *cast)
{
    if (cast->op != &ls_op_cast) return false;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] == cast->out[0] && g->nodes[i]->op->collective != LS_COLL_ALL_GATHER &&
                g->nodes[i]->op != &ls_op_to_host)
                return false;
    return true;
}

/* Of a sharded variable every rank has a piece: who needs it all gathers it; updates work on pieces. */
static ls_status prove_pieces(const ls_graph *g, const ls_node *n, ls_err *err)
{
    for (int k = 0; k < n->n_in; k++) {
        const int32_t var = g->values[ls_graph_storage(g, n->in[k])]->var;
        if (var < 0 || g->vars[var]->home != LS_HOME_SHARDED) continue;
        if (n->op->collective == LS_COLL_ALL_GATHER || (n->op->flags & (LS_OP_UPDATE | LS_OP_VIEW)) ||
            n->op == &ls_op_copy || n->op == &ls_op_to_host || narrows_piece(g, n))
            continue;
        return refuse(g, n, NULL, "it reads a piece of a sharded variable that nobody has gathered", err);
    }
    return LS_OK;
}

/* Whether ranks wait for one another there. */
static bool holds_up(const ls_node *n)
{
    return is(n, LS_COLL_OP_WAIT) || is(n, LS_COLL_OP_WHOLE);
}

/* Of two that ranks start, or of two at which they wait for one another, edges say which comes first. */
static ls_status prove_turns(const ls_graph *g, const lsi_relation *r, const ls_node *a, ls_err *err)
{
    const bool starts = is(a, LS_COLL_OP_START);

    for (int32_t i = 0; i < a->id; i++) {
        const ls_node *b = g->nodes[i];
        if (starts ? !is(b, LS_COLL_OP_START) : !holds_up(b)) continue;
        if (!lsi_before(r, b->id, a->id) && !lsi_before(r, a->id, b->id))
            return refuse(g, b, a,
                          starts ? "no edge says which of the two ranks start first"
                                 : "no edge says at which of the two ranks wait first",
                          err);
    }
    return LS_OK;
}

ls_status ls_check_collectives(const ls_graph *g, ls_err *err)
{
    lsi_relation r = {0};
    ls_status st = LS_OK;
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *node = g->nodes[i];
        if (node->dead) continue;
        LS_TRY(prove_pieces(g, node, err));
        LS_TRY(prove_apart(g, node, err));
        if (is(node, LS_COLL_OP_START)) LS_TRY(prove_pair(g, node, err));
        n += (node->op->flags & LS_OP_COLLECTIVE) != 0;
    }
    if (n > 1) LS_TRY(lsi_relation_make(&r, g, NULL, err));
    for (int32_t i = 0; n > 1 && i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->n_nodes; k++)
            if (is(g->nodes[i], LS_COLL_OP_START) || is(g->nodes[i], LS_COLL_OP_LEAF))
                LS_TRY(prove_order(g, &r, g->nodes[i], g->nodes[k], err));
    for (int32_t i = 0; n > 1 && i < g->n_nodes; i++)
        if (is(g->nodes[i], LS_COLL_OP_START) && attr_of(g->nodes[i])->carried)
            LS_TRY(prove_carried(g, &r, g->nodes[i], err));
    for (int32_t i = 0; n > 1 && i < g->n_nodes; i++)
        if (is(g->nodes[i], LS_COLL_OP_START) || holds_up(g->nodes[i]))
            LS_TRY(prove_turns(g, &r, g->nodes[i], err));
out:
    lsi_relation_release(&r);
    return st;
}
