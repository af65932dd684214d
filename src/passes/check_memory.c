/* check_memory.c: proves that nothing is written over a value that is still needed. */
#include "ops/ops.h"
#include "passes/check_internal.h"

enum { ARENA = -1, STAGING = -2 };
/* A reader that comes when the run is over: the host fetches values, and an input is as it wrote it in later
 * runs, too. */
enum { HOST = -1 };

/* Bytes [lo, hi) of the arena, of staging memory, or of the buffer of a collective. */
typedef struct region {
    int32_t buffer;
    size_t lo, hi;
} region;

typedef struct proof {
    const ls_graph *g;
    const ls_schedule *s;
    const ls_memory *m;
    const size_t *value_bytes;
    lsi_relation r;
    region *of;                                   /* per value that has memory of its own; empty for others */
    int32_t *first_reader, *next_reader, *reader; /* of values' memory, views included; HOST: see there */
    int32_t n_readers;
    int32_t *begins; /* per node: itself; of one that waits for a collective, the node that started it */
} proof;

static bool overlap(const region *a, const region *b)
{
    return a->buffer == b->buffer && a->lo < b->hi && b->lo < a->hi;
}

/* The node that started what `n` waits for: the one whose token it reads. */
static int32_t start_of(const ls_graph *g, const ls_node *n)
{
    const int32_t from = n->n_in > 0 ? g->values[n->in[0]]->node : -1;

    if (!(n->op->flags & LS_OP_WAIT) || from < 0 || g->nodes[from]->op->queue != LS_QUEUE_COMM) return n->id;
    if (ls_collective_copies(n)) return n->id;
    return from;
}

static region region_of(const proof *p, int32_t v)
{
    const ls_vinfo *x = p->g->values[v];

    if (ls_graph_storage(p->g, v) != v || (x->node >= 0 && p->g->nodes[x->node]->dead)) return (region){0};
    if (x->buffer >= 0) return (region){x->buffer, x->at, x->at + p->value_bytes[v]};
    if (x->staged) return (region){STAGING, x->at, x->at + p->value_bytes[v]};
    if (p->m->var[v] >= 0 || p->m->offset[v] == LS_IN_STATE) return (region){0};
    return (region){ARENA, p->m->offset[v], p->m->offset[v] + p->value_bytes[v]};
}

static bool is_hosts(const ls_vinfo *v)
{
    return v->fetch || v->kind == LS_VALUE_INPUT;
}

static void add_reader(proof *p, int32_t value, int32_t reader)
{
    const int32_t root = ls_graph_storage(p->g, value);

    p->reader[p->n_readers] = reader;
    p->next_reader[p->n_readers] = p->first_reader[root];
    p->first_reader[root] = p->n_readers++;
}

static void find_readers(proof *p)
{
    for (int32_t i = 0; i < p->g->n_values; i++) {
        p->of[i] = region_of(p, i);
        p->first_reader[i] = -1;
    }
    for (int32_t i = 0; i < p->s->n; i++) {
        const ls_node *n = p->g->nodes[p->s->order[i]];
        p->begins[n->id] = start_of(p->g, n);
        for (int k = 0; k < n->n_in; k++) add_reader(p, n->in[k], n->id);
    }
    for (int32_t i = 0; i < p->g->n_values; i++)
        if (is_hosts(p->g->values[i])) add_reader(p, i, HOST);
}

/* Bytes that a node writes, from when `begins` runs on; `made` is the value it makes there, -1: scratch. */
typedef struct writing {
    int32_t writer, begins, made;
    region bytes;
} writing;

static ls_status refuse(const proof *p, const writing *w, int32_t v, int32_t reader, ls_err *err)
{
    char first[LSI_NODE_NAME], second[LSI_NODE_NAME];

    return ls_fail(
        err, LS_INVALID,
        "plan check: %s writes over value %d (\"%s\"), which %s still needs: no edge or queue puts "
        "one before the other",
        lsi_node_name(p->g, w->writer, first), (int)v,
        p->g->values[v]->name != NULL ? p->g->values[v]->name : "",
        reader != HOST ? lsi_node_name(p->g, reader, second) : "the host");
}

