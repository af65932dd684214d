/* memory.c: one arena; offsets from lifetimes.
 *
 * Needs: the order, and bytes of values and scratch.  Leaves: offsets, beside the graph.
 *
 * 1. Values that share memory are joined into one buffer: views, the versions of a variable, and results that
 * may be written over an operand that dies in the same node.
 * 2. A buffer lives from the node that makes it to the last that reads it.  Time is the order of the compute
 *    queue: a node of another queue may run at any time between what it waits for and what waits for it.
 *    Inputs and fetched values live for the whole step, since the host touches them before and after.  What
 * lies in the buffer of a collective has none here.
 * 3. Buffers of inputs and fetched values lie at the beginning, one behind the other: they are the plan's
 *    between two runs, too, while plans that run in turn may use the rest in turn.
 * 4. All others share what is behind them, as their lifetimes let them (place.c).  Where nodes may run side
 * by side, it rests for some nodes in between (apart.c). */
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "passes/place.h"

#define ALIGN 64

typedef ls_memory_buffer buffer;

typedef struct planner {
    const ls_graph *g;
    const ls_schedule *s;
    const size_t *value_bytes;
    int32_t *of_value;     /* buffer of each value, or -1: in a variable, or never used */
    int32_t *var;          /* variable whose memory the value is in, or -1 */
    int32_t *last_use;     /* last position that reads each value */
    int32_t *from, *until; /* per position: when its node may run */
    int32_t *position;     /* per node, in the schedule; -1: not in it */
    buffer *b;
    int32_t n;
} planner;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* -- when nodes may run -----------------------------------------------------------------------------------
 */

/* Where in the schedule the node that made a value is, views looked through; -1: it is an input or variable.
 */
static int32_t made_at(const planner *p, int32_t value)
{
    const int32_t node = p->g->values[ls_graph_storage(p->g, value)]->node;

    return node >= 0 ? p->position[node] : -1;
}

static bool computes(const planner *p, int32_t pos)
{
    return p->g->nodes[p->s->order[pos]]->queue == LS_QUEUE_COMPUTE;
}

/* `pos` comes after `before`, which is earlier in the schedule. */
static void narrow(const planner *p, int32_t before, int32_t pos)
{
    const int32_t after = computes(p, before) ? before + 1 : p->from[before];

    if (!computes(p, pos) && after > p->from[pos]) p->from[pos] = after;
    if (!computes(p, before) && computes(p, pos) && pos - 1 < p->until[before]) p->until[before] = pos - 1;
}

/* Edges lead forward in the schedule, so one sweep finds the beginnings.  Ends of what waits for another
 * queue's node only are not narrowed: they are few and small. */
static void find_times(const planner *p)
{
    const ls_graph *g = p->g;

    for (int32_t i = 0; i < g->n_nodes; i++) p->position[i] = -1;
    for (int32_t pos = 0; pos < p->s->n; pos++) {
        p->position[p->s->order[pos]] = pos;
        p->from[pos] = computes(p, pos) ? pos : 0;
        p->until[pos] = computes(p, pos) ? pos : p->s->n;
    }
    for (int32_t pos = 0; pos < p->s->n; pos++) {
        const ls_node *n = g->nodes[p->s->order[pos]];
        for (int k = 0; k < n->n_in; k++)
            if (made_at(p, n->in[k]) >= 0) narrow(p, made_at(p, n->in[k]), pos);
    }
    for (int32_t i = 0; i < g->n_edges; i++) {
        const int32_t a = p->position[g->edges[i].from], b = p->position[g->edges[i].to];
        if (a >= 0 && b >= 0) narrow(p, a, b);
    }
}

/* Every use of a view is a use of what it views. */
static void find_last_uses(planner *p)
{
    const ls_graph *g = p->g;

    for (int32_t i = 0; i < g->n_values; i++) p->last_use[i] = -1;
    for (int32_t pos = 0; pos < p->s->n; pos++) {
        const ls_node *n = g->nodes[p->s->order[pos]];
        for (int k = 0; k < n->n_in; k++) {
            int32_t *last = &p->last_use[ls_graph_storage(g, n->in[k])];
            if (p->until[pos] > *last) *last = p->until[pos];
        }
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->fetch || g->values[i]->kind == LS_VALUE_INPUT)
            p->last_use[ls_graph_storage(g, i)] = p->s->n;
}

static int32_t new_buffer(planner *p, size_t bytes, int32_t first, int32_t last, ls_category category)
{
    p->b[p->n] = (buffer){
        .bytes = aligned(bytes), .first = first, .last = last < first ? first : last, .category = category};
    return p->n++;
}

