/* json.c: a document as JSON.  Nodes and values are called by their ids; docs/plan-format.md has the fields.
 */
#include <stdio.h>

#include "plans/plans.h"

static json_t *shape_json(const ls_shape *s)
{
    json_t *a = json_array();

    for (int i = 0; i < s->rank; i++) json_array_append_new(a, json_integer(s->dim[i]));
    return a;
}

static json_t *value_json(const ls_document *d, const ls_doc_value *v)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:s, s:I, s:i, s:i, s:b}", "id", v->id, "name", v->name,
                     "kind", v->kind, "dtype", v->dtype, "shape", shape_json(&v->shape), "layout", v->layout,
                     "category", v->category, "bytes", (json_int_t)v->bytes, "node",
                     v->node >= 0 ? d->nodes[v->node].id : -1, "buffer", v->buffer, "fetch", v->fetch);
}

static json_t *value_ids(const ls_document *d, const int32_t *values, int n)
{
    json_t *a = json_array();

    for (int i = 0; i < n; i++) json_array_append_new(a, json_integer(d->values[values[i]].id));
    return a;
}

static json_t *node_json(const ls_document *d, const ls_doc_node *n)
{
    json_t *o = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:f, s:f, s:I, s:o, s:o, s:f, s:f}",
                          "id", n->id, "op", n->op, "attributes", n->attributes, "layer", n->layer, "impl",
                          n->impl, "queue", n->queue, "backward", n->backward, "waits", n->waits, "updates",
                          n->updates, "flops", n->flops, "bytes", n->bytes, "scratch_bytes",
                          (json_int_t)n->scratch_bytes, "inputs", value_ids(d, n->in, n->n_in), "outputs",
                          value_ids(d, n->out, n->n_out), "seconds", n->seconds, "progress_s", n->progress_s);

    if (n->carried) json_object_set_new(o, "carried", json_true());
    return o;
}

static json_t *edge_json(const ls_document *d, const ls_doc_edge *e)
{
    return json_pack("{s:i, s:i, s:s, s:i}", "from", d->nodes[e->from].id, "to", d->nodes[e->to].id, "kind",
                     e->kind, "value", e->value >= 0 ? d->values[e->value].id : -1);
}

static json_t *buffer_json(const ls_document *d, const ls_doc_buffer *b)
{
    (void)d;
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i}", "kind", b->kind, "name", b->name,
                     "category", b->category, "home", b->home, "offset", (json_int_t)b->offset, "bytes",
                     (json_int_t)b->bytes, "exchange", b->exchange, "first", b->first, "last", b->last);
}

static json_t *collective_json(const ls_document *d, const ls_doc_collective *c)
{
    json_t *after = json_array();

    for (int32_t i = 0; i < c->n_after; i++)
        json_array_append_new(after, json_integer(d->nodes[c->after[i]].id));
    return json_pack("{s:s, s:i, s:I, s:i, s:i, s:o}", "kind", c->kind, "bucket", c->bucket, "bytes",
                     (json_int_t)c->bytes, "start", d->nodes[c->start].id, "end", d->nodes[c->end].id,
                     "waits_for", after);
}

static json_t *memory_json(const ls_plan_memory *m)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)m->weights, "gradients",
                     (json_int_t)m->gradients, "optimizer", (json_int_t)m->optimizer, "activations",
                     (json_int_t)m->activations, "scratch", (json_int_t)m->scratch, "comm",
                     (json_int_t)m->comm, "total", (json_int_t)m->total);
}

/* An array of n things that `of` turns into JSON one by one. */
#define LIST(list, n, things, of)                                                                            \
    json_t *list = json_array();                                                                             \
    for (int32_t i = 0; i < (n); i++) json_array_append_new(list, of(d, &(things)[i]))

json_t *ls_document_json(const ls_document *d)
{
    LIST(nodes, d->n_nodes, d->nodes, node_json);
    LIST(values, d->n_values, d->values, value_json);
    LIST(edges, d->n_edges, d->edges, edge_json);
    LIST(buffers, d->n_buffers, d->buffers, buffer_json);
    LIST(collectives, d->n_collectives, d->collectives, collective_json);
    char hash[24];

    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)d->hash);
    return json_pack("{s:s, s:i, s:I, s:I, s:s, s:f, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "part", d->part,
                     "stage", d->stage, "batch", (json_int_t)d->batch, "runs_per_step", (json_int_t)d->runs,
                     "hash", hash, "flops", d->flops, "arena_bytes", (json_int_t)d->arena_bytes, "memory",
                     memory_json(&d->memory), "nodes", nodes, "values", values, "edges", edges, "buffers",
                     buffers, "collectives", collectives);
}