/* Whether the writer is over before value v comes to be. */
static bool before_value(const proof *p, int32_t writer, int32_t v)
{
    const int32_t producer = p->g->values[v]->node;

    return producer >= 0 && lsi_before(&p->r, writer, p->begins[producer]);
}

/* Memory where v lies is written: before v, or after all of its readers (the writer may be one itself). */
static ls_status prove_value(const proof *p, const writing *w, int32_t v, ls_err *err)
{
    const ls_vinfo *x = p->g->values[v];

    if (before_value(p, w->writer, v)) return LS_OK;
    if (x->node >= 0 && x->node != w->writer && !lsi_before(&p->r, x->node, w->begins))
        return refuse(p, w, v, x->node, err);
    for (int32_t i = p->first_reader[v]; i >= 0; i = p->next_reader[i])
        if (p->reader[i] == HOST ||
            (p->reader[i] != w->writer && !lsi_before(&p->r, p->reader[i], w->begins)))
            return refuse(p, w, v, p->reader[i], err);
    return LS_OK;
}

/* What the run before has given is on its way until a carried wait is over: nothing is written there before.
 * The two buffers of a bucket are neighbours: what ranks give, and what comes. */
static ls_status prove_carried(const proof *p, const writing *w, ls_err *err)
{
    char first[LSI_NODE_NAME], second[LSI_NODE_NAME];

    for (int32_t i = 0; w->bytes.buffer >= 0 && i < p->s->n; i++) {
        const ls_node *n = p->g->nodes[p->s->order[i]];
        if (!n->carried || !(n->op->flags & LS_OP_COLLECTIVE) || n->id == w->writer) continue;
        if (p->of[n->out[0]].buffer / 2 != w->bytes.buffer / 2 || lsi_before(&p->r, n->id, w->begins))
            continue;
        return ls_fail(
            err, LS_INVALID,
            "plan check: %s writes into a bucket that the run before may still exchange: no edge or "
            "queue puts it behind %s",
            lsi_node_name(p->g, w->writer, first), lsi_node_name(p->g, n->id, second));
    }
    return LS_OK;
}

static ls_status prove_write(const proof *p, const writing *w, ls_err *err)
{
    ls_status st = prove_carried(p, w, err);

    for (int32_t v = 0; v < p->g->n_values && st == LS_OK; v++)
        if (v != w->made && p->of[v].hi > p->of[v].lo && overlap(&w->bytes, &p->of[v]))
            st = prove_value(p, w, v, err);
    return st;
}

static region scratch_of(const proof *p, int32_t i, const size_t *bytes)
{
    return (region){ARENA, p->m->scratch[i], p->m->scratch[i] + bytes[i]};
}

/* Scratch memory is nobody else's while the node may run; nodes of one queue run one after the other. */
static ls_status prove_scratch(const proof *p, int32_t i, const size_t *bytes, ls_err *err)
{
    const ls_node *a = p->g->nodes[p->s->order[i]];
    const region mine = scratch_of(p, i, bytes);
    char first[LSI_NODE_NAME], second[LSI_NODE_NAME];

    for (int32_t k = 0; k < i && bytes[i] > 0; k++) {
        const ls_node *b = p->g->nodes[p->s->order[k]];
        const region other = scratch_of(p, k, bytes);
        if (a->queue == b->queue || !overlap(&mine, &other) || lsi_before(&p->r, b->id, a->id)) continue;
        return ls_fail(err, LS_INVALID,
                       "plan check: %s and %s have the same scratch memory: no edge or queue puts one before "
                       "the other",
                       lsi_node_name(p->g, b->id, first), lsi_node_name(p->g, a->id, second));
    }
    return LS_OK;
}

static ls_status prove(const proof *p, const size_t *scratch_bytes, ls_err *err)
{
    ls_status st = LS_OK;

    for (int32_t i = 0; i < p->s->n && st == LS_OK; i++) {
        const ls_node *n = p->g->nodes[p->s->order[i]];
        const region scratch = scratch_of(p, i, scratch_bytes);
        st = prove_scratch(p, i, scratch_bytes, err);
        if (st == LS_OK && scratch_bytes[i] > 0)
            st = prove_write(p, &(writing){n->id, n->id, -1, scratch}, err);
        for (int k = 0; k < n->n_out && st == LS_OK; k++)
            if (p->of[n->out[k]].hi > p->of[n->out[k]].lo)
                st = prove_write(p, &(writing){n->id, p->begins[n->id], n->out[k], p->of[n->out[k]]}, err);
    }
    return st;
}

