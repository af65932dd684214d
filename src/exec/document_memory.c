/* document_memory.c: of a document: what lies where and when, and what ranks do together. */
#include <stdio.h>
#include <string.h>

#include "exec/document_internal.h"

/* -- buffers ----------------------------------------------------------------------------------------------
 */

static void add_arena(lsi_doc_maker *m)
{
    const ls_memory *from = &m->p->memory;
    ls_document *d = m->d;

    for (int32_t i = 0; i < from->n_buffers; i++) {
        const ls_memory_buffer *b = &from->buffers[i];
        d->buffers[d->n_buffers++] =
            (ls_doc_buffer){.kind = b->category == LS_CAT_SCRATCH ? "scratch" : "arena",
                            .name = "",
                            .category = ls_category_name(b->category),
                            .home = "rank",
                            .offset = b->offset,
                            .bytes = b->bytes,
                            .exchange = -1,
                            .first = b->first,
                            .last = b->last < d->n_nodes ? b->last : d->n_nodes - 1};
    }
}

static void add_variables(lsi_doc_maker *m)
{
    const ls_graph *g = m->p->graph;
    ls_document *d = m->d;

    for (int32_t i = 0; i < g->n_vars; i++) {
        const ls_vinfo *v = g->values[g->vars[i]->first];
        const size_t bytes = ls_layout_bytes(v->layout, v->dtype, v->shape);
        const bool shared = g->vars[i]->home == LS_HOME_MACHINE;
        const char *name = ls_arena_strdup(d->arena, g->vars[i]->name);
        if (name == NULL) m->failed = true;
        d->buffers[d->n_buffers++] =
            (ls_doc_buffer){.kind = "variable",
                            .name = name != NULL ? name : "",
                            .category = ls_category_name(v->category),
                            .home = ls_home_name(g->vars[i]->home),
                            .bytes = shared ? lsi_peers_part_of(m->p->peers, bytes) : bytes,
                            .exchange = -1,
                            .last = d->n_nodes - 1};
    }
}

/* The buffer of value v in an exchange, which may be in the list already: parts of one value by views. */
static void add_exchanged(lsi_doc_maker *m, int32_t v)
{
    const ls_vinfo *x = m->p->graph->values[v];
    ls_document *d = m->d;
    int32_t first = d->n_nodes - 1, last = 0;

    for (int32_t i = 0; i < d->n_nodes; i++) {
        const ls_node *n = m->p->steps[i].node;
        bool here = false;
        for (int k = 0; k < n->n_in; k++) here = here || ls_graph_storage(m->p->graph, n->in[k]) == v;
        for (int k = 0; k < n->n_out; k++) here = here || n->out[k] == v;
        if (here && i < first) first = i;
        if (here && i > last) last = i;
    }
    d->values[m->value_at[v]].buffer = d->n_buffers;
    d->buffers[d->n_buffers++] = (ls_doc_buffer){.kind = "exchange",
                                                 .name = "",
                                                 .category = ls_category_name(LS_CAT_COMM),
                                                 .home = "rank",
                                                 .offset = x->at,
                                                 .bytes = ls_layout_bytes(x->layout, x->dtype, x->shape),
                                                 .exchange = x->buffer,
                                                 .first = first,
                                                 .last = last};
}

/* Values lie in the buffers of the list: first those of the arena, as the memory pass has them, then those of
 * variables. */
static void place_values(lsi_doc_maker *m, int32_t variables)
{
    const ls_memory *memory = &m->p->memory;

    for (int32_t i = 0; i < m->p->graph->n_values; i++) {
        const int32_t root = ls_graph_storage(m->p->graph, i);
        ls_doc_value *v = m->value_at[i] >= 0 ? &m->d->values[m->value_at[i]] : NULL;
        if (v == NULL) continue;
        if (memory->var[i] >= 0)
            v->buffer = variables + memory->var[i];
        else if (m->p->graph->values[root]->buffer >= 0)
            v->buffer = m->value_at[root] >= 0 ? m->d->values[m->value_at[root]].buffer : -1;
        else
            v->buffer = memory->buffer_of[i];
    }
}

