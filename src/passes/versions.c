/* versions.c: keeps updates in place and still right.
 *
 * An update op writes version k+1 of a variable over version k.  Readers of version k that run before it are
 * fine (the schedule sees to that); a reader that depends on the update can only run after it, so it gets a
 * copy. */
#include "ops/ops.h"
#include "passes/passes.h"

/* Which nodes depend on an update.  Nodes from n on are copies made since; they never do. */
typedef struct descendants {
    bool *node;
    int32_t n;
} descendants;

/* Marks in `after` every node that depends on `start` (itself included). */
static void mark_descendants(const ls_graph *g, int32_t start, bool *after, bool *value_after)
{
    bool changed = true;

    for (int32_t i = 0; i < g->n_values; i++) value_after[i] = false;
    for (int32_t i = 0; i < g->n_nodes; i++) after[i] = i == start;
    for (int k = 0; k < g->nodes[start]->n_out; k++) value_after[g->nodes[start]->out[k]] = true;
    /* Nodes are nearly in topological order, so one or two sweeps reach the fixed point. */
    while (changed) {
        changed = false;
        for (int32_t i = 0; i < g->n_nodes; i++) {
            const ls_node *n = g->nodes[i];
            bool hit = false;
            if (n->dead || after[i]) continue;
            for (int k = 0; k < n->n_in; k++) hit = hit || value_after[n->in[k]];
            if (!hit) continue;
            after[i] = changed = true;
            for (int k = 0; k < n->n_out; k++) value_after[n->out[k]] = true;
        }
    }
}

/* A copy of `value` that is taken before `update` overwrites it. */
static ls_value copy_before(ls_graph *g, const ls_node *update, int32_t value)
{
    ls_value copy = ls_copy((ls_value){g, value});

    if (!ls_value_ok(copy)) return copy;
    g->nodes[g->values[copy.id]->node]->order = update->order - 1;
    g->values[copy.id]->layout = g->values[value]->layout;
    return copy;
}

/* Redirects the readers of `value` that run after `update`, the host among them, to one copy. */
static void protect_readers(ls_graph *g, const ls_node *update, int32_t value, const descendants *after)
{
    ls_value copy = {g, -1};
    ls_vinfo *v = g->values[value];

    if (v->fetch) {
        copy = copy_before(g, update, value);
        if (!ls_value_ok(copy)) return;
        g->values[copy.id]->fetch = true;
        g->values[copy.id]->name = v->name;
        v->fetch = false;
    }
    for (int32_t i = 0; i < after->n; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead || n == update || !after->node[i]) continue;
        for (int k = 0; k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            if (!ls_value_ok(copy)) copy = copy_before(g, update, value);
            if (!ls_value_ok(copy)) return;
            n->in[k] = copy.id;
        }
    }
}

/* A view that is made before the update but read after it would see the new bytes: a copy breaks the tie. */
static void protect_views(ls_graph *g, const ls_node *update, int32_t value, const descendants *after)
{
    protect_readers(g, update, value, after);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!n->dead && (n->op->flags & LS_OP_VIEW) && n->in[0] == value && n != update)
            protect_views(g, update, n->out[0], after);
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

void ls_pass_versions(ls_graph *g)
{
    int32_t n_nodes = g->n_nodes;

    for (int32_t i = 0; i < n_nodes && g->err.status == LS_OK; i++) {
        const ls_node *n = g->nodes[i];
        descendants after;
        bool *value_after;
        if (n->dead || !(n->op->flags & LS_OP_UPDATE)) continue;
        after = (descendants){ls_arena_alloc(g->arena, (size_t)g->n_nodes), g->n_nodes};
        value_after = ls_arena_alloc(g->arena, (size_t)g->n_values);
        if (after.node == NULL || value_after == NULL) {
            ls_graph_fail(g, LS_NOMEM, "version pass: no memory");
            return;
        }
        mark_descendants(g, i, after.node, value_after);
        for (int k = 0; k < n->n_out; k++) {
            int in = n->op->alias(n->n_in, n->attr, k);
            if (in < 0) continue;
            check_single_update(g, i, n->in[in]);
            protect_views(g, n, n->in[in], &after);
        }
    }
}