/* What the host touches between runs, and nothing else, lies in the first part of the arena: other plans use
 * the rest meanwhile. */
static ls_status prove_kept(const proof *p, const size_t *scratch_bytes, ls_err *err)
{
    const size_t kept = p->m->kept_bytes;
    char name[LSI_NODE_NAME];

    for (int32_t v = 0; v < p->g->n_values; v++) {
        const region *at = &p->of[ls_graph_storage(p->g, v)];
        if (at->buffer == ARENA && at->hi > at->lo && is_hosts(p->g->values[v]) && at->hi > kept)
            return ls_fail(
                err, LS_INVALID,
                "plan check: value %d (\"%s\"), which the host needs between runs, lies in memory that "
                "other plans use",
                (int)v, p->g->values[v]->name != NULL ? p->g->values[v]->name : "");
    }
    for (int32_t i = 0; i < p->s->n; i++)
        if (scratch_bytes[i] > 0 && p->m->scratch[i] < kept)
            return ls_fail(err, LS_INVALID, "plan check: scratch of %s lies among inputs and results",
                           lsi_node_name(p->g, p->g->nodes[p->s->order[i]]->id, name));
    return LS_OK;
}

/* Nodes of the host's see its memory alone, those of the device the device's; a copy sees one and makes the
 * other. */
static ls_status prove_sides(const proof *p, ls_err *err)
{
    char name[LSI_NODE_NAME];

    for (int32_t i = 0; i < p->s->n; i++) {
        const ls_node *n = p->g->nodes[p->s->order[i]];
        const bool host = n->queue == LS_QUEUE_HOST;
        const bool in = host || n->op == &ls_op_to_device, out = host || n->op == &ls_op_to_host;
        for (int k = 0; k < n->n_in + n->n_out; k++) {
            const int32_t v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
            if (p->g->values[ls_graph_storage(p->g, v)]->staged == (k < n->n_in ? in : out)) continue;
            if (k < n->n_in && !ls_node_reads(n, k)) continue;
            return ls_fail(err, LS_INVALID, "plan check: value %d of %s is in memory that it cannot see",
                           (int)v, lsi_node_name(p->g, n->id, name));
        }
    }
    return LS_OK;
}

static bool has_staged(const ls_graph *g)
{
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->staged) return true;
    return false;
}

ls_status ls_check_memory(const ls_graph *g, const ls_schedule *s, const ls_memory *m,
                          const size_t *value_bytes, const size_t *scratch_bytes, ls_err *err)
{
    proof p = {.g = g, .s = s, .m = m, .value_bytes = value_bytes};
    const size_t values = (size_t)g->n_values + 1;
    size_t reads = values; /* all may be the host's */
    ls_status st = LS_OK;

    for (int32_t i = 0; i < s->n; i++) reads += (size_t)g->nodes[s->order[i]]->n_in;
    p.of = ls_alloc(LS_MEM_PLAN, sizeof *p.of * values);
    p.first_reader = ls_alloc(LS_MEM_PLAN, sizeof *p.first_reader * values);
    p.next_reader = ls_alloc(LS_MEM_PLAN, sizeof *p.next_reader * reads);
    p.reader = ls_alloc(LS_MEM_PLAN, sizeof *p.reader * reads);
    p.begins = ls_alloc(LS_MEM_PLAN, sizeof *p.begins * ((size_t)g->n_nodes + 1));
    if (p.of == NULL || p.first_reader == NULL || p.next_reader == NULL || p.reader == NULL ||
        p.begins == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan check: no memory");
        goto out;
    }
    LS_TRY(lsi_relation_make(&p.r, g, s, err));
    find_readers(&p);
    LS_TRY(prove_kept(&p, scratch_bytes, err));
    if (has_staged(g)) LS_TRY(prove_sides(&p, err));
    st = prove(&p, scratch_bytes, err);
out:
    lsi_relation_release(&p.r);
    ls_free(p.of);
    ls_free(p.first_reader);
    ls_free(p.next_reader);
    ls_free(p.reader);
    ls_free(p.begins);
    return st;
}