/* The operand that output 0 of node n may overwrite, or -1. */
static int32_t overwritable(const planner *p, const ls_node *n, int32_t pos)
{
    int candidates = n->op->pw != LS_PW_NONE ? n->n_in : 1;

    if (!(n->op->flags & LS_OP_INPLACE) || n->queue != LS_QUEUE_COMPUTE) return -1;
    for (int k = 0; k < candidates && k < n->n_in; k++) {
        int32_t v = ls_graph_storage(p->g, n->in[k]);
        bool read_twice = false;
        if (p->of_value[v] < 0 || p->last_use[v] != pos) continue;
        if (p->value_bytes[v] != p->value_bytes[n->out[0]]) continue;
        if (p->g->values[n->in[k]]->layout != p->g->values[n->out[0]]->layout) continue;
        if (p->g->values[n->in[k]]->dtype != p->g->values[n->out[0]]->dtype) continue;
        /* A second operand in the same memory under another shape could be read after it was overwritten. */
        for (int j = 0; j < n->n_in; j++)
            if (j != k && p->of_value[ls_graph_storage(p->g, n->in[j])] == p->of_value[v] &&
                n->in[j] != n->in[k])
                read_twice = true;
        if (!read_twice) return v;
    }
    return -1;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* What an update makes of a value that is no variable's lies where that was. */
static void keep_longer(const planner *p, int32_t b, int32_t last)
{
    LS_BUG_IF(b < 0);
    if (last > p->b[b].last) p->b[b].last = last;
}

/* When the node's outputs may first be written: those of a wait, by the collective that it waits for. */
static int32_t begins(const planner *p, const ls_node *n, int32_t pos)
{
    const bool early = n->n_in > 0 && (n->op->flags & LS_OP_WAIT) && !ls_collective_copies(n);
    const int32_t start = early ? p->g->values[n->in[0]]->node : -1;

    return start >= 0 && p->position[start] >= 0 ? p->from[p->position[start]] : p->from[pos];
}

static void place_output(planner *p, const ls_node *n, int k, int32_t pos)
{
    int32_t v = n->out[k];
    int in = n->op->alias != NULL ? n->op->alias(n->n_in, n->attr, k) : -1;
    int32_t victim;

    if (in >= 0) {
        int32_t old = ls_graph_storage(p->g, n->in[in]);
        p->var[v] = p->var[old];
        p->of_value[v] = p->of_value[old];
        if (p->var[v] < 0) keep_longer(p, p->of_value[v], larger(p->last_use[v], p->until[pos]));
        return;
    }
    if (p->g->values[v]->buffer >= 0 || p->g->values[v]->staged) return;
    victim = k == 0 ? overwritable(p, n, pos) : -1;
    if (victim >= 0) {
        buffer *b = &p->b[p->of_value[victim]];
        p->of_value[v] = p->of_value[victim];
        if (p->last_use[v] > b->last) b->last = p->last_use[v];
        if (b->last < pos) b->last = pos;
        return;
    }
    p->of_value[v] = new_buffer(p, p->value_bytes[v], begins(p, n, pos),
                                larger(p->last_use[v], p->until[pos]), p->g->values[v]->category);
}

static void make_buffers(planner *p, const size_t *scratch_bytes, int32_t *scratch)
{
    const ls_graph *g = p->g;

    for (int32_t i = 0; i < g->n_values; i++) {
        p->of_value[i] = p->var[i] = -1;
        if (g->values[i]->kind == LS_VALUE_VAR) p->var[i] = g->values[i]->var;
        if (g->values[i]->kind == LS_VALUE_INPUT)
            p->of_value[i] = new_buffer(p, p->value_bytes[i], 0, p->s->n, LS_CAT_ACTIVATION);
    }
    for (int32_t pos = 0; pos < p->s->n; pos++) {
        const ls_node *n = g->nodes[p->s->order[pos]];
        for (int k = 0; k < n->n_out; k++) place_output(p, n, k, pos);
        scratch[pos] = new_buffer(p, scratch_bytes[pos], p->from[pos], p->until[pos], LS_CAT_SCRATCH);
    }
    for (int32_t i = 0; i < g->n_values; i++) {
        int32_t root = ls_graph_storage(g, i);
        p->of_value[i] = p->of_value[root];
        p->var[i] = p->var[root];
        if (p->of_value[i] >= 0 && (g->values[i]->fetch || g->values[i]->kind == LS_VALUE_INPUT))
            p->b[p->of_value[i]].kept = true;
    }
}

/* -- placing ----------------------------------------------------------------------------------------------
 */

/* What may be added to the arena so that nodes can run side by side: LOCKSTEP_APART percent. */
static size_t room_apart(size_t arena)
{
    const char *given = getenv("LOCKSTEP_APART");
    const double percent = given != NULL ? atof(given) : 3;

    return percent > 0 ? (size_t)((double)arena / 100 * percent) + ((size_t)32 << 20) : 0;
}

/* Memory that is used again at once ties nodes to each other that have nothing else to do with each other. So
 * for as many nodes as cost little more memory it rests. */
static ls_status place_apart(const planner *p, const int32_t *scratch, ls_memory *m, ls_err *err)
{
    static const int32_t tries[] = {40, 20, 10, 5, 3, 2, 1, 0};
    const lsi_users users = {p->g, p->s, p->position, p->of_value, scratch};
    const size_t most = m->arena_bytes + room_apart(m->arena_bytes);
    size_t live;
    ls_status st = LS_OK;

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        m->apart = tries[i];
        LS_TRY(lsi_rest(&users, tries[i], p->b, p->n, err));
        LS_TRY(lsi_place(p->b, p->n, &m->arena_bytes, &live, err));
        if (m->arena_bytes <= most) break;
    }
out:
    return st;
}

