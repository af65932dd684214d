/* read.c: a document back from JSON, for comparing and drawing it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "plans/plans.h"
#include "plans/read_internal.h"
#include "tensor/layout.h"

/* Where a node is in the order; sorted by id. */
typedef struct place {
    int32_t id, at;
} place;

typedef struct reader {
    ls_document *d;
    lsi_item plan;
    place *places; /* of all nodes */
} reader;

static ls_status no_memory(lsi_item *it)
{
    if (it->st == LS_OK) it->st = ls_fail(it->err, LS_NOMEM, "no memory for a plan");
    return it->st;
}

static void *room(lsi_item *it, size_t n, size_t item_bytes)
{
    void *items = ls_arena_alloc(it->d->arena, item_bytes * (n + 1));

    if (items == NULL) no_memory(it);
    return items;
}

/* The plan's list called `key`; *items, one of which takes `item_bytes`, gets room for what it holds. */
static const json_t *open_list(reader *r, const char *key, size_t item_bytes, void **items, int32_t *n)
{
    const json_t *list = lsi_item_list(&r->plan, key);

    *n = (int32_t)json_array_size(list);
    *items = room(&r->plan, (size_t)*n, item_bytes);
    if (*items == NULL) *n = 0;
    return list;
}

static lsi_item item_of(const reader *r, const json_t *list, const char *name, int32_t at)
{
    return (lsi_item){r->d, json_array_get(list, (size_t)at), name, at, r->plan.err, LS_OK};
}

static int32_t small(lsi_item *it, const char *key, int32_t least, int32_t most)
{
    return (int32_t)lsi_item_whole(it, key, least, most);
}

static size_t bytes(lsi_item *it, const char *key)
{
    return (size_t)lsi_item_whole(it, key, 0, INT64_MAX);
}

static const char *category(lsi_item *it)
{
    const char *names[LS_CAT_N];

    for (int c = 0; c < LS_CAT_N; c++) names[c] = ls_category_name((ls_category)c);
    return lsi_item_name(it, "category", names, LS_CAT_N);
}

/* -- values -----------------------------------------------------------------------------------------------
 */

static void read_shape(lsi_item *it, ls_shape *s)
{
    const json_t *list = lsi_item_list(it, "shape");
    char text[LS_SHAPE_TEXT], shown[LS_JSON_SHOWN];

    if (it->st == LS_OK && json_array_size(list) > LS_MAX_RANK)
        lsi_item_refuse(it, "\"shape\" has %zu dimensions, at most %d are known", json_array_size(list),
                        LS_MAX_RANK);
    if (it->st != LS_OK) return;
    *s = (ls_shape){.rank = (int)json_array_size(list)};
    for (int i = 0; i < s->rank; i++) {
        const json_t *dim = json_array_get(list, (size_t)i);
        if (!json_is_integer(dim))
            lsi_item_refuse(it, "dimension %d of its \"shape\" is %s, must be a whole number", i,
                            ls_json_show(dim, shown));
        s->dim[i] = json_integer_value(dim);
    }
    if (it->st == LS_OK && !ls_shape_valid(*s))
        lsi_item_refuse(it, "\"shape\" is %s, which is none", ls_shape_text(*s, text));
}

/* Elements lie one after the other in these layouts; those of devices may leave gaps. */
static bool is_dense(const char *layout)
{
    return strcmp(layout, ls_layout_plain.name) == 0 || strcmp(layout, ls_layout_nhwc.name) == 0 ||
           strcmp(layout, ls_layout_nlc.name) == 0;
}

static void check_bytes(lsi_item *it, const ls_doc_value *v)
{
    char text[LS_SHAPE_TEXT];
    size_t least = 0;

    for (int t = 0; it->st == LS_OK && t < LS_DTYPE_N; t++)
        if (strcmp(v->dtype, ls_dtype_name((ls_dtype)t)) == 0)
            least = (size_t)ls_shape_count(v->shape) * ls_dtype_size((ls_dtype)t);
    if (it->st == LS_OK && (v->bytes < least || (v->bytes > least && is_dense(v->layout))))
        lsi_item_refuse(it, "\"bytes\" is %zu, and %s %s takes %zu%s", v->bytes, v->dtype,
                        ls_shape_text(v->shape, text), least, is_dense(v->layout) ? "" : " or more");
}

