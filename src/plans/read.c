/* read.c: a document back from JSON, for comparing and drawing it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/whole.h"
#include "plans/plans.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)

/* Where a node is in the order; sorted by id. */
typedef struct place {
    json_int_t id;
    int32_t at;
} place;

typedef struct reader {
    ls_document *d;
    const json_t *plan;
    ls_err *err;
    place *places; /* of all nodes */
} reader;

static ls_status wrong(const reader *r, const char *list, size_t i, const char *what)
{
    return ls_fail(r->err, LS_DATA, "%s %zu: %s; write the file anew with `lockstep plan ... --json`", list,
                   i, what);
}

/* The text of a member in the arena; "" where there is none. */
static const char *text(const reader *r, const json_t *o, const char *key)
{
    const char *from = json_string_value(json_object_get(o, key));
    const char *copy = from != NULL ? ls_arena_strdup(r->d->arena, from) : NULL;

    return copy != NULL ? copy : "";
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static json_int_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* The array called `key`, which must be there, and room for what it holds. */
static ls_status open_list(const reader *r, const char *key, size_t item_bytes, void *room, int32_t *n,
                           const json_t **list)
{
    void *items;

    *list = json_object_get(r->plan, key);
    if (!json_is_array(*list) || json_array_size(*list) > INT32_MAX / 2)
        return ls_fail(r->err, LS_DATA,
                       "the plan has no list \"%s\"; write the file anew with `lockstep plan "
                       "... --json`",
                       key);
    *n = (int32_t)json_array_size(*list);
    items = ls_arena_alloc(r->d->arena, item_bytes * ((size_t)*n + 1));
    if (items == NULL) return ls_fail(r->err, LS_NOMEM, "no memory for a plan");
    memcpy(room, &items, sizeof items);
    return LS_OK;
}

/* -- values -----------------------------------------------------------------------------------------------
 */

static bool read_shape(const json_t *list, ls_shape *s)
{
    if (!json_is_array(list) || json_array_size(list) > LS_MAX_RANK) return false;
    *s = (ls_shape){.rank = (int)json_array_size(list)};
    for (int i = 0; i < s->rank; i++) s->dim[i] = json_integer_value(json_array_get(list, (size_t)i));
    return true;
}

static ls_status read_values(reader *r)
{
    const json_t *list;
    ls_status st = open_list(r, "values", sizeof *r->d->values, &r->d->values, &r->d->n_values, &list);

    for (int32_t i = 0; st == LS_OK && i < r->d->n_values; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        ls_doc_value *v = &r->d->values[i];
        *v = (ls_doc_value){.id = (int32_t)whole(o, "id"),
                            .name = text(r, o, "name"),
                            .kind = text(r, o, "kind"),
                            .dtype = text(r, o, "dtype"),
                            .layout = text(r, o, "layout"),
                            .category = text(r, o, "category"),
                            .bytes = (size_t)whole(o, "bytes"),
                            .node = -1,
                            .buffer = -1,
                            .fetch = json_is_true(json_object_get(o, "fetch"))};
        if (!read_shape(json_object_get(o, "shape"), &v->shape))
            st = wrong(r, "value", (size_t)i, "no shape");
        if (st == LS_OK && i > 0 && v->id <= v[-1].id) st = wrong(r, "value", (size_t)i, "ids do not rise");
    }
    return st;
}

/* Values are in the order of their ids. */
static int32_t find_value(const ls_document *d, json_int_t id)
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

static ls_status read_ids(const reader *r, const json_t *list, size_t node, int32_t **out, int *n)
{
    *n = (int)json_array_size(list);
    *out = ls_arena_alloc(r->d->arena, sizeof **out * ((size_t)*n + 1));
    if (*out == NULL) return ls_fail(r->err, LS_NOMEM, "no memory for a plan");
    for (int k = 0; k < *n; k++) {
        const json_t *id = json_array_get(list, (size_t)k);
        (*out)[k] = json_is_integer(id) ? find_value(r->d, json_integer_value(id)) : -1;
        if ((*out)[k] < 0) return wrong(r, "node", node, "it names a value that is not there");
    }
    return LS_OK;
}

static ls_status read_nodes(reader *r)
{
    const json_t *list;
    ls_status st = open_list(r, "nodes", sizeof *r->d->nodes, &r->d->nodes, &r->d->n_nodes, &list);

    for (int32_t i = 0; st == LS_OK && i < r->d->n_nodes; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        ls_doc_node *n = &r->d->nodes[i];
        *n = (ls_doc_node){.id = (int32_t)whole(o, "id"),
                           .op = text(r, o, "op"),
                           .attributes = text(r, o, "attributes"),
                           .layer = text(r, o, "layer"),
                           .impl = text(r, o, "impl"),
                           .queue = text(r, o, "queue"),
                           .backward = json_is_true(json_object_get(o, "backward")),
                           .waits = json_is_true(json_object_get(o, "waits")),
                           .updates = json_is_true(json_object_get(o, "updates")),
                           .flops = number(o, "flops"),
                           .bytes = number(o, "bytes"),
                           .scratch_bytes = (size_t)whole(o, "scratch_bytes"),
                           .seconds = number(o, "seconds"),
                           .progress_s = number(o, "progress_s")};
        if (n->op[0] == '\0') st = wrong(r, "node", (size_t)i, "no op");
        if (st == LS_OK) st = read_ids(r, json_object_get(o, "inputs"), (size_t)i, &n->in, &n->n_in);
        if (st == LS_OK) st = read_ids(r, json_object_get(o, "outputs"), (size_t)i, &n->out, &n->n_out);
        for (int k = 0; st == LS_OK && k < n->n_out; k++) r->d->values[n->out[k]].node = i;
    }
    return st;
}

static int by_id(const void *a, const void *b)
{
    const json_int_t x = ((const place *)a)->id, y = ((const place *)b)->id;

    return x < y ? -1 : x > y;
}

/* Nodes are in the order in which they run, and there may be many edges. */
static ls_status sort_places(reader *r)
{
    r->places = ls_arena_alloc(r->d->arena, sizeof *r->places * ((size_t)r->d->n_nodes + 1));
    if (r->places == NULL) return ls_fail(r->err, LS_NOMEM, "no memory for a plan");
    for (int32_t i = 0; i < r->d->n_nodes; i++) r->places[i] = (place){r->d->nodes[i].id, i};
    qsort(r->places, (size_t)r->d->n_nodes, sizeof *r->places, by_id);
    return LS_OK;
}

static int32_t find_node(const place *places, int32_t n, json_int_t id)
{
    const place *p = bsearch(&(place){id, 0}, places, (size_t)n, sizeof *places, by_id);

    return p != NULL ? p->at : -1;
}

static ls_status read_edges(reader *r)
{
    ls_document *d = r->d;
    const json_t *list;
    place *places = r->places;
    ls_status st = open_list(r, "edges", sizeof *d->edges, &d->edges, &d->n_edges, &list);

    for (int32_t i = 0; st == LS_OK && i < d->n_edges; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        ls_doc_edge *e = &d->edges[i];
        *e = (ls_doc_edge){find_node(places, d->n_nodes, whole(o, "from")),
                           find_node(places, d->n_nodes, whole(o, "to")), text(r, o, "kind"),
                           find_value(d, whole(o, "value"))};
        if (e->from < 0 || e->to < 0) st = wrong(r, "edge", (size_t)i, "it names a node that is not there");
        /* Views are not in the list: the edge knows who made what they show. */
        else if (e->value >= 0)
            d->values[e->value].node = e->from;
    }
    return st;
}

/* -- memory and collectives -------------------------------------------------------------------------------
 */

/* Whether a buffer is in use from one node to the same or a later one. */
static bool in_order(const json_t *o, int32_t n_nodes)
{
    return whole(o, "first") >= 0 && whole(o, "first") <= whole(o, "last") && whole(o, "last") < n_nodes;
}

static ls_status read_buffers(reader *r)
{
    ls_document *d = r->d;
    const json_t *list;
    ls_status st = open_list(r, "buffers", sizeof *d->buffers, &d->buffers, &d->n_buffers, &list);

    for (int32_t i = 0; st == LS_OK && i < d->n_buffers; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        ls_doc_buffer *b = &d->buffers[i];
        *b = (ls_doc_buffer){.kind = text(r, o, "kind"),
                             .name = text(r, o, "name"),
                             .category = text(r, o, "category"),
                             .home = text(r, o, "home"),
                             .offset = (size_t)whole(o, "offset"),
                             .bytes = (size_t)whole(o, "bytes"),
                             .exchange = (int32_t)whole(o, "exchange"),
                             .first = (int32_t)whole(o, "first"),
                             .last = (int32_t)whole(o, "last")};
        if (whole(o, "offset") < 0 || whole(o, "bytes") < 0)
            st = wrong(r, "buffer", (size_t)i, "its offset and bytes are no sizes");
        else if (!in_order(o, d->n_nodes))
            st = wrong(r, "buffer", (size_t)i, "its first and last are no places of nodes in this order");
    }
    return st;
}

static ls_status read_after(const reader *r, const json_t *list, size_t at, ls_doc_collective *c)
{
    c->n_after = (int32_t)json_array_size(list);
    c->after = ls_arena_alloc(r->d->arena, sizeof *c->after * ((size_t)c->n_after + 1));
    if (c->after == NULL) return ls_fail(r->err, LS_NOMEM, "no memory for a plan");
    for (int32_t k = 0; k < c->n_after; k++) {
        c->after[k] =
            find_node(r->places, r->d->n_nodes, json_integer_value(json_array_get(list, (size_t)k)));
        if (c->after[k] < 0) return wrong(r, "collective", at, "it waits for a node that is not there");
    }
    return LS_OK;
}

static ls_status read_collectives(reader *r)
{
    ls_document *d = r->d;
    const json_t *list;
    ls_status st =
        open_list(r, "collectives", sizeof *d->collectives, &d->collectives, &d->n_collectives, &list);

    for (int32_t i = 0; st == LS_OK && i < d->n_collectives; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        ls_doc_collective *c = &d->collectives[i];
        *c = (ls_doc_collective){.kind = text(r, o, "kind"),
                                 .bucket = (int32_t)whole(o, "bucket"),
                                 .bytes = (size_t)whole(o, "bytes"),
                                 .start = find_node(r->places, d->n_nodes, whole(o, "start")),
                                 .end = find_node(r->places, d->n_nodes, whole(o, "end"))};
        if (c->start < 0 || c->end < c->start)
            st = wrong(r, "collective", (size_t)i, "its start and end are no nodes in this order");
        if (st == LS_OK) st = read_after(r, json_object_get(o, "waits_for"), (size_t)i, c);
    }
    return st;
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

static ls_status read_memory(const reader *r, const json_t *o, ls_plan_memory *m)
{
    static const char *const kinds[] = {"weights", "gradients", "optimizer", "activations",
                                        "scratch", "comm",      "total"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (whole(o, kinds[i]) < 0)
            return ls_fail(
                r->err, LS_DATA,
                "memory: %s is less than nothing; write the file anew with `lockstep plan ... --json`",
                kinds[i]);
    *m = (ls_plan_memory){.weights = (size_t)whole(o, "weights"),
                          .gradients = (size_t)whole(o, "gradients"),
                          .optimizer = (size_t)whole(o, "optimizer"),
                          .activations = (size_t)whole(o, "activations"),
                          .scratch = (size_t)whole(o, "scratch"),
                          .comm = (size_t)whole(o, "comm"),
                          .total = (size_t)whole(o, "total")};
    return LS_OK;
}

ls_status ls_document_read(ls_document *d, const json_t *plan, ls_err *err)
{
    reader r = {d, plan, err, NULL};
    const char *hash = json_string_value(json_object_get(plan, "hash"));
    ls_status st = LS_OK;

    *d = (ls_document){0};
    LS_TRY(ls_arena_create(&d->arena, LS_MEM_CLI, err));
    d->part = text(&r, plan, "part");
    d->stage = (int)whole(plan, "stage");
    d->batch = whole(plan, "batch");
    d->runs = whole(plan, "runs_per_step");
    d->flops = number(plan, "flops");
    d->arena_bytes = (size_t)whole(plan, "arena_bytes");
    d->hash = hash != NULL ? strtoull(hash, NULL, 16) : 0;
    LS_TRY(read_memory(&r, json_object_get(plan, "memory"), &d->memory));
    LS_TRY(read_values(&r));
    LS_TRY(read_nodes(&r));
    LS_TRY(sort_places(&r));
    LS_TRY(read_edges(&r));
    LS_TRY(read_buffers(&r));
    LS_TRY(read_collectives(&r));
out:
    return st;
}

/* -- files ------------------------------------------------------------------------------------------------
 */

static bool has_plans(const json_t *o)
{
    const char *event = json_string_value(json_object_get(o, "event"));

    return event != NULL && (strcmp(event, "document") == 0 || strcmp(event, "bench-export") == 0);
}

/* The first JSON value of the text that has plans; *o is the caller's, NULL: there is none. */
static ls_status find_plans(const char *text_, size_t length, const char *path, json_t **o, ls_err *err)
{
    size_t at = 0;

    for (*o = NULL; at < length;) {
        json_error_t why;
        json_t *value;
        if (strchr(" \t\r\n", text_[at]) != NULL && text_[at] != '\0') {
            at++;
            continue;
        }
        value = json_loadb(text_ + at, length - at, JSON_DISABLE_EOF_CHECK, &why);
        if (value == NULL)
            return ls_fail(err, LS_DATA, "%s: byte %zu: %s; a plan is what `lockstep plan ... --json` prints",
                           path, at + (size_t)(why.position > 0 ? why.position : 0), why.text);
        at += (size_t)why.position;
        if (has_plans(value)) {
            *o = value;
            return LS_OK;
        }
        json_decref(value);
    }
    return ls_fail(err, LS_DATA,
                   "%s: no plan is in it; it should be what `lockstep plan ... --json` prints, or a file of "
                   "`lockstep bench --export`",
                   path);
}

ls_status ls_document_parse(ls_document *d, const char *text_, size_t length, const char *path, int plan,
                            int *n_plans, ls_err *err)
{
    json_t *o = NULL;
    json_int_t format;
    ls_status st = LS_OK;

    *d = (ls_document){0};
    *n_plans = 0;
    LS_TRY(find_plans(text_, length, path, &o, err));
    format = strcmp(json_string_value(json_object_get(o, "event")), "document") == 0
                 ? whole(o, "format")
                 : whole(o, "plan_format");
    if (format != LS_PLANS_FORMAT) {
        st = ls_fail(err, LS_DATA, "%s: its plan has format %lld, this version reads %d; write it anew", path,
                     (long long)format, LS_PLANS_FORMAT);
        goto out;
    }
    *n_plans = (int)json_array_size(json_object_get(o, "plans"));
    if (plan >= *n_plans) {
        st = ls_fail(err, LS_DATA, "%s: it has no plan%s; write it anew with `lockstep plan ... --json`",
                     path, *n_plans > 0 ? " of this number" : "");
        goto out;
    }
    st = ls_document_read(d, json_array_get(json_object_get(o, "plans"), (size_t)plan), err);
    if (st != LS_OK) ls_fail_in(err, st, "%s", path);
out:
    json_decref(o);
    return st;
}

ls_status ls_document_open(ls_document *d, const char *path, int plan, int *n_plans, ls_err *err)
{
    char *text_ = NULL;
    size_t length;
    ls_status st = LS_OK;

    *d = (ls_document){0};
    *n_plans = 0;
    LS_TRY(ls_whole_file(&text_, &length, path, FILE_MAX_BYTES, err));
    LS_TRY(ls_document_parse(d, text_, length, path, plan, n_plans, err));
out:
    ls_free(text_);
    return st;
}
