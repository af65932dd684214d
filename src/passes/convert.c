/* convert.c: casts and reorders of parameters and of their gradients, many at once, and of inputs.
 *
 * Needs: layouts.  Leaves: `convert` nodes in the place of casts and reorders.
 *
 * A network of a hundred layers casts and reorders its hundred weights before it uses them, and their
 * gradients before it updates them: each takes a device longer to begin than to do.  So those of parameters
 * that become ready together (as the step begins, or with one update) are one node, and so are those of
 * gradients that one update waits for: none of them becomes later than it was.  An input that is both cast
 * and reordered passes memory once. */
#include "ops/ops.h"
#include "passes/passes.h"

/* One or two nodes in a row, of which the first reads `from` and the last makes `to`. */
typedef struct chain {
    int32_t from, to;
    ls_node *nodes[2];
    int n;
    int32_t key; /* what it is ready with, or who waits for it: chains of one key can be one node */
    bool gradient;
} chain;

typedef struct converter {
    ls_graph *g;
    int32_t *uses;    /* per value */
    ls_node **reader; /* per value: its last */
    chain *chains;
    int n;
} converter;

static bool converts(const ls_node *n)
{
    return n != NULL && !n->dead && n->after < 0 && (n->op == &ls_op_cast || n->op == &ls_op_reorder);
}

static bool is_update(const ls_node *n)
{
    return n != NULL && (n->op->flags & LS_OP_UPDATE) != 0 && n->op != &ls_op_assign;
}

/* Nodes of the kind in a row from `first` on, as long as nobody else reads what lies between them. */
static chain chain_from(const converter *c, ls_node *first)
{
    chain x = {.from = first->in[0], .to = first->out[0], .nodes = {first}, .n = 1};
    ls_node *next = c->reader[x.to];

    if (c->uses[x.to] == 1 && converts(next) && next->op != first->op) {
        x.nodes[x.n++] = next;
        x.to = next->out[0];
    }
    return x;
}

/* Whether it is of a parameter or of a gradient, and with what it goes together. */
static bool belongs(const converter *c, chain *x)
{
    const ls_graph *g = c->g;
    const ls_vinfo *from = g->values[x->from], *to = g->values[x->to];
    const ls_node *maker = from->node >= 0 ? g->nodes[from->node] : NULL, *reader = c->reader[x->to];

    if (!ls_dtype_is_float(from->dtype) || !ls_dtype_is_float(to->dtype) || to->fetch) return false;
    if (ls_shape_count(from->shape) == 0) return false;
    /* Pieces are cast when they are about to be gathered. */
    if (from->var >= 0 && g->vars[from->var]->home == LS_HOME_SHARDED) return false;
    if (from->var >= 0 && (maker == NULL || is_update(maker))) {
        x->key = from->node;
        return true;
    }
    if (from->kind == LS_VALUE_INPUT) {
        x->key = -2 - x->from; /* with no other */
        return x->n == 2;
    }
    x->gradient = true;
    x->key = reader != NULL ? reader->id : -1;
    return c->uses[x->to] == 1 && is_update(reader) && to->var < 0 && from->var < 0;
}

static bool together(const converter *c, const chain *a, const chain *b)
{
    const ls_graph *g = c->g;

    return a->key == b->key && a->gradient == b->gradient &&
           g->values[a->from]->dtype == g->values[b->from]->dtype &&
           g->values[a->to]->dtype == g->values[b->to]->dtype;
}

/* One node for the chains that go with number `first`, if there are several or it saves a node. */
static void merge(converter *c, int first, ls_value *in, int *members)
{
    ls_graph *g = c->g;
    const ls_node *old = c->chains[first].nodes[0];
    int n = 0;
    ls_value out;
    ls_node *node;

    for (int i = first; i < c->n; i++)
        if (c->chains[i].n > 0 && together(c, &c->chains[first], &c->chains[i])) {
            members[n] = i;
            in[n++] = (ls_value){g, c->chains[i].from};
        }
    if (n == 1 && c->chains[first].n == 1) {
        c->chains[first].n = 0;
        return;
    }
    g->here = old->src;
    g->scope = old->scope;
    out = ls_graph_add(g, &ls_op_convert, n, in, &(ls_cast_attr){g->values[c->chains[first].to]->dtype});
    if (!ls_value_ok(out)) return;
    node = g->nodes[g->values[out.id]->node];
    ls_graph_stand_for(node, old);
    node->backward = old->backward;
    for (int k = 0; k < n; k++) {
        chain *x = &c->chains[members[k]];
        g->values[node->out[k]]->layout = g->values[x->to]->layout;
        g->values[node->out[k]]->category = g->values[x->to]->category;
        ls_graph_replace(g, x->to, node->out[k]);
        for (int i = 0; i < x->n; i++) x->nodes[i]->dead = true;
        x->n = 0;
    }
}

static bool look(converter *c)
{
    const ls_graph *g = c->g;
    const size_t values = (size_t)g->n_values + 1, nodes = (size_t)g->n_nodes + 1;

    c->uses = ls_arena_alloc(g->arena, sizeof *c->uses * values);
    c->reader = ls_arena_alloc(g->arena, sizeof *c->reader * values);
    c->chains = ls_arena_alloc(g->arena, sizeof *c->chains * nodes);
    if (c->uses == NULL || c->reader == NULL || c->chains == NULL) return false;
    ls_graph_count_uses(g, c->uses);
    for (int32_t i = 0; i < g->n_values; i++) c->reader[i] = NULL;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++)
            c->reader[g->nodes[i]->in[k]] = g->nodes[i];
    return true;
}

/* Chains begin where what is read was not made by a chain of which this is the end. */
static void find_chains(converter *c)
{
    const ls_graph *g = c->g;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        ls_node *n = g->nodes[i], *before;
        chain x;
        if (!converts(n)) continue;
        before = g->values[n->in[0]]->node >= 0 ? g->nodes[g->values[n->in[0]]->node] : NULL;
        if (converts(before) && before->op != n->op && c->uses[n->in[0]] == 1) continue;
        x = chain_from(c, n);
        if (belongs(c, &x)) c->chains[c->n++] = x;
    }
}

void ls_pass_convert(ls_graph *g)
{
    converter c = {.g = g};
    ls_value *in = NULL;
    int *members = NULL;

    if (g->err.status != LS_OK) return;
    if (look(&c)) {
        find_chains(&c);
        in = ls_arena_alloc(g->arena, sizeof *in * ((size_t)c.n + 1));
        members = ls_arena_alloc(g->arena, sizeof *members * ((size_t)c.n + 1));
    }
    if (in == NULL || members == NULL) {
        ls_graph_fail(g, LS_NOMEM, "convert pass: no memory");
        return;
    }
    for (int i = 0; i < c.n && g->err.status == LS_OK; i++)
        if (c.chains[i].n > 0) merge(&c, i, in, members);
}
