/* schedule.c: one order for all nodes, the only place where one is made.
 *
 * Needs: all edges.  Leaves: the order, beside the graph.
 *
 * Edges by value and by control say what must be; the rules below choose among what may be.
 *   - Among nodes that are ready, the one that stands first in the trial's program goes first.
 *   - What starts an exchange, or adds a gradient up and so frees its memory, goes right behind what it
 * needs; and so does what is made for that alone, before what else could go: the sooner it travels, the less
 * of it is waited for, and nothing else is made meanwhile that must be kept.
 *   - What only moves values for its readers goes right before the first of them.
 *   - A constant is made when all else is there that its first reader needs.  It is ready at any time: by a
 * place of its own it would go as soon as nothing else can, and hold its memory until it is read.
 *   - What may wait for other ranks goes last, when nothing else is left to do; what needs its result follows
 * at once.  A barrier before updates is passed just after the first of the sums that these need has come:
 * they then run while the other sums are on their way.
 *   - Unless something wants the memory that it holds (rooms.c): then it goes where that stands. */
#include "base/grow.h"
#include "passes/passes.h"

/* -- edges ------------------------------------------------------------------------------------------------
 */

typedef struct edges {
    int32_t *to;   /* successor of edge e */
    int32_t *next; /* next edge of the same source, or -1 */
    size_t to_cap, next_cap;
    int32_t *head; /* first edge of each node */
    int32_t *wait; /* unfinished predecessors of each node */
    bool *asked;   /* nodes that are made when a reader asks for them, and have no edges here */
    int32_t n;
} edges;

static bool add_edge(edges *e, int32_t from, int32_t to)
{
    if (from == to) return true;
    if (!LS_GROW(LS_MEM_PLAN, e->to, e->n + 1, e->to_cap) ||
        !LS_GROW(LS_MEM_PLAN, e->next, e->n + 1, e->next_cap))
        return false;
    e->to[e->n] = to;
    e->next[e->n] = e->head[from];
    e->head[from] = e->n++;
    e->wait[to]++;
    return true;
}

/* A constant: nothing but its readers says when it is made. */
static bool is_constant(const ls_node *n)
{
    return !n->dead && n->n_in == 0 && !(n->op->flags & (LS_OP_EFFECT | LS_OP_WAIT));
}

/* Constants that no control edge concerns, and views of them. */
static void find_asked(const ls_graph *g, edges *e)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        e->asked[i] = is_constant(g->nodes[i]) || (g->nodes[i]->op->flags & LS_OP_VIEW);
    for (int32_t i = 0; i < g->n_edges; i++) e->asked[g->edges[i].from] = e->asked[g->edges[i].to] = false;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        const int32_t producer = n->n_in > 0 ? g->values[n->in[0]]->node : -1;
        if (n->dead || n->after >= 0) e->asked[i] = false;
        if (n->n_in > 0)
            e->asked[i] &= producer >= 0 && is_constant(g->nodes[producer]) && e->asked[producer];
    }
}

/* What it waits for without reading it: an edge of its own only when nobody rewrites any more (hold.c). */
static bool add_hold(const ls_graph *g, edges *e, const ls_node *n)
{
    const int32_t maker =
        n->after >= 0 && !(n->op->flags & LS_OP_VIEW) ? g->values[ls_graph_storage(g, n->after)]->node : -1;

    if (n->dead || maker < 0 || g->nodes[maker]->dead || e->asked[maker]) return true;
    return add_edge(e, maker, n->id);
}

static bool build_edges(const ls_graph *g, edges *e)
{
    find_asked(g, e);
    for (int32_t i = 0; i < g->n_nodes; i++) e->head[i] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        for (int k = 0; !n->dead && k < n->n_in; k++) {
            const int32_t producer = g->values[n->in[k]]->node;
            if (producer >= 0 && !e->asked[producer] && !add_edge(e, producer, i)) return false;
        }
        if (!add_hold(g, e, n)) return false;
    }
    for (int32_t i = 0; i < g->n_edges; i++) {
        const ls_edge *x = &g->edges[i];
        if (!g->nodes[x->from]->dead && !g->nodes[x->to]->dead && !add_edge(e, x->from, x->to)) return false;
    }
    return true;
}

/* -- what goes first --------------------------------------------------------------------------------------
 */

