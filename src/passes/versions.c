/* versions.c: keeps updates in place and still right.
 *
 * Needs: all nodes but copies, and the barriers of pieces.c.  Leaves: copies of old versions, and edges of
 * the kinds overwrite and commit.
 *
 * An update op writes version k+1 of a variable over version k.  Readers of version k come before it: an edge
 * says so.  A reader that depends on the update can only come after it, so it gets a copy.  Where ranks write
 * pieces of the variable (pieces.c), "before" is before the barrier that lets them begin, and readers of
 * version k+1 come after the barrier that ends it. */
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct versions {
    ls_graph *g;
    int32_t n_nodes;                /* of the graph as it came; copies come behind */
    int32_t *begin, *end;           /* per node: the barriers around its update, or the node itself */
    bool *node_after, *value_after; /* what depends on the update at hand ... */
    int32_t n_marked;               /* ... of the first so many nodes; copies made since do not */
} versions;

/* -- the barriers of updates ------------------------------------------------------------------------------
 */

static bool is_barrier(const ls_graph *g, int32_t node)
{
    return g->nodes[node]->op == &ls_op_barrier;
}

static bool find_barriers(versions *v)
{
    const ls_graph *g = v->g;

    v->begin = ls_arena_alloc(g->arena, sizeof *v->begin * ((size_t)v->n_nodes + 1));
    v->end = ls_arena_alloc(g->arena, sizeof *v->end * ((size_t)v->n_nodes + 1));
    if (v->begin == NULL || v->end == NULL) return false;
    for (int32_t i = 0; i < v->n_nodes; i++) v->begin[i] = v->end[i] = i;
    for (int32_t i = 0; i < g->n_edges; i++) {
        const ls_edge *e = &g->edges[i];
        if (e->kind != LS_EDGE_BARRIER) continue;
        if (is_barrier(g, e->from)) v->begin[e->to] = e->from;
        if (is_barrier(g, e->to)) v->end[e->from] = e->to;
    }
    return true;
}

/* Whether other ranks write the variable, too. */
static bool is_common(const ls_graph *g, int32_t value)
{
    const int32_t var = g->values[value]->var;

    return var >= 0 && g->vars[var]->home == LS_HOME_MACHINE;
}

/* Readers of new versions that several ranks write come after the writing. */
static void commit(versions *v)
{
    ls_graph *g = v->g;

    for (int32_t i = 0; i < v->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead) continue;
        for (int k = 0; k < n->n_in; k++) {
            const int32_t producer = g->values[n->in[k]]->node;
            if (producer < 0 || v->end[producer] == producer || v->end[i] == v->end[producer]) continue;
            if (is_common(g, n->in[k])) ls_graph_order(g, v->end[producer], i, LS_EDGE_COMMIT);
        }
    }
}

/* -- what depends on an update ----------------------------------------------------------------------------
 */

static bool reaches(const versions *v, const ls_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (v->value_after[n->in[k]]) return true;
    return false;
}

static bool mark(versions *v, int32_t node)
{
    const ls_node *n = v->g->nodes[node];

    if (n->dead || v->node_after[node]) return false;
    v->node_after[node] = true;
    for (int k = 0; k < n->n_out; k++) v->value_after[n->out[k]] = true;
    return true;
}

/* Marks every node that comes after `start` (itself included), by value or by control. */
static bool mark_descendants(versions *v, int32_t start)
{
    const ls_graph *g = v->g;
    bool changed = true;

    v->node_after = ls_arena_alloc(g->arena, (size_t)g->n_nodes + 1);
    v->value_after = ls_arena_alloc(g->arena, (size_t)g->n_values + 1);
    if (v->node_after == NULL || v->value_after == NULL) return false;
    v->n_marked = g->n_nodes;
    mark(v, start);
    /* Nodes are nearly in topological order, so a few sweeps reach the fixed point. */
    while (changed) {
        changed = false;
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (!v->node_after[i] && reaches(v, g->nodes[i])) changed = mark(v, i) || changed;
        for (int32_t i = 0; i < g->n_edges; i++)
            if (v->node_after[g->edges[i].from]) changed = mark(v, g->edges[i].to) || changed;
    }
    return true;
}

