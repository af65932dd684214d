/* staging.c: values on their way between a device and what the host does with them.
 *
 * Needs: all collectives, barriers included.  Leaves: the nodes that the host runs on its own queue, their
 * operands in memory of the host's (ls_vinfo.staged), and copies on the copy queue where a value is made on
 * one side and read on the other.  versions.c comes later: a copy is a reader like any other.
 *
 * For devices with queues only.  Where kernels and host see the same memory, a collective takes values where
 * they are made, and nothing is to be moved. */
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct staging {
    ls_graph *g;
    int32_t n_nodes, n_values; /* of the graph as it came */
    int32_t *copy;             /* per value: the copy on the other side, or -1 */
} staging;

static bool is_staged(const ls_graph *g, int32_t v)
{
    return g->values[ls_graph_storage(g, v)]->staged;
}

/* What the host runs, and where its results lie. */
static void take_over(staging *s, ls_host_query on_host, const void *ctx)
{
    ls_graph *g = s->g;

    for (int32_t i = 0; i < s->n_nodes; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead || !on_host(ctx, n)) continue;
        n->queue = LS_QUEUE_HOST;
        for (int k = 0; k < n->n_out; k++) g->values[n->out[k]]->staged = true;
    }
}

static bool is_read(const staging *s, int32_t v)
{
    for (int32_t i = 0; i < s->n_nodes; i++)
        for (int k = 0; !s->g->nodes[i]->dead && k < s->g->nodes[i]->n_in; k++)
            if (s->g->nodes[i]->in[k] == v) return true;
    return false;
}

/* A copy that is made only to be fetched of what the host has made is that itself: the host need not wait for
 * the device to tell it what it knows. */
static void show_own(const staging *s)
{
    const ls_graph *g = s->g;

    for (int32_t i = 0; i < s->n_nodes; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead || n->op != &ls_op_copy || !is_staged(g, n->in[0])) continue;
        ls_vinfo *made = g->values[n->in[0]], *copy = g->values[n->out[0]];
        if (!copy->fetch || made->fetch || is_read(s, n->out[0])) continue;
        made->fetch = true;
        made->name = copy->name;
        copy->fetch = false;
        n->dead = true;
    }
}

/* Its place in the program is that of the value's maker, so that it goes on its way at once; where it has
 * none, that of its reader. */
static int32_t add_copy(staging *s, const ls_node *reader, int32_t v)
{
    ls_graph *g = s->g;
    const bool staged = is_staged(g, v);
    const int32_t maker = g->values[ls_graph_storage(g, v)]->node;
    ls_value copy;

    g->here = reader->src;
    g->scope = reader->scope;
    copy = ls_graph_add(g, staged ? &ls_op_to_device : &ls_op_to_host, 1, &(ls_value){g, v}, NULL);
    if (!ls_value_ok(copy)) return -1;
    g->values[copy.id]->staged = !staged;
    g->values[copy.id]->category = g->values[v]->category;
    ls_graph_stand_for(g->nodes[g->values[copy.id]->node], maker >= 0 ? g->nodes[maker] : reader);
    return copy.id;
}

static void read_own_side(staging *s, ls_node *n)
{
    const bool host = n->queue == LS_QUEUE_HOST;

    for (int k = 0; k < n->n_in && s->g->err.status == LS_OK; k++) {
        const int32_t v = n->in[k];
        if (is_staged(s->g, v) == host || !ls_node_reads(n, k)) continue;
        if (s->copy[v] < 0) s->copy[v] = add_copy(s, n, v);
        if (s->copy[v] >= 0) n->in[k] = s->copy[v];
    }
}

void ls_pass_staging(ls_graph *g, ls_host_query on_host, const void *ctx)
{
    staging s = {.g = g, .n_nodes = g->n_nodes, .n_values = g->n_values};

    if (g->err.status != LS_OK) return;
    s.copy = ls_arena_alloc(g->arena, sizeof *s.copy * ((size_t)s.n_values + 1));
    if (s.copy == NULL) {
        ls_graph_fail(g, LS_NOMEM, "staging pass: no memory");
        return;
    }
    for (int32_t i = 0; i < s.n_values; i++) s.copy[i] = -1;
    take_over(&s, on_host, ctx);
    show_own(&s);
    for (int32_t i = 0; i < s.n_nodes && g->err.status == LS_OK; i++) {
        ls_node *n = g->nodes[i];
        /* A view is what it views; whoever reads it is looked at. */
        if (!n->dead && !(n->op->flags & LS_OP_VIEW)) read_own_side(&s, n);
    }
}