/* What the arena holds at the moment when most of it is in use; its first part is in use always. */
static void book_categories(const planner *p, ls_memory *m)
{
    size_t best = 0, booked = 0;

    for (int32_t pos = 0; pos <= p->s->n; pos++) {
        size_t sum[LS_CAT_N] = {0}, all = 0;
        for (int32_t i = 0; i < p->n; i++) {
            if (p->b[i].kept || p->b[i].first > pos || p->b[i].last < pos) continue;
            sum[p->b[i].category] += p->b[i].bytes;
            all += p->b[i].bytes;
        }
        if (all <= best) continue;
        best = all;
        memcpy(m->by_category, sum, sizeof sum);
    }
    for (int32_t i = 0; i < p->n; i++)
        if (p->b[i].kept) m->kept_by_category[p->b[i].category] += p->b[i].bytes;
    for (int c = 0; c < LS_CAT_N; c++) {
        m->by_category[c] += m->kept_by_category[c];
        m->kept_bytes += m->kept_by_category[c];
        booked += m->by_category[c];
    }
    m->by_category[LS_CAT_ACTIVATION] += m->arena_bytes - booked;
}

ls_status ls_pass_memory(const ls_graph *g, const ls_schedule *s, const size_t *value_bytes,
                         const size_t *scratch_bytes, ls_memory *out, ls_err *err)
{
    ls_status st = LS_OK;
    size_t nv = (size_t)g->n_values + 1, ns = (size_t)s->n + 1, nb = nv + ns;
    planner p = {.g = g, .s = s, .value_bytes = value_bytes};
    int32_t *scratch = ls_alloc(LS_MEM_PLAN, sizeof *scratch * ns);

    *out = (ls_memory){0};
    p.of_value = ls_alloc(LS_MEM_PLAN, sizeof *p.of_value * nv);
    p.var = ls_alloc(LS_MEM_PLAN, sizeof *p.var * nv);
    p.last_use = ls_alloc(LS_MEM_PLAN, sizeof *p.last_use * nv);
    p.from = ls_alloc(LS_MEM_PLAN, sizeof *p.from * ns);
    p.until = ls_alloc(LS_MEM_PLAN, sizeof *p.until * ns);
    p.position = ls_alloc(LS_MEM_PLAN, sizeof *p.position * ((size_t)g->n_nodes + 1));
    p.b = ls_alloc(LS_MEM_PLAN, sizeof *p.b * nb);
    out->offset = ls_alloc(LS_MEM_PLAN, sizeof *out->offset * nv);
    out->scratch = ls_alloc(LS_MEM_PLAN, sizeof *out->scratch * ns);
    if (scratch == NULL || p.of_value == NULL || p.var == NULL || p.last_use == NULL || p.from == NULL ||
        p.until == NULL || p.position == NULL || p.b == NULL || out->offset == NULL || out->scratch == NULL) {
        st = ls_fail(err, LS_NOMEM, "memory plan: no memory");
        goto out;
    }
    find_times(&p);
    find_last_uses(&p);
    make_buffers(&p, scratch_bytes, scratch);
    LS_TRY(lsi_place(p.b, p.n, &out->arena_bytes, &out->live_bytes, err));
    if (s->side_by_side) LS_TRY(place_apart(&p, scratch, out, err));
    book_categories(&p, out);
    for (int32_t i = 0; i < g->n_values; i++)
        out->offset[i] = p.var[i] >= 0 || p.of_value[i] < 0 ? LS_IN_STATE : p.b[p.of_value[i]].offset;
    for (int32_t i = 0; i < s->n; i++) out->scratch[i] = p.b[scratch[i]].offset;
    out->var = p.var;
    out->buffers = p.b;
    out->n_buffers = p.n;
    out->buffer_of = p.of_value;
    p.var = p.of_value = NULL;
    p.b = NULL;
out:
    ls_free(scratch);
    ls_free(p.of_value);
    ls_free(p.var);
    ls_free(p.last_use);
    ls_free(p.from);
    ls_free(p.until);
    ls_free(p.position);
    ls_free(p.b);
    if (st != LS_OK) ls_memory_release(out);
    return st;
}

void ls_memory_release(ls_memory *m)
{
    ls_free(m->offset);
    ls_free(m->var);
    ls_free(m->scratch);
    ls_free(m->buffers);
    ls_free(m->buffer_of);
    *m = (ls_memory){0};
}
