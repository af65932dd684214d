/* layout.c: gives every value a layout and inserts reorders where producer and reader disagree.
 *
 * Needs: nodes as the device will run them (fuse).  Leaves: the layout of every value, and `reorder` nodes.
 *
 * Nodes are visited in an order in which inputs come first; the backend says, node by node, what it would
 * like given what is there.  A reorder is made once per value and layout.  Variables, inputs and fetched
 * values stay plain, since the world outside sees them. */
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct reorders {
    ls_graph *g;
    int32_t n_values, n_nodes; /* of the graph as it came: behind it there are only reorders */
} reorders;

/* The value in layout `to`; `reader` is the node that asks for it. */
static int32_t in_layout(reorders *r, int32_t value, const ls_layout *to, const ls_node *reader)
{
    ls_graph *g = r->g;
    const ls_vinfo *v = g->values[value];
    const ls_value in = {g, value};
    ls_value out;
    ls_node *n;

    if (v->layout == to) return value;
    LS_BUG_IF(!ls_layout_allowed(to, v->dtype, v->shape));
    for (int32_t i = r->n_nodes; i < g->n_nodes; i++)
        if (g->nodes[i]->in[0] == value && g->values[g->nodes[i]->out[0]]->layout == to)
            return g->nodes[i]->out[0];
    g->here = reader->src;
    g->scope = reader->scope;
    out = ls_graph_add(g, &ls_op_reorder, 1, &in, &(ls_reorder_attr){v->layout, to});
    if (!ls_value_ok(out)) return value;
    n = g->nodes[g->values[out.id]->node];
    ls_graph_stand_for(n, reader);
    n->backward = reader->backward;
    g->values[out.id]->layout = to;
    return out.id;
}

/* What a view and what it shows have in common, and the versions of a variable, is memory. */
static bool keeps_memory(const ls_graph *g, const ls_node *n, int k, const ls_layout *in,
                         const ls_layout *out)
{
    const ls_vinfo *v = g->values[n->out[k]];

    if (v->var >= 0) return out == &ls_layout_plain;
    if (!(n->op->flags & LS_OP_VIEW)) return true;
    return in == out && (out == &ls_layout_plain || ls_shape_equal(v->shape, *ls_node_in_shape(g, n, 0)));
}

static void visit(reorders *r, ls_node *n, ls_layout_rule rule, const ls_device *dev)
{
    ls_graph *g = r->g;
    size_t total = (size_t)n->n_in * 2 + (size_t)n->n_out + 1;
    const ls_layout **have = ls_arena_alloc(g->arena, sizeof *have * total);
    const ls_layout **in = have + n->n_in, **out = in + n->n_in;

    if (have == NULL) {
        ls_graph_fail(g, LS_NOMEM, "layout pass: no memory");
        return;
    }
    for (int k = 0; k < n->n_in; k++) have[k] = g->values[n->in[k]]->layout;
    for (int k = 0; k < n->n_in; k++) in[k] = &ls_layout_plain;
    for (int k = 0; k < n->n_out; k++) out[k] = &ls_layout_plain;
    if (!(n->op->flags & LS_OP_COLLECTIVE)) rule(dev, g, n, have, in, out); /* ranks exchange plain tensors */
    for (int k = 0; k < n->n_in; k++) n->in[k] = in_layout(r, n->in[k], in[k], n);
    for (int k = 0; k < n->n_out; k++) {
        LS_BUG_IF(!keeps_memory(g, n, k, n->n_in > 0 ? in[0] : NULL, out[k]));
        LS_BUG_IF(!ls_layout_allowed(out[k], g->values[n->out[k]]->dtype, g->values[n->out[k]]->shape));
        g->values[n->out[k]]->layout = out[k];
    }
}

/* Fetched values are read by the host: give it a plain copy under the same name. */
static void plain_fetches(reorders *r)
{
    ls_graph *g = r->g;

    for (int32_t i = 0; i < r->n_values; i++) {
        ls_vinfo *v = g->values[i];
        int32_t copy;
        if (!v->fetch || v->layout == &ls_layout_plain) continue;
        copy = in_layout(r, i, &ls_layout_plain, g->nodes[v->node]);
        if (copy == i) return;
        g->values[copy]->fetch = true;
        g->values[copy]->name = v->name;
        v->fetch = false;
    }
}

void ls_pass_layout(ls_graph *g, ls_layout_rule rule, const ls_device *dev)
{
    reorders r = {g, g->n_values, g->n_nodes};
    ls_schedule s = {0};
    ls_err err = {0};

    if (rule == NULL || g->err.status != LS_OK) return;
    /* Fused nodes may stand behind their readers in the list; a schedule visits producers first. */
    if (ls_pass_topological(g, &s, &err) != LS_OK) {
        ls_graph_fail(g, err.status, "%s", err.text);
        return;
    }
    for (int32_t i = 0; i < s.n && g->err.status == LS_OK; i++) visit(&r, g->nodes[s.order[i]], rule, dev);
    if (g->err.status == LS_OK) plain_fetches(&r);
    ls_schedule_release(&s);
}
