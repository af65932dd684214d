/* rewrite.c: copies of graphs, exact or with some nodes made anew.
 *
 * A pass that expands nodes could append what it makes and leave numbers behind that are no topological order
 * any more.  Copying costs little (a graph has some hundred nodes, and shapes need no second look) and gives
 * the graph that would have been if the trial itself had written the expansion. */
#include <string.h>

#include "graph/graph_internal.h"

typedef struct copying {
    const ls_graph *from;
    ls_graph *to;
    ls_rewrite rule; /* NULL: none */
    void *ctx;
    bool declared, fed;   /* all variables, or inputs, come before the first node */
    int32_t *value, *var; /* their new numbers; -1: not there */
    ls_value *in, *out;   /* room for those of a node */
    const char *scope, *scope_copy;
} copying;

static bool open_copying(copying *c)
{
    const ls_graph *g = c->from;
    int most = 1;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->n_in > most) most = g->nodes[i]->n_in;
        if (g->nodes[i]->n_out > most) most = g->nodes[i]->n_out;
    }
    c->value = ls_arena_alloc(c->to->arena, sizeof *c->value * ((size_t)g->n_values + 1));
    c->var = ls_arena_alloc(c->to->arena, sizeof *c->var * ((size_t)g->n_vars + 1));
    c->in = ls_arena_alloc(c->to->arena, 2 * sizeof *c->in * (size_t)most);
    if (c->value == NULL || c->var == NULL || c->in == NULL) return false;
    c->out = c->in + most;
    for (int32_t i = 0; i < g->n_values; i++) c->value[i] = -1;
    return true;
}

/* Names are in the graph's arena; most nodes have that of their neighbour. */
static bool copy_scope(copying *c, const char *scope)
{
    if (scope != c->scope) {
        c->scope_copy = scope[0] == '\0' ? "" : ls_arena_strdup(c->to->arena, scope);
        c->scope = scope;
    }
    return c->scope_copy != NULL;
}

/* The value itself, of no node and no variable yet. */
static ls_vinfo *copy_value(copying *c, int32_t id)
{
    const ls_vinfo *old = c->from->values[id];
    ls_vinfo *v = lsi_graph_new_value(c->to, old->dtype, old->shape);

    if (v == NULL) return NULL;
    v->layout = old->layout;
    v->kind = old->kind;
    v->category = old->category;
    v->fetch = old->fetch;
    if (old->name != NULL && (v->name = ls_arena_strdup(c->to->arena, old->name)) == NULL) return NULL;
    c->value[id] = c->to->n_values - 1;
    return v;
}

static bool copy_var(copying *c, int32_t id)
{
    const int32_t var = c->from->values[id]->var;
    ls_var *copy = ls_arena_alloc(c->to->arena, sizeof *copy);
    ls_vinfo *v = copy != NULL ? copy_value(c, id) : NULL;

    if (v == NULL) return false;
    *copy = *c->from->vars[var];
    copy->name = ls_arena_strdup(c->to->arena, copy->name); /* the value may be fetched under another */
    if (copy->name == NULL) return false;
    copy->first = copy->current = c->value[id];
    v->var = c->var[var] = c->to->n_vars;
    return lsi_graph_append_var(c->to, copy);
}

static bool copy_node(copying *c, const ls_node *old)
{
    ls_arena *a = c->to->arena;
    ls_node *n = ls_arena_alloc(a, sizeof *n);

    if (n == NULL) return false;
    *n = *old;
    n->scope = c->scope_copy;
    n->in = ls_arena_alloc(a, sizeof *n->in * (size_t)(n->n_in + 1));
    n->out = ls_arena_alloc(a, sizeof *n->out * (size_t)(n->n_out + 1));
    if (n->op->attr_size > 0) n->attr = ls_arena_alloc(a, n->op->attr_size);
    if (n->in == NULL || n->out == NULL || (n->op->attr_size > 0 && n->attr == NULL)) return false;
    for (int k = 0; k < n->n_in; k++) n->in[k] = c->value[old->in[k]];
    if (old->after >= 0) n->after = c->value[old->after];
    if (n->op->attr_size > 0) memcpy(n->attr, old->attr, n->op->attr_size);
    for (int k = 0; k < n->n_out; k++) {
        ls_vinfo *v = copy_value(c, old->out[k]);
        if (v == NULL) return false;
        v->node = c->to->n_nodes;
        v->out = k;
        n->out[k] = c->value[old->out[k]];
        if (c->from->values[old->out[k]]->var < 0) continue;
        v->var = c->var[c->from->values[old->out[k]]->var];
        c->to->vars[v->var]->current = n->out[k];
    }
    return lsi_graph_append_node(c->to, n);
}

