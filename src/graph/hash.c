/* hash.c: one number for what a graph computes.
 *
 * Values go by numbers of their own, in the order of inputs, variables and live nodes, so that what is dead
 * leaves no trace.  Names of layers, units, source lines and positions are left out: they change no result.
 */
#include <string.h>
#include <xxhash.h>

#include "graph/graph.h"

enum { ATTR_TEXT = 4096 };

typedef struct hashing {
    const ls_graph *g;
    int32_t *value, *node; /* their own numbers; -1: nothing live */
    uint64_t sum;
} hashing;

static void add(hashing *h, const void *bytes, size_t n)
{
    h->sum = XXH3_64bits_withSeed(bytes, n, h->sum);
}

static void add_text(hashing *h, const char *text)
{
    add(h, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 0);
}

static void add_number(hashing *h, int64_t x)
{
    add(h, &x, sizeof x);
}

static void add_type(hashing *h, const ls_vinfo *v)
{
    add_text(h, ls_dtype_name(v->dtype));
    add(h, v->shape.dim, sizeof v->shape.dim[0] * (size_t)v->shape.rank);
}

/* -- numbers ----------------------------------------------------------------------------------------------
 */

static void number_all(hashing *h)
{
    const ls_graph *g = h->g;
    int32_t values = 0, nodes = 0;

    for (int32_t i = 0; i < g->n_values; i++) {
        h->value[i] = -1;
        if (g->values[i]->kind != LS_VALUE_NODE) h->value[i] = values++;
    }
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        h->node[i] = n->dead ? -1 : nodes++;
        for (int k = 0; !n->dead && k < n->n_out; k++) h->value[n->out[k]] = values++;
    }
}

/* -- what is in it ----------------------------------------------------------------------------------------
 */

static void add_given(hashing *h)
{
    for (int32_t i = 0; i < h->g->n_values; i++) {
        const ls_vinfo *v = h->g->values[i];
        if (v->kind == LS_VALUE_NODE) continue;
        if (v->kind == LS_VALUE_INPUT) add_text(h, v->name);
        add_number(h, v->kind == LS_VALUE_VAR ? v->var : -1);
        add_type(h, v);
    }
    for (int32_t i = 0; i < h->g->n_vars; i++) {
        const ls_var *var = h->g->vars[i];
        const double a = var->init.a;
        add_text(h, var->name);
        add_number(h, var->role);
        add_number(h, var->home);
        add_number(h, var->init.kind);
        add(h, &a, sizeof a);
        add_number(h, h->value[var->current]);
    }
}

static void add_node(hashing *h, const ls_node *n)
{
    char text[ATTR_TEXT] = "";

    add_text(h, n->op->name);
    if (n->op->attr_text != NULL) n->op->attr_text(n->attr, text, sizeof text);
    add_text(h, text);
    add_number(h, n->n_in);
    for (int k = 0; k < n->n_in; k++) add_number(h, h->value[n->in[k]]);
    if (n->after >= 0) add_number(h, h->value[n->after]);
    for (int k = 0; k < n->n_out; k++) {
        const ls_vinfo *v = h->g->values[n->out[k]];
        add_number(h, v->var);
        add_type(h, v);
    }
}

static void add_fetches(hashing *h)
{
    for (int32_t i = 0; i < h->g->n_values; i++) {
        if (!h->g->values[i]->fetch) continue;
        add_number(h, h->value[i]);
        add_text(h, h->g->values[i]->name);
    }
}

/* In which order passes added them means nothing: they are added up. */
static void add_edges(hashing *h)
{
    uint64_t all = 0;

    for (int32_t i = 0; i < h->g->n_edges; i++) {
        const ls_edge *e = &h->g->edges[i];
        const int64_t edge[] = {h->node[e->from], h->node[e->to], e->kind};
        if (edge[0] >= 0 && edge[1] >= 0) all += XXH3_64bits(edge, sizeof edge);
    }
    add(h, &all, sizeof all);
}

uint64_t ls_graph_hash(ls_graph *g)
{
    hashing h = {.g = g};

    h.value = ls_arena_alloc(g->arena, sizeof *h.value * ((size_t)g->n_values + 1));
    h.node = ls_arena_alloc(g->arena, sizeof *h.node * ((size_t)g->n_nodes + 1));
    if (h.value == NULL || h.node == NULL) {
        ls_graph_fail(g, LS_NOMEM, "hash: no memory");
        return 0;
    }
    number_all(&h);
    add_given(&h);
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead) add_node(&h, g->nodes[i]);
    add_fetches(&h);
    add_edges(&h);
    return h.sum;
}
