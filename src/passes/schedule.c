/* schedule.c: one order for all nodes. */
#include "base/grow.h"
#include "passes/passes.h"
#include "passes/updates.h"

/* Dependencies are data edges plus, for every in-place update, an edge from each reader of the old version.
 * Where several nodes are one update (updates.h), readers of old versions come before its first node and
 * readers of new ones after its last: other ranks write between these.  No cycle comes of it: what the nodes
 * of an update need was made before the first of them, and readers that depend on it have copies
 * (versions.c). */
typedef struct edges {
    int32_t *to;   /* successor of edge e */
    int32_t *next; /* next edge of the same source, or -1 */
    size_t to_cap, next_cap;
    int32_t *head; /* first edge of each node */
    int32_t *wait; /* unfinished predecessors of each node */
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

/* Readers of `value`, and of views of it, must finish before `first`; `update`, which overwrites it, may come
 * later. */
static bool add_readers_before(const ls_graph *g, edges *e, int32_t value, int32_t update, int32_t first)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || i == update) continue;
        for (int k = 0; k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            if (!add_edge(e, i, first)) return false;
            if ((n->op->flags & LS_OP_VIEW) && !add_readers_before(g, e, n->out[0], update, first))
                return false;
        }
    }
    return true;
}

/* Node i after those that make what it reads, and after the whole update where that is one of several nodes.
 */
static bool add_producers(const ls_graph *g, edges *e, const lsi_updates *u, int32_t i)
{
    const ls_node *n = g->nodes[i];

    for (int k = 0; k < n->n_in; k++) {
        const int32_t producer = g->values[n->in[k]]->node;
        if (producer < 0) continue;
        if (!add_edge(e, producer, i)) return false;
        if (u != NULL && u->first[producer] != u->first[i] && u->last[producer] != producer &&
            !add_edge(e, u->last[producer], i))
            return false;
    }
    return true;
}

/* `u`: NULL for data dependencies alone. */
static bool build_edges(const ls_graph *g, edges *e, const lsi_updates *u)
{
    for (int32_t i = 0; i < g->n_nodes; i++) e->head[i] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead) continue;
        if (!add_producers(g, e, u, i)) return false;
        if (u == NULL || !(n->op->flags & LS_OP_UPDATE)) continue;
        for (int k = 0; k < n->n_out; k++) {
            const int in = n->op->alias(n->n_in, n->attr, k);
            const bool own = in >= 0 && lsi_update_hands_on(g, u, i, n->in[in]);
            if (in >= 0 && !add_readers_before(g, e, n->in[in], i, own ? i : u->first[i])) return false;
        }
    }
    return true;
}

/* A binary heap of ready nodes, smallest `order` first (node number breaks ties). */
typedef struct heap {
    const ls_graph *g;
    int32_t *a;
    int32_t n;
} heap;

static bool before(const ls_graph *g, int32_t a, int32_t b)
{
    int64_t oa = g->nodes[a]->order, ob = g->nodes[b]->order;

    return oa != ob ? oa < ob : a < b;
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
    for (; i > 0 && before(h->g, h->a[i], h->a[(i - 1) / 2]); i = (i - 1) / 2) heap_swap(h, i, (i - 1) / 2);
}

static int32_t heap_pop(heap *h)
{
    int32_t top = h->a[0], i = 0;

    h->a[0] = h->a[--h->n];
    for (;;) {
        int32_t least = i;
        for (int32_t c = 2 * i + 1; c <= 2 * i + 2; c++)
            if (c < h->n && before(h->g, h->a[c], h->a[least])) least = c;
        if (least == i) return top;
        heap_swap(h, i, least);
        i = least;
    }
}

/* Sorts the live nodes; `updates` adds the edges that keep in-place updates right, `views` lists views too.
 */
static ls_status sort(const ls_graph *g, bool updates, bool views, ls_schedule *out, ls_err *err)
{
    ls_status st = LS_OK;
    size_t n = (size_t)g->n_nodes + 1;
    edges e = {0};
    heap h = {g, NULL, 0};
    lsi_updates found;
    int32_t done = 0, live = 0;

    *out = (ls_schedule){0};
    e.head = ls_alloc(LS_MEM_PLAN, sizeof *e.head * n);
    e.wait = ls_alloc(LS_MEM_PLAN, sizeof *e.wait * n);
    h.a = ls_alloc(LS_MEM_PLAN, sizeof *h.a * n);
    out->order = ls_alloc(LS_MEM_PLAN, sizeof *out->order * n);
    if (e.head == NULL || e.wait == NULL || h.a == NULL || out->order == NULL ||
        !lsi_updates_find(g, &found) || !build_edges(g, &e, updates ? &found : NULL)) {
        st = ls_fail(err, LS_NOMEM, "schedule: no memory");
        goto out;
    }
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead) continue;
        live++;
        if (e.wait[i] == 0) heap_push(&h, i);
    }
    while (h.n > 0) {
        int32_t i = heap_pop(&h);
        done++;
        if (views || !(g->nodes[i]->op->flags & LS_OP_VIEW)) out->order[out->n++] = i;
        for (int32_t k = e.head[i]; k >= 0; k = e.next[k])
            if (--e.wait[e.to[k]] == 0) heap_push(&h, e.to[k]);
    }
    LS_BUG_IF(done != live); /* ls_pass_versions left no cycle */
out:
    ls_free(e.to);
    ls_free(e.next);
    ls_free(e.head);
    ls_free(e.wait);
    ls_free(h.a);
    if (st != LS_OK) ls_schedule_release(out);
    return st;
}

ls_status ls_pass_schedule(const ls_graph *g, ls_schedule *out, ls_err *err)
{
    return sort(g, true, false, out, err);
}

ls_status ls_pass_topological(const ls_graph *g, ls_schedule *out, ls_err *err)
{
    return sort(g, false, true, out, err);
}

void ls_schedule_release(ls_schedule *s)
{
    ls_free(s->order);
    *s = (ls_schedule){0};
}
