/* document.c: from a plan to its document: nodes, values, edges. */
#include "exec/document.h"

#include <string.h>

#include "base/text.h"
#include "exec/document_internal.h"
#include "ops/ops.h"

/* A copy in the document's arena; "" for NULL. */
static const char *keep(lsi_doc_maker *m, const char *text)
{
    const char *copy = text == NULL || text[0] == '\0' ? "" : ls_arena_strdup(m->d->arena, text);

    if (copy == NULL) m->failed = true;
    return copy != NULL ? copy : "";
}

void *lsi_doc_array(lsi_doc_maker *m, size_t n, size_t item_bytes)
{
    void *array = ls_arena_alloc(m->d->arena, n > 0 ? n * item_bytes : 1);

    if (array == NULL) m->failed = true;
    return array;
}

/* -- values -----------------------------------------------------------------------------------------------
 */

static const char *kind_name(ls_value_kind kind)
{
    return kind == LS_VALUE_INPUT ? "input" : kind == LS_VALUE_VAR ? "variable" : "node";
}

/* A value is in the document when a node touches it, or the host. */
static void mark_values(lsi_doc_maker *m)
{
    const ls_graph *g = m->p->graph;

    for (int32_t i = 0; i < g->n_values; i++) {
        const ls_vinfo *v = g->values[i];
        m->value_at[i] = v->kind == LS_VALUE_INPUT || v->fetch ? 0 : -1;
    }
    for (int32_t i = 0; i < m->p->schedule.n; i++) {
        const ls_node *n = m->p->steps[i].node;
        for (int k = 0; k < n->n_in; k++) m->value_at[n->in[k]] = 0;
        for (int k = 0; k < n->n_out; k++) m->value_at[n->out[k]] = 0;
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (m->value_at[i] == 0) m->value_at[i] = m->d->n_values++;
}

static int32_t maker_of(const lsi_doc_maker *m, int32_t value)
{
    const int32_t node = m->p->graph->values[ls_graph_storage(m->p->graph, value)]->node;

    return node >= 0 ? m->node_at[node] : -1;
}

static void add_values(lsi_doc_maker *m)
{
    const ls_graph *g = m->p->graph;

    mark_values(m);
    m->d->values = lsi_doc_array(m, (size_t)m->d->n_values, sizeof *m->d->values);
    for (int32_t i = 0; !m->failed && i < g->n_values; i++) {
        const ls_vinfo *v = g->values[i];
        if (m->value_at[i] < 0) continue;
        m->d->values[m->value_at[i]] = (ls_doc_value){.id = i,
                                                      .name = keep(m, v->name),
                                                      .kind = kind_name(v->kind),
                                                      .dtype = ls_dtype_name(v->dtype),
                                                      .layout = v->layout->name,
                                                      .category = ls_category_name(v->category),
                                                      .shape = v->shape,
                                                      .bytes = ls_layout_bytes(v->layout, v->dtype, v->shape),
                                                      .node = maker_of(m, i),
                                                      .buffer = -1,
                                                      .fetch = v->fetch};
    }
}

/* -- nodes ------------------------------------------------------------------------------------------------
 */

static int32_t *places(lsi_doc_maker *m, const int32_t *values, int n)
{
    int32_t *at = lsi_doc_array(m, (size_t)n, sizeof *at);

    for (int k = 0; at != NULL && k < n; k++) at[k] = m->value_at[values[k]];
    return at;
}

static const char *attributes(lsi_doc_maker *m, const ls_node *n)
{
    char text[LSI_DOC_ATTRIBUTES] = "";

    if (n->op->attr_text != NULL) n->op->attr_text(n->attr, text, sizeof text);
    return keep(m, text);
}

/* Whether the node is there to write the next version of a variable: what a batch norm keeps of the batch is
 * beside its result, while a region's updates may be any of its outputs. */
static bool updates(const ls_node *n)
{
    if (n->op == &ls_op_region_update) return true;
    return n->op->alias != NULL && n->op->alias(n->n_in, n->attr, 0) >= 0;
}

static void add_nodes(lsi_doc_maker *m)
{
    const ls_plan *p = m->p;

    for (int32_t i = 0; !m->failed && i < p->schedule.n; i++) {
        const lsi_step *s = &p->steps[i];
        const ls_node *n = s->node;
        m->d->nodes[i] = (ls_doc_node){.id = n->id,
                                       .op = n->op->name,
                                       .attributes = attributes(m, n),
                                       .layer = keep(m, n->scope),
                                       .impl = keep(m, s->kernel.impl),
                                       .queue = ls_queue_name(n->queue),
                                       .carried = n->carried,
                                       .backward = n->backward,
                                       .waits = (n->op->flags & LS_OP_WAIT) != 0,
                                       .updates = updates(n),
                                       .flops = ls_node_flops(p->graph, n),
                                       .bytes = ls_node_bytes(p->graph, n),
                                       .scratch_bytes = s->kernel.scratch_bytes,
                                       .n_in = n->n_in,
                                       .n_out = n->n_out,
                                       .in = places(m, n->in, n->n_in),
                                       .out = places(m, n->out, n->n_out),
                                       .seconds = s->seconds,
                                       .progress_s = s->progress};
        m->d->flops += m->d->nodes[i].flops;
    }
}

/* -- edges ------------------------------------------------------------------------------------------------
 */

static void add_edges(lsi_doc_maker *m)
{
    ls_document *d = m->d;
    const ls_graph *g = m->p->graph;
    size_t most = (size_t)g->n_edges;

    for (int32_t i = 0; i < d->n_nodes; i++) most += (size_t)d->nodes[i].n_in;
    d->edges = lsi_doc_array(m, most, sizeof *d->edges);
    for (int32_t i = 0; !m->failed && i < d->n_nodes; i++)
        for (int k = 0; k < d->nodes[i].n_in; k++) {
            const int32_t v = d->nodes[i].in[k], from = d->values[v].node;
            if (from >= 0) d->edges[d->n_edges++] = (ls_doc_edge){from, i, "value", v};
        }
    for (int32_t i = 0; !m->failed && i < g->n_edges; i++) {
        const int32_t from = m->node_at[g->edges[i].from], to = m->node_at[g->edges[i].to];
        if (from >= 0 && to >= 0)
            d->edges[d->n_edges++] = (ls_doc_edge){from, to, ls_edge_kind_name(g->edges[i].kind), -1};
    }
}

static void add_passes(lsi_doc_maker *m)
{
    const ls_pass_notes *notes = &m->p->notes;

    m->d->passes = lsi_doc_array(m, (size_t)notes->n, sizeof *m->d->passes);
    for (int i = 0; !m->failed && i < notes->n; i++) {
        const struct ls_pass_note *x = &notes->of[i];
        m->d->passes[m->d->n_passes++] = (ls_doc_pass){x->pass, x->leaves, x->nodes, x->edges, x->seconds};
    }
}

/* -- the document -----------------------------------------------------------------------------------------
 */

static void number_nodes(lsi_doc_maker *m)
{
    for (int32_t i = 0; i < m->p->graph->n_nodes; i++) m->node_at[i] = -1;
    for (int32_t i = 0; i < m->p->schedule.n; i++) m->node_at[m->p->steps[i].node->id] = i;
    m->d->n_nodes = m->p->schedule.n;
    m->d->nodes = lsi_doc_array(m, (size_t)m->d->n_nodes, sizeof *m->d->nodes);
}

ls_status ls_document_make(ls_document *d, const ls_plan *p, ls_err *err)
{
    const ls_graph *g = p->graph;
    lsi_doc_maker m = {.d = d, .p = p};
    ls_status st = LS_OK;

    *d = (ls_document){.part = "step",
                       .runs = 1,
                       .hash = p->hash,
                       .memory = ls_plan_memory_of(p),
                       .arena_bytes = p->memory.arena_bytes};
    LS_TRY(ls_arena_create(&d->arena, LS_MEM_CLI, err));
    m.node_at = ls_alloc(LS_MEM_CLI, sizeof *m.node_at * ((size_t)g->n_nodes + 1));
    m.value_at = ls_alloc(LS_MEM_CLI, sizeof *m.value_at * ((size_t)g->n_values + 1));
    m.failed = m.node_at == NULL || m.value_at == NULL;
    if (!m.failed) {
        number_nodes(&m);
        add_values(&m);
        add_nodes(&m);
        add_edges(&m);
        add_passes(&m);
        lsi_doc_add_buffers(&m);
        lsi_doc_add_collectives(&m);
    }
    if (m.failed) st = ls_fail(err, LS_NOMEM, "describing a plan: no memory");
out:
    ls_free(m.node_at);
    ls_free(m.value_at);
    return st;
}

void ls_document_release(ls_document *d)
{
    ls_arena_destroy(d->arena);
    *d = (ls_document){0};
}
