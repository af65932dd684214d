/* inspect.c: costs, text and use counts of nodes, and the edits that passes make. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

const char *ls_category_name(ls_category c)
{
    static const char *const names[LS_CAT_N] = {"activations", "weights", "gradients",
                                                "optimizer",   "scratch", "comm"};

    return c < LS_CAT_N ? names[c] : "?";
}

const char *ls_queue_name(ls_queue q)
{
    static const char *const names[LS_QUEUE_N] = {"compute", "comm", "copy", "feed", "host"};

    return (unsigned)q < LS_QUEUE_N ? names[q] : "?";
}

const char *ls_home_name(ls_home h)
{
    static const char *const names[] = {"rank", "machine", "sharded"};

    return names[h];
}

const char *ls_edge_kind_name(ls_edge_kind k)
{
    static const char *const names[] = {"overwrite", "barrier", "commit", "hold", "turn"};

    return (unsigned)k < sizeof names / sizeof names[0] ? names[k] : "?";
}

void ls_graph_stand_for(ls_node *n, const ls_node *old)
{
    n->position = old->position;
    n->unit = old->unit;
    n->loss = old->loss;
}

int32_t ls_graph_storage(const ls_graph *g, int32_t value)
{
    for (;;) {
        const int32_t node = g->values[value]->node;
        if (node < 0 || !(g->nodes[node]->op->flags & LS_OP_VIEW)) return value;
        value = g->nodes[node]->in[0];
    }
}

double ls_node_flops(const ls_graph *g, const ls_node *n)
{
    if (n->op->flops != NULL) return n->op->flops(g, n);
    if (n->op->pw == LS_PW_NONE || n->op->pw == LS_PW_COPY) return 0;
    return (double)ls_shape_count(*ls_node_out_shape(g, n, 0));
}

static double value_bytes(const ls_graph *g, int32_t id)
{
    const ls_vinfo *v = g->values[id];

    return (double)ls_layout_bytes(v->layout, v->dtype, v->shape);
}

double ls_node_bytes(const ls_graph *g, const ls_node *n)
{
    double sum = 0;

    if (n->op->bytes != NULL) return n->op->bytes(g, n);
    if (n->op->flags & LS_OP_VIEW) return 0;
    for (int i = 0; i < n->n_in; i++) sum += value_bytes(g, n->in[i]);
    for (int k = 0; k < n->n_out; k++) sum += value_bytes(g, n->out[k]);
    return sum;
}

void ls_node_text(const ls_node *n, char *buf, size_t size)
{
    char attr[512] = "";

    if (n->op->attr_text != NULL) n->op->attr_text(n->attr, attr, sizeof attr);
    snprintf(buf, size, "%s%s%s", n->op->name, attr[0] != '\0' ? " " : "", attr);
}

void ls_graph_replace(ls_graph *g, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead) continue;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] == from) n->in[k] = to;
        if (n->after == from) n->after = to;
    }
    for (int32_t i = 0; i < g->n_vars; i++)
        if (g->vars[i]->current == from) g->vars[i]->current = to;
    if (g->values[from]->fetch) {
        g->values[to]->fetch = true;
        g->values[to]->name = g->values[from]->name;
        g->values[from]->fetch = false;
    }
    if (g->values[to]->kind == LS_VALUE_NODE && g->values[to]->category == LS_CAT_ACTIVATION)
        g->values[to]->category = g->values[from]->category;
}

void ls_graph_count_uses(const ls_graph *g, int32_t *uses)
{
    memset(uses, 0, sizeof *uses * (size_t)g->n_values);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead) continue;
        for (int k = 0; k < n->n_in; k++) uses[n->in[k]]++;
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->fetch) uses[i]++;
    for (int32_t i = 0; i < g->n_vars; i++) uses[g->vars[i]->current]++;
}