static ls_status read_value(lsi_item *it, ls_doc_value *v)
{
    static const char *const kinds[] = {"input", "variable", "node"};
    const char *types[LS_DTYPE_N];

    for (int t = 0; t < LS_DTYPE_N; t++) types[t] = ls_dtype_name((ls_dtype)t);
    *v = (ls_doc_value){.id = small(it, "id", 0, INT32_MAX),
                        .name = lsi_item_text(it, "name"),
                        .kind = lsi_item_name(it, "kind", kinds, 3),
                        .dtype = lsi_item_name(it, "dtype", types, LS_DTYPE_N),
                        .layout = lsi_item_text(it, "layout"),
                        .category = category(it),
                        .bytes = bytes(it, "bytes"),
                        .node = -1,
                        .buffer = -1,
                        .fetch = lsi_item_flag(it, "fetch")};
    read_shape(it, &v->shape);
    check_bytes(it, v);
    if (it->st == LS_OK && it->at > 0 && v->id <= v[-1].id)
        lsi_item_refuse(it, "its id %d comes after %d: ids rise", (int)v->id, (int)v[-1].id);
    return it->st;
}

static ls_status read_values(reader *r)
{
    void *items;
    const json_t *list = open_list(r, "values", sizeof *r->d->values, &items, &r->d->n_values);

    r->d->values = items;
    for (int32_t i = 0; r->plan.st == LS_OK && i < r->d->n_values; i++) {
        lsi_item it = item_of(r, list, "value", i);
        r->plan.st = read_value(&it, &r->d->values[i]);
    }
    return r->plan.st;
}

