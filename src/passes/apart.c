/* apart.c: memory that rests, so that nodes can run side by side.
 *
 * A node that writes to memory which another has just read must wait for it, though nothing else may be
 * between the two: a layer's weight gradient, which nobody waits for until the update, would hold up the
 * whole backward pass.  So a buffer rests behind its last use for as long as there are nodes that come after
 * all of its users only in the order of the schedule, `most` positions at most.  What comes after them anyway
 * may have the memory at once. */
#include "base/alloc.h"
#include "passes/place.h"

enum { FAR = 64 }; /* positions; what is that far behind is taken to be over */

/* Where in the schedule the node is that made a value, views looked through; -1: an input or variable. */
static int32_t made_at(const lsi_users *u, int32_t value)
{
    const int32_t node = u->g->values[ls_graph_storage(u->g, value)]->node;

    return node >= 0 ? u->position[node] : -1;
}

/* Bit d - 1 of behind[p]: node p comes after node p - d, whatever the schedule is.  Edges that are only there
 * to order what shares memory say nothing of that. */
static void find_order(const lsi_users *u, uint64_t *behind)
{
    for (int32_t p = 0; p < u->s->n; p++) {
        const ls_node *n = u->g->nodes[u->s->order[p]];
        behind[p] = 0;
        for (int k = 0; k < n->n_in; k++) {
            const int32_t at = made_at(u, n->in[k]), d = p - at;
            if (at < 0 || d < 1 || d > FAR) continue;
            behind[p] |= (uint64_t)1 << (d - 1);
            if (d < FAR) behind[p] |= behind[at] << d;
        }
    }
}

/* Node p may run beside one that uses the buffer. */
static void rest_until(ls_memory_buffer *b, int32_t p, int32_t most)
{
    const int32_t longer = p - b->last;

    if (longer > b->rest && longer <= most) b->rest = longer;
}

static void rest_all_of(const lsi_users *u, int32_t user, int32_t p, int32_t most, ls_memory_buffer *b)
{
    const ls_node *n = u->g->nodes[u->s->order[user]];

    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const int32_t at = u->of_value[k < n->n_in ? n->in[k] : n->out[k - n->n_in]];
        if (at >= 0) rest_until(&b[at], p, most);
    }
    rest_until(&b[u->scratch[user]], p, most);
}

ls_status lsi_rest(const lsi_users *u, int32_t most, ls_memory_buffer *b, int32_t n, ls_err *err)
{
    uint64_t *behind = ls_alloc(LS_MEM_PLAN, sizeof *behind * ((size_t)u->s->n + 1));

    if (behind == NULL) return ls_fail(err, LS_NOMEM, "memory plan: no memory");
    for (int32_t i = 0; i < n; i++) b[i].rest = 0;
    find_order(u, behind);
    for (int32_t p = 0; p < u->s->n && most > 0; p++)
        for (int32_t d = 1; d <= FAR && d <= p; d++)
            if (!(behind[p] >> (d - 1) & 1u)) rest_all_of(u, p - d, p, most, b);
    ls_free(behind);
    return LS_OK;
}
