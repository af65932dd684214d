/* versions.c: keeps updates in place and still right.
 *
 * An update op writes version k+1 of a variable over version k.  Readers of version k that run before it are
 * fine (the schedule sees to that); a reader that depends on the update can only run after it, so it gets a
 * copy.  Where several nodes are one update (updates.h), "before" is before the first of them. */
#include "ops/ops.h"
#include "passes/passes.h"
#include "passes/updates.h"

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

/* A node that overwrites variables, and the first of those that make the update together with it. */
typedef struct overwriting {
    const ls_node *node, *first;
} overwriting;

/* A copy of `value` that is taken before the update overwrites it. */
static ls_value copy_before(ls_graph *g, const overwriting *update, int32_t value)
{
    ls_value copy = ls_copy((ls_value){g, value});

    if (!ls_value_ok(copy)) return copy;
    g->nodes[g->values[copy.id]->node]->order = update->first->order - 1;
    g->values[copy.id]->layout = g->values[value]->layout;
    return copy;
}

/* Redirects the readers of `value` that run after `update`, the host among them, to one copy. */
static void protect_readers(ls_graph *g, const overwriting *update, int32_t value, const descendants *after)
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
        if (n->dead || n == update->node || !after->node[i]) continue;
        for (int k = 0; k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            if (!ls_value_ok(copy)) copy = copy_before(g, update, value);
            if (!ls_value_ok(copy)) return;
            n->in[k] = copy.id;
        }
    }
}

/* A view that is made before the update but read after it would see the new bytes: a copy breaks the tie. */
static void protect_views(ls_graph *g, const overwriting *update, int32_t value, const descendants *after)
{
    protect_readers(g, update, value, after);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!n->dead && (n->op->flags & LS_OP_VIEW) && n->in[0] == value && n != update->node)
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

static void protect(ls_graph *g, const lsi_updates *updates, int32_t i)
{
    const ls_node *n = g->nodes[i];
    const overwriting whole = {n, g->nodes[updates->first[i]]}, alone = {n, n};
    descendants after = {ls_arena_alloc(g->arena, (size_t)g->n_nodes), g->n_nodes};
    bool *value_after = ls_arena_alloc(g->arena, (size_t)g->n_values);

    if (after.node == NULL || value_after == NULL) {
        ls_graph_fail(g, LS_NOMEM, "version pass: no memory");
        return;
    }
    mark_descendants(g, updates->first[i], after.node, value_after);
    for (int k = 0; k < n->n_out; k++) {
        int in = n->op->alias(n->n_in, n->attr, k);
        if (in < 0) continue;
        check_single_update(g, i, n->in[in]);
        /* The counter, which the update's nodes hand on, is each rank's own. */
        protect_views(g, lsi_update_hands_on(g, updates, i, n->in[in]) ? &alone : &whole, n->in[in], &after);
    }
}

void ls_pass_versions(ls_graph *g)
{
    const int32_t n_nodes = g->n_nodes;
    lsi_updates updates;

    if (!lsi_updates_find(g, &updates)) {
        ls_graph_fail(g, LS_NOMEM, "version pass: no memory");
        return;
    }
    for (int32_t i = 0; i < n_nodes && g->err.status == LS_OK; i++)
        if (!g->nodes[i]->dead && (g->nodes[i]->op->flags & LS_OP_UPDATE)) protect(g, &updates, i);
}
