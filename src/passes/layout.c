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
    int32_t *made[LS_LAYOUT_N]; /* per value: its copy in that layout, or -1 */
    int32_t cap;
} reorders;

/* The value in layout `to`; `reader` is the node that asks for it. */
static int32_t in_layout(reorders *r, int32_t value, ls_layout to, const ls_node *reader)
{
    ls_graph *g = r->g;
    ls_vinfo *v = g->values[value];
    ls_reorder_attr a = {v->layout, to};
    ls_value in = {g, value}, out;
    ls_node *n;

    if (v->layout == to) return value;
    LS_BUG_IF(!ls_layout_allowed(to, v->dtype, v->shape));
    if (value < r->cap && r->made[to][value] >= 0) return r->made[to][value];
    g->here = reader->src;
    g->scope = reader->scope;
    out = ls_graph_add(g, &ls_op_reorder, 1, &in, &a);
    if (!ls_value_ok(out)) return value;
    n = g->nodes[g->values[out.id]->node];
    ls_graph_stand_for(n, reader);
    n->backward = reader->backward;
    g->values[out.id]->layout = to;
    if (value < r->cap) r->made[to][value] = out.id;
    return out.id;
}

static void visit(reorders *r, ls_node *n, ls_layout_query query, const void *ctx)
{
    ls_graph *g = r->g;
    size_t total = (size_t)n->n_in * 2 + (size_t)n->n_out + 1;
    ls_layout *have = ls_arena_alloc(g->arena, sizeof *have * total);
    ls_layout *in = have + n->n_in, *out = in + n->n_in;

    if (have == NULL) {
        ls_graph_fail(g, LS_NOMEM, "layout pass: no memory");
        return;
    }
    for (int k = 0; k < n->n_in; k++) have[k] = g->values[n->in[k]]->layout;
    query(ctx, g, n, have, in, out);
    for (int k = 0; k < n->n_in; k++) n->in[k] = in_layout(r, n->in[k], in[k], n);
    for (int k = 0; k < n->n_out; k++) g->values[n->out[k]]->layout = out[k];
}

/* Fetched values are read by the host: give it a plain copy under the same name. */
static void plain_fetches(reorders *r)
{
    ls_graph *g = r->g;
    int32_t n = r->cap;

    for (int32_t i = 0; i < n; i++) {
        ls_vinfo *v = g->values[i];
        int32_t copy;
        if (!v->fetch || v->layout == LS_LAYOUT_PLAIN) continue;
        copy = in_layout(r, i, LS_LAYOUT_PLAIN, g->nodes[v->node]);
        if (copy == i) return;
        g->values[copy]->fetch = true;
        g->values[copy]->name = v->name;
        v->fetch = false;
    }
}

void ls_pass_layout(ls_graph *g, ls_layout_query query, const void *ctx)
{
    reorders r = {.g = g, .cap = g->n_values};
    ls_schedule s = {0};
    ls_err err = {0};

    if (g->err.status != LS_OK) return;
    for (int l = 0; l < LS_LAYOUT_N; l++) {
        r.made[l] = ls_arena_alloc(g->arena, sizeof **r.made * ((size_t)r.cap + 1));
        if (r.made[l] == NULL) {
            ls_graph_fail(g, LS_NOMEM, "layout pass: no memory");
            return;
        }
        for (int32_t i = 0; i < r.cap; i++) r.made[l][i] = -1;
    }
    /* Fused nodes may stand behind their readers in the list; a schedule visits producers first. */
    if (ls_pass_topological(g, &s, &err) != LS_OK) {
        ls_graph_fail(g, err.status, "%s", err.text);
        return;
    }
    for (int32_t i = 0; i < s.n && g->err.status == LS_OK; i++) visit(&r, g->nodes[s.order[i]], query, ctx);
    if (g->err.status == LS_OK) plain_fetches(&r);
    ls_schedule_release(&s);
}