typedef struct key {
    bool late;  /* may wait for other ranks */
    int64_t at; /* four times the position, and a little before or behind */
} key;

enum { STEP = 4 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Behind the last of what makes the node's inputs. */
static int64_t behind_inputs(const ls_graph *g, const ls_node *n)
{
    int64_t last = -1;

    for (int k = 0; k < n->n_in; k++) {
        const int32_t producer = g->values[n->in[k]]->node;
        if (producer >= 0 && g->nodes[producer]->n_in > 0) last = larger(last, g->nodes[producer]->position);
    }
    return last >= 0 ? STEP * last + 1 : STEP * (int64_t)n->position;
}

/* The last wait among what makes the node's inputs; -1: none. */
static int64_t last_wait(const ls_graph *g, const ls_node *n)
{
    int64_t last = -1;

    for (int k = 0; k < n->n_in; k++) {
        const int32_t producer = g->values[n->in[k]]->node;
        if (producer >= 0 && (g->nodes[producer]->op->flags & LS_OP_WAIT))
            last = larger(last, g->nodes[producer]->position);
    }
    return last;
}

/* A barrier: behind the first wait that lets something go on that waits for the barrier, too. */
static int64_t barrier_place(const ls_graph *g, const edges *e, int32_t i)
{
    int64_t first = INT64_MAX;

    for (int32_t k = e->head[i]; k >= 0; k = e->next[k]) {
        const int64_t wait = last_wait(g, g->nodes[e->to[k]]);
        if (wait >= 0 && wait < first) first = wait;
    }
    return STEP * (first < INT64_MAX ? first : (int64_t)g->nodes[i]->position) + 1;
}

/* Whether nobody reads the node's results but what goes right behind it, perhaps after a move or a view. */
static bool is_for_eager(const ls_graph *g, const edges *e, int32_t i)
{
    for (int32_t k = e->head[i]; k >= 0; k = e->next[k]) {
        const int flags = (int)g->nodes[e->to[k]]->op->flags;
        if (flags & LS_OP_EAGER) continue;
        if (!(flags & (LS_OP_MOVE | LS_OP_VIEW)) || !is_for_eager(g, e, e->to[k])) return false;
    }
    return e->head[i] >= 0;
}

static key key_of(const ls_graph *g, const edges *e, int32_t i)
{
    const ls_node *n = g->nodes[i];

    if ((n->op->flags & LS_OP_WAIT) && !n->prompt)
        return (key){true, n->n_in > 0 ? STEP * (int64_t)n->position : barrier_place(g, e, i)};
    if ((n->op->flags & LS_OP_EAGER) || is_for_eager(g, e, i)) return (key){false, behind_inputs(g, n)};
    return (key){false, STEP * (int64_t)n->position};
}

/* Right before the first that comes after it; behind what it needs where nothing does. */
static key just_in_time(const ls_graph *g, const edges *e, int32_t i, const key *keys)
{
    key first = {true, INT64_MAX};

    for (int32_t k = e->head[i]; k >= 0; k = e->next[k]) {
        const key *next = &keys[e->to[k]];
        if (next->late < first.late || (next->late == first.late && next->at < first.at)) first = *next;
    }
    return first.at < INT64_MAX ? (key){first.late, first.at - 1}
                                : (key){false, behind_inputs(g, g->nodes[i])};
}

static bool comes_for_readers(const ls_node *n)
{
    return (n->op->flags & LS_OP_MOVE) || (n->n_in == 0 && !(n->op->flags & LS_OP_EFFECT));
}

static void make_keys(const ls_graph *g, const edges *e, key *keys)
{
    for (int32_t i = 0; i < g->n_nodes; i++) keys[i] = key_of(g, e, i);
    for (int32_t i = g->n_nodes - 1; i >= 0; i--)
        if (!g->nodes[i]->dead && comes_for_readers(g->nodes[i])) keys[i] = just_in_time(g, e, i, keys);
}

/* -- sorting ----------------------------------------------------------------------------------------------
 */

/* A binary heap of ready nodes, the one to go first on top. */
typedef struct heap {
    const key *keys;
    int32_t *a;
    int32_t n;
} heap;

static bool before(const key *keys, int32_t a, int32_t b)
{
    if (keys[a].late != keys[b].late) return keys[b].late;
    return keys[a].at != keys[b].at ? keys[a].at < keys[b].at : a < b;
}

static void heap_swap(heap *h, int32_t i, int32_t j)
{
    int32_t t = h->a[i];

    h->a[i] = h->a[j];
    h->a[j] = t;
}

static void heap_push(heap *h, int32_t node)
{
    int32_t i = h->n++;

    h->a[i] = node;
    for (; i > 0 && before(h->keys, h->a[i], h->a[(i - 1) / 2]); i = (i - 1) / 2)
        heap_swap(h, i, (i - 1) / 2);
}

static int32_t heap_pop(heap *h)
{
    int32_t top = h->a[0], i = 0;

    h->a[0] = h->a[--h->n];
    for (;;) {
        int32_t least = i;
        for (int32_t c = 2 * i + 1; c <= 2 * i + 2; c++)
            if (c < h->n && before(h->keys, h->a[c], h->a[least])) least = c;
        if (least == i) return top;
        heap_swap(h, i, least);
        i = least;
    }
}

/* Puts a node at the end of the order, behind what it asks for. */
static void place(const ls_graph *g, edges *e, int32_t i, bool views, ls_schedule *out, int32_t *done)
{
    const ls_node *n = g->nodes[i];

    for (int k = 0; k < n->n_in; k++) {
        const int32_t producer = g->values[n->in[k]]->node;
        if (producer < 0 || !e->asked[producer]) continue;
        e->asked[producer] = false; /* once */
        place(g, e, producer, views, out, done);
    }
    ++*done;
    if (views || !(n->op->flags & LS_OP_VIEW)) out->order[out->n++] = i;
}

/* Sorts the live nodes; `views` lists views too. */
static ls_status sort(const ls_graph *g, bool views, ls_schedule *out, ls_err *err)
{
    ls_status st = LS_OK;
    size_t n = (size_t)g->n_nodes + 1;
    edges e = {0};
    key *keys = ls_alloc(LS_MEM_PLAN, sizeof *keys * n);
    heap h = {keys, NULL, 0};
    int32_t done = 0, live = 0;

    *out = (ls_schedule){0};
    e.head = ls_alloc(LS_MEM_PLAN, sizeof *e.head * n);
    e.wait = ls_alloc(LS_MEM_PLAN, sizeof *e.wait * n);
    e.asked = ls_alloc(LS_MEM_PLAN, sizeof *e.asked * n);
    h.a = ls_alloc(LS_MEM_PLAN, sizeof *h.a * n);
    out->order = ls_alloc(LS_MEM_PLAN, sizeof *out->order * n);
    if (keys == NULL || e.head == NULL || e.wait == NULL || e.asked == NULL || h.a == NULL ||
        out->order == NULL || !build_edges(g, &e)) {
        st = ls_fail(err, LS_NOMEM, "schedule: no memory");
        goto out;
    }
    make_keys(g, &e, keys);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead) continue;
        live++;
        if (e.wait[i] == 0 && !e.asked[i]) heap_push(&h, i);
    }
    while (h.n > 0) {
        int32_t i = heap_pop(&h);
        place(g, &e, i, views, out, &done);
        for (int32_t k = e.head[i]; k >= 0; k = e.next[k])
            if (--e.wait[e.to[k]] == 0) heap_push(&h, e.to[k]);
    }
    for (int32_t i = 0; i < g->n_nodes; i++) { /* constants that nobody reads here: fetched */
        if (!e.asked[i]) continue;
        e.asked[i] = false;
        place(g, &e, i, views, out, &done);
    }
    LS_BUG_IF(done != live); /* no pass leaves a cycle */
out:
    ls_free(e.to);
    ls_free(e.next);
    ls_free(e.head);
    ls_free(e.wait);
    ls_free(e.asked);
    ls_free(h.a);
    ls_free(keys);
    if (st != LS_OK) ls_schedule_release(out);
    return st;
}

ls_status ls_pass_schedule(const ls_graph *g, ls_schedule *out, ls_err *err)
{
    return sort(g, false, out, err);
}

ls_status ls_pass_topological(const ls_graph *g, ls_schedule *out, ls_err *err)
{
    return sort(g, true, out, err);
}

void ls_schedule_release(ls_schedule *s)
{
    ls_free(s->order);
    *s = (ls_schedule){0};
}