/* -- readers of an old version ----------------------------------------------------------------------------
 */

/* A copy of `value`: as a reader of the old version, it comes before the update. */
static ls_value copy_of(ls_graph *g, int32_t value)
{
    const ls_value copy = ls_copy((ls_value){g, value});

    if (ls_value_ok(copy)) g->values[copy.id]->layout = g->values[value]->layout;
    return copy;
}

/* Redirects the readers of `value` that come after the update, the host among them, to one copy. */
static void redirect(versions *v, int32_t update, int32_t value)
{
    ls_graph *g = v->g;
    ls_value copy = {g, -1};
    ls_vinfo *info = g->values[value];

    if (info->fetch) {
        copy = copy_of(g, value);
        if (!ls_value_ok(copy)) return;
        g->values[copy.id]->fetch = true;
        g->values[copy.id]->name = info->name;
        info->fetch = false;
    }
    for (int32_t i = 0; i < v->n_marked; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead || i == update || !v->node_after[i]) continue;
        for (int k = 0; k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            if (!ls_value_ok(copy)) copy = copy_of(g, value);
            if (!ls_value_ok(copy)) return;
            n->in[k] = copy.id;
        }
    }
}

/* Whoever still reads `value`, or a view of it, does so before `first`.  A view that is made before the
 * update but read after it would see the new bytes: what reads it then gets a copy, too. */
static void protect_value(versions *v, int32_t update, int32_t first, int32_t value)
{
    ls_graph *g = v->g;
    int32_t n_nodes;

    redirect(v, update, value);
    n_nodes = g->n_nodes;
    for (int32_t i = 0; i < n_nodes && g->err.status == LS_OK; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || i == update || (i < v->n_marked && v->node_after[i])) continue;
        for (int k = 0; k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            ls_graph_order(g, i, first, LS_EDGE_OVERWRITE);
            if (n->op->flags & LS_OP_VIEW) protect_value(v, update, first, n->out[0]);
        }
    }
}

/* Two updates of one version would each have to come before the other. */
static void check_single_update(ls_graph *g, int32_t update, int32_t value)
{
    for (int32_t i = 0; i < update; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || !(n->op->flags & LS_OP_UPDATE)) continue;
        for (int k = 0; k < n->n_out; k++) {
            int in = n->op->alias(n->n_in, n->attr, k);
            if (in < 0 || n->in[in] != value) continue;
            g->here = g->nodes[update]->src;
            g->scope = g->nodes[update]->scope;
            ls_graph_fail(g, LS_INVALID,
                          "op %s updates variable \"%s\" from a version that %s has updated already",
                          g->nodes[update]->op->name, g->values[value]->name, n->op->name);
        }
    }
}

static void protect(versions *v, int32_t i)
{
    ls_graph *g = v->g;
    const ls_node *n = g->nodes[i];

    if (!mark_descendants(v, v->begin[i])) {
        ls_graph_fail(g, LS_NOMEM, "version pass: no memory");
        return;
    }
    for (int k = 0; k < n->n_out && g->err.status == LS_OK; k++) {
        int in = n->op->alias(n->n_in, n->attr, k);
        if (in < 0) continue;
        check_single_update(g, i, n->in[in]);
        protect_value(v, i, is_common(g, n->in[in]) ? v->begin[i] : i, n->in[in]);
    }
}

void ls_pass_versions(ls_graph *g)
{
    versions v = {.g = g, .n_nodes = g->n_nodes};

    if (g->err.status != LS_OK) return;
    if (!find_barriers(&v)) {
        ls_graph_fail(g, LS_NOMEM, "version pass: no memory");
        return;
    }
    commit(&v);
    for (int32_t i = 0; i < v.n_nodes && g->err.status == LS_OK; i++)
        if (!g->nodes[i]->dead && (g->nodes[i]->op->flags & LS_OP_UPDATE)) protect(&v, i);
}
