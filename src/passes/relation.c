/* relation.c: the transitive closure of a graph's edges, as rows of bits. */
#include <stdio.h>

#include "passes/check_internal.h"

const char *lsi_node_name(const ls_graph *g, int32_t node, char buf[LSI_NODE_NAME])
{
    snprintf(buf, LSI_NODE_NAME, "node %d (%s \"%.80s\")", (int)node, g->nodes[node]->op->name,
             g->nodes[node]->scope);
    return buf;
}

/* While the closure is made: of each node, the node before it in its queue, and how far it is. */
typedef enum progress { UNSEEN, OPEN, DONE } progress;

typedef struct closure {
    lsi_relation *r;
    int32_t *in_queue;               /* -1: first of its queue, or in none */
    int32_t *first_edge, *next_edge; /* control edges by the node they lead to; -1 ends */
    uint8_t *seen;
    int32_t *stack; /* nodes that are open, each below what it needs */
    int32_t n;
} closure;

static void join(const lsi_relation *r, int32_t node, int32_t earlier)
{
    uint64_t *to = r->before + (size_t)node * r->words;
    const uint64_t *from = r->before + (size_t)earlier * r->words;

    for (size_t i = 0; i < r->words; i++) to[i] |= from[i];
    to[earlier / 64] |= (uint64_t)1 << (earlier % 64);
}

/* Calls for each direct predecessor of `node`: opens it where it is unseen (first visit), joins it (second).
 * False: one of them is open already, which makes a circle. */
static bool visit(closure *c, int32_t node, int32_t earlier, bool joining)
{
    if (earlier < 0 || c->r->g->nodes[earlier]->dead) return true;
    if (joining) {
        join(c->r, node, earlier);
        return true;
    }
    if (c->seen[earlier] == UNSEEN) c->stack[c->n++] = earlier;
    return c->seen[earlier] != OPEN;
}

static bool visit_all(closure *c, int32_t node, bool joining)
{
    const ls_graph *g = c->r->g;
    const ls_node *n = g->nodes[node];

    for (int k = 0; k < n->n_in; k++)
        if (!visit(c, node, g->values[n->in[k]]->node, joining)) return false;
    for (int32_t e = c->first_edge[node]; e >= 0; e = c->next_edge[e])
        if (!visit(c, node, g->edges[e].from, joining)) return false;
    return visit(c, node, c->in_queue[node], joining);
}

/* Depth first, without recursion: a node is opened, then all it needs is done, then it is. */
static bool close_from(closure *c, int32_t start)
{
    c->stack[c->n++] = start;
    while (c->n > 0) {
        const int32_t node = c->stack[c->n - 1];
        if (c->seen[node] == UNSEEN) {
            c->seen[node] = OPEN;
            if (!visit_all(c, node, false)) return false;
            continue;
        }
        c->n--;
        if (c->seen[node] == DONE) continue; /* it was on the stack twice */
        visit_all(c, node, true);
        c->seen[node] = DONE;
    }
    return true;
}

static void link_edges(closure *c, const ls_schedule *s)
{
    const ls_graph *g = c->r->g;
    int32_t last[LS_QUEUE_N];

    for (int q = 0; q < LS_QUEUE_N; q++) last[q] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++) c->in_queue[i] = c->first_edge[i] = -1;
    for (int32_t i = 0; i < g->n_edges; i++) {
        c->next_edge[i] = c->first_edge[g->edges[i].to];
        c->first_edge[g->edges[i].to] = i;
    }
    for (int32_t i = 0; s != NULL && i < s->n; i++) {
        const ls_queue q = g->nodes[s->order[i]]->queue;
        c->in_queue[s->order[i]] = last[q];
        last[q] = s->order[i];
    }
}

ls_status lsi_relation_make(lsi_relation *r, const ls_graph *g, const ls_schedule *s, ls_err *err)
{
    const size_t n = (size_t)g->n_nodes + 1;
    size_t reads = n + (size_t)g->n_edges;
    closure c = {.r = r};
    ls_status st = LS_OK;
    char name[LSI_NODE_NAME];

    for (int32_t i = 0; i < g->n_nodes; i++) reads += (size_t)g->nodes[i]->n_in + 1;
    *r = (lsi_relation){.g = g, .words = (n + 63) / 64};
    r->before = ls_alloc(LS_MEM_PLAN, sizeof *r->before * r->words * n);
    c.in_queue = ls_alloc(LS_MEM_PLAN, sizeof *c.in_queue * n);
    c.first_edge = ls_alloc(LS_MEM_PLAN, sizeof *c.first_edge * n);
    c.next_edge = ls_alloc(LS_MEM_PLAN, sizeof *c.next_edge * ((size_t)g->n_edges + 1));
    c.seen = ls_alloc(LS_MEM_PLAN, n);
    c.stack = ls_alloc(LS_MEM_PLAN, sizeof *c.stack * reads);
    if (r->before == NULL || c.in_queue == NULL || c.first_edge == NULL || c.next_edge == NULL ||
        c.seen == NULL || c.stack == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan check: no memory");
        goto out;
    }
    link_edges(&c, s);
    for (int32_t i = 0; i < g->n_nodes && st == LS_OK; i++)
        if (!g->nodes[i]->dead && !close_from(&c, i))
            st = ls_fail(err, LS_INVALID, "plan check: %s waits for itself: its edges make a circle",
                         lsi_node_name(g, c.stack[c.n - 1], name));
out:
    ls_free(c.in_queue);
    ls_free(c.first_edge);
    ls_free(c.next_edge);
    ls_free(c.seen);
    ls_free(c.stack);
    if (st != LS_OK) lsi_relation_release(r);
    return st;
}

void lsi_relation_release(lsi_relation *r)
{
    ls_free(r->before);
    *r = (lsi_relation){0};
}