/* Values are in the order of their ids. */
static int32_t find_value(const ls_document *d, int64_t id)
{
    int32_t lo = 0, hi = d->n_values;

    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (d->values[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < d->n_values && d->values[lo].id == id ? lo : -1;
}

/* -- nodes ------------------------------------------------------------------------------------------------
 */

static int32_t *read_ids(lsi_item *it, const char *key, int *n)
{
    const json_t *list = lsi_item_list(it, key);
    int32_t *out = room(it, json_array_size(list), sizeof *out);
    char shown[LS_JSON_SHOWN];

    *n = out != NULL ? (int)json_array_size(list) : 0;
    for (int k = 0; it->st == LS_OK && k < *n; k++) {
        const json_t *id = json_array_get(list, (size_t)k);
        out[k] = json_is_integer(id) ? find_value(it->d, json_integer_value(id)) : -1;
        if (!json_is_integer(id))
            lsi_item_refuse(it, "%s %d is %s, must be the id of a value", key, k, ls_json_show(id, shown));
        else if (out[k] < 0)
            lsi_item_refuse(it, "%s %d is value %" JSON_INTEGER_FORMAT ", which is not there", key, k,
                            json_integer_value(id));
    }
    return out;
}

/* Every value has one maker. */
static void note_outputs(lsi_item *it, const ls_doc_node *n)
{
    ls_document *d = it->d;

    for (int k = 0; it->st == LS_OK && k < n->n_out; k++) {
        ls_doc_value *v = &d->values[n->out[k]];
        if (strcmp(v->kind, "node") != 0)
            lsi_item_refuse(it, "it makes value %d, which is an %s", (int)v->id, v->kind);
        else if (v->node >= 0)
            lsi_item_refuse(it, "it makes value %d, which node %d has made", (int)v->id,
                            (int)d->nodes[v->node].id);
        v->node = (int32_t)it->at;
    }
}

static ls_status read_node(lsi_item *it, ls_doc_node *n)
{
    const char *queues[LS_QUEUE_N];
    int n_queues = 0;

    for (int q = 0; q < LS_QUEUE_N; q++)
        if (q != LS_QUEUE_FEED) queues[n_queues++] = ls_queue_name((ls_queue)q); /* which has no nodes */
    *n = (ls_doc_node){.id = small(it, "id", 0, INT32_MAX),
                       .op = lsi_item_text(it, "op"),
                       .attributes = lsi_item_text(it, "attributes"),
                       .layer = lsi_item_text(it, "layer"),
                       .impl = lsi_item_text(it, "impl"),
                       .queue = lsi_item_name(it, "queue", queues, n_queues),
                       .backward = lsi_item_flag(it, "backward"),
                       .waits = lsi_item_flag(it, "waits"),
                       .updates = lsi_item_flag(it, "updates"),
                       .flops = lsi_item_number(it, "flops"),
                       .bytes = lsi_item_number(it, "bytes"),
                       .scratch_bytes = bytes(it, "scratch_bytes"),
                       .seconds = lsi_item_number(it, "seconds"),
                       .progress_s = lsi_item_number(it, "progress_s")};
    n->carried = json_object_get(it->o, "carried") != NULL && lsi_item_flag(it, "carried");
    n->in = read_ids(it, "inputs", &n->n_in);
    n->out = read_ids(it, "outputs", &n->n_out);
    if (it->st == LS_OK && n->op[0] == '\0') lsi_item_refuse(it, "its \"op\" is empty");
    note_outputs(it, n);
    return it->st;
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = ((const place *)a)->id, y = ((const place *)b)->id;

    return x < y ? -1 : x > y;
}

/* Nodes are in the order in which they run, and there may be many edges. */
static ls_status sort_places(reader *r)
{
    const int32_t n = r->d->n_nodes;

    r->places = room(&r->plan, (size_t)n, sizeof *r->places);
    if (r->places == NULL) return r->plan.st;
    for (int32_t i = 0; i < n; i++) r->places[i] = (place){r->d->nodes[i].id, i};
    qsort(r->places, (size_t)n, sizeof *r->places, by_id);
    for (int32_t i = 1; i < n; i++)
        if (r->places[i].id == r->places[i - 1].id)
            return lsi_item_refuse(&r->plan, "places %d and %d of \"nodes\" have one \"id\", which is %d",
                                   (int)r->places[i - 1].at, (int)r->places[i].at, (int)r->places[i].id);
    return LS_OK;
}

static ls_status read_nodes(reader *r)
{
    void *items;
    const json_t *list = open_list(r, "nodes", sizeof *r->d->nodes, &items, &r->d->n_nodes);

    r->d->nodes = items;
    for (int32_t i = 0; r->plan.st == LS_OK && i < r->d->n_nodes; i++) {
        lsi_item it = item_of(r, list, "node", i);
        r->plan.st = read_node(&it, &r->d->nodes[i]);
    }
    return r->plan.st == LS_OK ? sort_places(r) : r->plan.st;
}

/* The place of the node that the member names; -1 after a refusal, and for -1 where that stands for none. */
static int32_t node_at(const reader *r, lsi_item *it, const char *key, bool may_be_none)
{
    const int32_t id = small(it, key, may_be_none ? -1 : 0, INT32_MAX);
    const place *p;

    if (it->st != LS_OK || id < 0) return -1;
    p = bsearch(&(place){id, 0}, r->places, (size_t)r->d->n_nodes, sizeof *r->places, by_id);
    if (p == NULL) lsi_item_refuse(it, "\"%s\" is %d, and no node has that id", key, (int)id);
    return p != NULL ? p->at : -1;
}

/* -- edges ------------------------------------------------------------------------------------------------
 */

static ls_status read_edge(const reader *r, lsi_item *it, ls_doc_edge *e)
{
    const char *kinds[] = {"value",
                           ls_edge_kind_name(LS_EDGE_OVERWRITE),
                           ls_edge_kind_name(LS_EDGE_BARRIER),
                           ls_edge_kind_name(LS_EDGE_COMMIT),
                           ls_edge_kind_name(LS_EDGE_HOLD),
                           ls_edge_kind_name(LS_EDGE_TURN)};
    const int32_t value = small(it, "value", -1, INT32_MAX);

    *e = (ls_doc_edge){node_at(r, it, "from", false), node_at(r, it, "to", false),
                       lsi_item_name(it, "kind", kinds, (int)(sizeof kinds / sizeof kinds[0])),
                       find_value(r->d, value)};
    if (it->st != LS_OK) return it->st;
    if (value >= 0 && e->value < 0)
        return lsi_item_refuse(it, "\"value\" is %d, which is not there", (int)value);
    if ((e->value >= 0) != (strcmp(e->kind, "value") == 0))
        return lsi_item_refuse(it, "\"value\" is %d: an edge by value has one, an edge by control -1",
                               (int)value);
    return LS_OK;
}

static ls_status read_edges(reader *r)
{
    void *items;
    const json_t *list = open_list(r, "edges", sizeof *r->d->edges, &items, &r->d->n_edges);

    r->d->edges = items;
    for (int32_t i = 0; r->plan.st == LS_OK && i < r->d->n_edges; i++) {
        lsi_item it = item_of(r, list, "edge", i);
        r->plan.st = read_edge(r, &it, &r->d->edges[i]);
    }
    return r->plan.st;
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

static ls_status read_buffer(lsi_item *it, ls_doc_buffer *b)
{
    static const char *const kinds[] = {"arena", "scratch", "variable", "exchange"};
    const char *homes[] = {ls_home_name(LS_HOME_RANK), ls_home_name(LS_HOME_MACHINE),
                           ls_home_name(LS_HOME_SHARDED)};
    const int32_t n = it->d->n_nodes;

    *b = (ls_doc_buffer){.kind = lsi_item_name(it, "kind", kinds, 4),
                         .name = lsi_item_text(it, "name"),
                         .category = category(it),
                         .home = lsi_item_name(it, "home", homes, 3),
                         .offset = bytes(it, "offset"),
                         .bytes = bytes(it, "bytes"),
                         .exchange = small(it, "exchange", -1, INT32_MAX),
                         .first = small(it, "first", 0, n - 1),
                         .last = small(it, "last", 0, n - 1)};
    if (it->st != LS_OK) return it->st;
    if (b->first > b->last)
        return lsi_item_refuse(it, "it is in use from node %d back to node %d", (int)b->first, (int)b->last);
    if ((b->exchange >= 0) != (strcmp(b->kind, "exchange") == 0))
        return lsi_item_refuse(it, "\"exchange\" is %d for a buffer of kind %s", (int)b->exchange, b->kind);
    return LS_OK;
}

static ls_status read_buffers(reader *r)
{
    void *items;
    const json_t *list = open_list(r, "buffers", sizeof *r->d->buffers, &items, &r->d->n_buffers);

    r->d->buffers = items;
    for (int32_t i = 0; r->plan.st == LS_OK && i < r->d->n_buffers; i++) {
        lsi_item it = item_of(r, list, "buffer", i);
        r->plan.st = read_buffer(&it, &r->d->buffers[i]);
    }
    return r->plan.st;
}

/* Who made a value, views looked through, and where it lies: known when nodes and buffers are. */
static ls_status link_values(reader *r)
{
    const json_t *list = json_object_get(r->plan.o, "values");

    for (int32_t i = 0; r->plan.st == LS_OK && i < r->d->n_values; i++) {
        ls_doc_value *v = &r->d->values[i];
        lsi_item it = item_of(r, list, "value", i);
        const int32_t made_by = v->node, node = node_at(r, &it, "node", true);
        v->buffer = small(&it, "buffer", -1, r->d->n_buffers - 1);
        v->node = node;
        if (it.st == LS_OK && made_by >= 0 && node != made_by)
            lsi_item_refuse(&it, "node %d makes it, and \"node\" is another", (int)r->d->nodes[made_by].id);
        if (it.st == LS_OK && node >= 0 && strcmp(v->kind, "node") != 0)
            lsi_item_refuse(&it, "\"node\" is %d for an %s, which none makes", (int)r->d->nodes[node].id,
                            v->kind);
        r->plan.st = it.st;
    }
    return r->plan.st;
}

/* -- collectives ------------------------------------------------------------------------------------------
 */

/* The nodes of this rank that must have run. */
static void read_after(const reader *r, lsi_item *it, ls_doc_collective *c)
{
    const json_t *list = lsi_item_list(it, "waits_for");
    char shown[LS_JSON_SHOWN];

    c->after = room(it, json_array_size(list), sizeof *c->after);
    c->n_after = c->after != NULL ? (int32_t)json_array_size(list) : 0;
    for (int32_t k = 0; it->st == LS_OK && k < c->n_after; k++) {
        const json_t *v = json_array_get(list, (size_t)k);
        const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        const place *p = id < 0 || id > INT32_MAX ? NULL
                                                  : bsearch(&(place){(int32_t)id, 0}, r->places,
                                                            (size_t)r->d->n_nodes, sizeof *r->places, by_id);
        c->after[k] = p != NULL ? p->at : -1;
        if (!json_is_integer(v))
            lsi_item_refuse(it, "waits_for %d is %s, must be the id of a node", (int)k,
                            ls_json_show(v, shown));
        else if (p == NULL)
            lsi_item_refuse(it, "it waits for node %" PRId64 ", which is not there", id);
        else if (p->at >= c->start)
            lsi_item_refuse(it, "it waits for node %" PRId64 ", which runs after its start", id);
    }
}

static ls_status read_collective(const reader *r, lsi_item *it, ls_doc_collective *c)
{
    const char *kinds[LS_COLL_BARRIER];

    for (int k = 0; k < LS_COLL_BARRIER; k++) kinds[k] = ls_collective_name((ls_collective)(k + 1));
    *c = (ls_doc_collective){.kind = lsi_item_name(it, "kind", kinds, LS_COLL_BARRIER),
                             .bucket = small(it, "bucket", -1, INT32_MAX),
                             .bytes = bytes(it, "bytes"),
                             .start = node_at(r, it, "start", false),
                             .end = node_at(r, it, "end", false)};
    if (it->st == LS_OK && c->end < c->start && !r->d->nodes[c->end].carried)
        lsi_item_refuse(it, "it ends with node %d, which runs before its start, node %d",
                        (int)r->d->nodes[c->end].id, (int)r->d->nodes[c->start].id);
    read_after(r, it, c);
    return it->st;
}

static ls_status read_collectives(reader *r)
{
    void *items;
    const json_t *list = open_list(r, "collectives", sizeof *r->d->collectives, &items, &r->d->n_collectives);

    r->d->collectives = items;
    for (int32_t i = 0; r->plan.st == LS_OK && i < r->d->n_collectives; i++) {
        lsi_item it = item_of(r, list, "collective", i);
        r->plan.st = read_collective(r, &it, &r->d->collectives[i]);
    }
    return r->plan.st;
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

/* The total is the sum of the parts. */
static void check_total(lsi_item *it, const ls_plan_memory *m)
{
    const size_t parts[] = {m->weights, m->gradients, m->optimizer, m->activations, m->scratch, m->comm};
    size_t left = m->total;

    for (size_t i = 0; it->st == LS_OK && i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i] > left) lsi_item_refuse(it, "\"total\" is %zu, less than its parts together", m->total);
        left -= parts[i];
    }
    if (it->st == LS_OK && left > 0)
        lsi_item_refuse(it, "\"total\" is %zu, %zu more than its parts together", m->total, left);
}

static ls_status read_memory(const reader *r, ls_plan_memory *m)
{
    lsi_item it = {r->d, json_object_get(r->plan.o, "memory"), "memory", -1, r->plan.err, LS_OK};

    *m = (ls_plan_memory){.weights = bytes(&it, "weights"),
                          .gradients = bytes(&it, "gradients"),
                          .optimizer = bytes(&it, "optimizer"),
                          .activations = bytes(&it, "activations"),
                          .scratch = bytes(&it, "scratch"),
                          .comm = bytes(&it, "comm"),
                          .total = bytes(&it, "total")};
    check_total(&it, m);
    return it.st;
}

static ls_status read_head(reader *r)
{
    static const char *const parts[] = {"step", "gradients", "update", "evaluation"};
    lsi_item *it = &r->plan;
    ls_document *d = r->d;
    const char *hash;

    d->part = lsi_item_name(it, "part", parts, 4);
    d->stage = small(it, "stage", 0, INT32_MAX);
    d->batch = lsi_item_whole(it, "batch", 1, INT64_MAX);
    d->runs = lsi_item_whole(it, "runs_per_step", 1, INT64_MAX);
    d->flops = lsi_item_number(it, "flops");
    d->arena_bytes = bytes(it, "arena_bytes");
    hash = lsi_item_text(it, "hash");
    if (it->st == LS_OK && (strlen(hash) != 16 || strspn(hash, "0123456789abcdef") != 16))
        lsi_item_refuse(it, "\"hash\" is \"%.40s\", must be 16 digits of 0 to 9 and a to f", hash);
    d->hash = strtoull(hash, NULL, 16);
    return it->st;
}

ls_status ls_document_read(ls_document *d, const json_t *plan, ls_err *err)
{
    reader r = {d, {d, plan, "the plan", -1, err, LS_OK}, NULL};
    ls_status st = LS_OK;

    *d = (ls_document){0};
    LS_TRY(ls_arena_create(&d->arena, LS_MEM_CLI, err));
    LS_TRY(read_head(&r));
    LS_TRY(read_memory(&r, &d->memory));
    LS_TRY(read_values(&r));
    LS_TRY(read_nodes(&r));
    LS_TRY(read_edges(&r));
    LS_TRY(read_buffers(&r));
    LS_TRY(link_values(&r));
    LS_TRY(read_collectives(&r));
    LS_TRY(lsi_document_check(d, err));
out:
    return st;
}