void lsi_doc_add_buffers(lsi_doc_maker *m)
{
    const ls_graph *g = m->p->graph;
    const size_t most =
        (size_t)m->p->memory.n_buffers + (size_t)g->n_vars + (size_t)(m->failed ? 0 : m->d->n_values);
    int32_t variables;

    m->d->buffers = lsi_doc_array(m, most, sizeof *m->d->buffers);
    if (m->failed) return;
    add_arena(m);
    variables = m->d->n_buffers;
    add_variables(m);
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->buffer >= 0 && m->value_at[i] >= 0) add_exchanged(m, i);
    place_values(m, variables);
}

static int category_of(const char *name)
{
    for (int c = 0; c < LS_CAT_N; c++)
        if (strcmp(ls_category_name((ls_category)c), name) == 0) return c;
    return LS_CAT_ACTIVATION;
}

/* Exchanges take what they take all the time, whatever lies in them. */
void ls_document_memory_at(const ls_document *d, int32_t at, double *by_category)
{
    for (int c = 0; c < LS_CAT_N; c++) by_category[c] = 0;
    for (int32_t i = 0; i < d->n_buffers; i++) {
        const ls_doc_buffer *b = &d->buffers[i];
        if (b->first > at || b->last < at || strcmp(b->kind, "exchange") == 0) continue;
        by_category[category_of(b->category)] += (double)b->bytes;
    }
    by_category[LS_CAT_COMM] += (double)d->memory.comm;
}

/* -- collectives ------------------------------------------------------------------------------------------
 */

/* The node that waits for what `start` began: of the next run, or the first that waits and reads its token.
 */
static int32_t wait_of(const lsi_doc_maker *m, int32_t start)
{
    const ls_document *d = m->d;
    const ls_node *n = m->p->steps[start].node,
                  *carried = n->op->coll_op == LS_COLL_OP_START ? ls_carried_wait(m->p->graph, n) : NULL;

    if (carried != NULL) return m->node_at[carried->id];
    for (int32_t i = start + 1; i < d->n_nodes; i++)
        if (d->nodes[i].waits && d->nodes[i].n_in > 0 && d->values[d->nodes[i].in[0]].node == start) return i;
    return start;
}

static void add_after(lsi_doc_maker *m, ls_doc_collective *c)
{
    const ls_document *d = m->d;

    for (int32_t i = 0; i < d->n_edges; i++) c->n_after += d->edges[i].to == c->start;
    c->after = lsi_doc_array(m, (size_t)c->n_after, sizeof *c->after);
    c->n_after = 0;
    for (int32_t i = 0; !m->failed && i < d->n_edges; i++) {
        bool known = d->edges[i].to != c->start;
        for (int32_t k = 0; k < c->n_after; k++) known = known || c->after[k] == d->edges[i].from;
        if (!known) c->after[c->n_after++] = d->edges[i].from;
    }
}

/* Of an exchange what its buffer takes, tensors beginning at cache lines. */
static size_t bytes_given(const lsi_doc_maker *m, int32_t bucket, const ls_doc_node *n)
{
    const ls_document *d = m->d;
    size_t sum = 0;

    if (bucket >= 0) return ls_peers_bucket_bytes(m->p->peers, bucket);
    for (int k = 1; k < n->n_in; k++) sum += d->values[n->in[k]].bytes; /* the first is its weight */
    return sum;
}

void lsi_doc_add_collectives(lsi_doc_maker *m)
{
    ls_document *d = m->d;

    d->collectives = lsi_doc_array(m, (size_t)(m->failed ? 0 : d->n_nodes), sizeof *d->collectives);
    for (int32_t i = 0; !m->failed && i < d->n_nodes; i++) {
        const ls_node *n = m->p->steps[i].node;
        ls_doc_collective *c = &d->collectives[d->n_collectives];
        const bool planned = lsi_coll_runs(m->p->peers, n);
        const int32_t bucket = planned ? lsi_coll_bucket(&m->p->steps[i].kernel) : -1;
        if (!lsi_coll_begins(n)) continue;
        *c = (ls_doc_collective){.kind = ls_collective_name(n->op->collective),
                                 .bucket = bucket,
                                 .bytes = bytes_given(m, bucket, &d->nodes[i]),
                                 .start = i,
                                 .end = wait_of(m, i)};
        add_after(m, c);
        d->n_collectives++;
    }
}