/* The rule's outputs take the places of the node's. */
static void take_over(copying *c, const ls_node *n)
{
    for (int k = 0; k < n->n_out && c->to->err.status == LS_OK; k++) {
        const ls_vinfo *old = c->from->values[n->out[k]];
        LS_BUG_IF(!ls_value_ok(c->out[k]));
        c->value[n->out[k]] = c->out[k].id;
        if (old->var >= 0) ls_graph_advance(c->to, c->var[old->var], c->out[k]);
        if (old->fetch) ls_graph_fetch(c->out[k], old->name);
    }
}

static bool visit(copying *c, const ls_node *n)
{
    if (n->dead) return true;
    if (!copy_scope(c, n->scope)) return false;
    if (c->rule != NULL) {
        for (int k = 0; k < n->n_in; k++) c->in[k] = (ls_value){c->to, c->value[n->in[k]]};
        c->to->here = n->src;
        c->to->scope = c->scope_copy;
        c->to->unit = n->unit;
        c->to->loss = n->loss;
        if (c->rule(c->ctx, c->to, n, c->in, c->out)) {
            take_over(c, n);
            return true;
        }
        if (c->to->err.status != LS_OK) return true;
    }
    return copy_node(c, n);
}

/* Units keep their numbers. */
static bool copy_units(copying *c)
{
    for (int32_t i = 0; i < c->from->n_units; i++)
        if (ls_graph_add_unit(c->to, c->from->units[i]) == 0) return false;
    return true;
}

/* Values are numbered in the order in which inputs, variables and nodes were added. */
static void copy_all(copying *c)
{
    bool ok = open_copying(c) && copy_units(c);

    c->to->n_losses = c->from->n_losses;
    c->to->n_collectives = c->from->n_collectives;
    c->to->n_stages = c->from->n_stages;
    c->to->numbers = c->value;
    LS_BUG_IF(c->from->n_edges > 0);
    for (int32_t i = 0; ok && c->declared && i < c->from->n_values; i++)
        if (c->from->values[i]->kind == LS_VALUE_VAR) ok = copy_var(c, i);
    for (int32_t i = 0; ok && c->fed && i < c->from->n_values; i++)
        if (c->from->values[i]->kind == LS_VALUE_INPUT) ok = copy_value(c, i) != NULL;
    for (int32_t i = 0; ok && i < c->from->n_values && c->to->err.status == LS_OK; i++) {
        const ls_vinfo *v = c->from->values[i];
        if (v->kind == LS_VALUE_VAR)
            ok = c->declared || copy_var(c, i);
        else if (v->kind == LS_VALUE_INPUT)
            ok = c->fed || copy_value(c, i) != NULL;
        else if (v->kind == LS_VALUE_NODE && v->out == 0)
            ok = visit(c, c->from->nodes[v->node]);
    }
    c->to->here = c->from->here;
    c->to->unit = c->to->loss = 0;
    c->to->numbers = NULL;
    c->to->scope = ok && copy_scope(c, c->from->scope) ? c->scope_copy : "";
    if (!ok) ls_graph_fail(c->to, LS_NOMEM, "graph: no memory for a copy");
}

static void rewrite(ls_graph *g, ls_rewrite rule, void *ctx, bool declared, bool fed)
{
    ls_graph *next = NULL, old = *g;
    ls_err err = {0};

    if (g->err.status != LS_OK) return;
    if (ls_graph_create(&next, &err) != LS_OK) {
        ls_graph_fail(g, err.status, "%s", err.text);
        return;
    }
    copy_all(&(copying){.from = g, .to = next, .rule = rule, .ctx = ctx, .declared = declared, .fed = fed});
    *g = *next;
    *next = old;
    ls_graph_destroy(next);
}

void ls_graph_rewrite(ls_graph *g, ls_rewrite rule, void *ctx)
{
    rewrite(g, rule, ctx, false, false);
}

void ls_graph_rewrite_declared(ls_graph *g, ls_rewrite rule, void *ctx)
{
    rewrite(g, rule, ctx, true, false);
}

void ls_graph_rewrite_fed(ls_graph *g, ls_rewrite rule, void *ctx)
{
    rewrite(g, rule, ctx, true, true);
}

ls_status ls_graph_clone(ls_graph **out, const ls_graph *g, ls_err *err)
{
    ls_status st = ls_graph_create(out, err);

    if (st != LS_OK) return st;
    if (g->err.status != LS_OK)
        (*out)->err = g->err;
    else
        copy_all(&(copying){.from = g, .to = *out});
    return LS_OK;
}
