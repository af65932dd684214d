/* read_check.c: what the lists of a document say of one another holds: order, wiring, memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "plans/read_internal.h"

static ls_status refuse_node(ls_document *d, int32_t at, int32_t value, ls_err *err)
{
    lsi_item it = {d, NULL, "node", at, err, LS_OK};

    return lsi_item_refuse(&it, "it reads value %d, which node %d makes, and that does not run before it",
                           (int)d->values[value].id, (int)d->nodes[d->values[value].node].id);
}

/* Nodes are listed in the order in which they run. */
static ls_status check_inputs(ls_document *d, ls_err *err)
{
    for (int32_t i = 0; i < d->n_nodes; i++)
        for (int k = 0; k < d->nodes[i].n_in; k++)
            if (d->values[d->nodes[i].in[k]].node >= i) return refuse_node(d, i, d->nodes[i].in[k], err);
    return LS_OK;
}

static bool reads(const ls_doc_node *n, int32_t value)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == value) return true;
    return false;
}

/* What only leads forward has no circle. */
static ls_status check_edges(ls_document *d, ls_err *err)
{
    for (int32_t i = 0; i < d->n_edges; i++) {
        const ls_doc_edge *e = &d->edges[i];
        const int from = (int)d->nodes[e->from].id, to = (int)d->nodes[e->to].id;
        lsi_item it = {d, NULL, "edge", i, err, LS_OK};
        if (e->from == e->to) return lsi_item_refuse(&it, "it leads from node %d to itself", from);
        if (e->from > e->to)
            return lsi_item_refuse(&it, "it leads from node %d back to node %d, which runs before it", from,
                                   to);
        if (e->value < 0) continue;
        if (d->values[e->value].node != e->from)
            return lsi_item_refuse(&it, "value %d does not come from node %d", (int)d->values[e->value].id,
                                   from);
        if (!reads(&d->nodes[e->to], e->value))
            return lsi_item_refuse(&it, "node %d does not read value %d", to, (int)d->values[e->value].id);
    }
    return LS_OK;
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

static bool in_arena(const ls_doc_buffer *b)
{
    return strcmp(b->kind, "arena") == 0 || strcmp(b->kind, "scratch") == 0;
}

/* Bytes of what a buffer lies in; more than any file where the plan does not say. */
static size_t room_of(const ls_document *d, const ls_doc_buffer *b)
{
    if (in_arena(b)) return d->arena_bytes;
    for (int32_t i = 0; b->exchange >= 0 && i < d->n_collectives; i++)
        if (d->collectives[i].bucket == b->exchange / 2) return d->collectives[i].bytes; /* given, and got */
    return INT64_MAX;
}

static ls_status check_ends(ls_document *d, ls_err *err)
{
    for (int32_t i = 0; i < d->n_buffers; i++) {
        const ls_doc_buffer *b = &d->buffers[i];
        const size_t all = room_of(d, b);
        lsi_item it = {d, NULL, "buffer", i, err, LS_OK};
        if (b->bytes > all || b->offset > all - b->bytes)
            return lsi_item_refuse(&it,
                                   "its offset %zu and its %zu bytes reach beyond the %zu of what it lies in",
                                   b->offset, b->bytes, all);
    }
    return LS_OK;
}

static int by_first_use(const void *a, const void *b)
{
    const ls_doc_buffer *x = *(const ls_doc_buffer *const *)a, *y = *(const ls_doc_buffer *const *)b;

    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Buffers in use, by offset; some may be over. */
typedef struct in_use {
    const ls_doc_buffer **of;
    size_t n;
} in_use;

static void take_out(in_use *u, size_t at)
{
    memmove(u->of + at, u->of + at + 1, sizeof *u->of * (u->n - at - 1));
    u->n--;
}

/* Puts b where it belongs; returns the buffer that it has bytes in common with, or NULL.  Those in use at
 * the same time lie apart, so that a neighbour on either side is all there is to look at. */
static const ls_doc_buffer *put_in(in_use *u, const ls_doc_buffer *b)
{
    size_t at = 0, hi = u->n;

    while (at < hi) {
        const size_t mid = at + (hi - at) / 2;
        if (u->of[mid]->offset < b->offset)
            at = mid + 1;
        else
            hi = mid;
    }
    while (at > 0 && u->of[at - 1]->last < b->first) take_out(u, --at);
    while (at < u->n && u->of[at]->last < b->first) take_out(u, at);
    if (at > 0 && u->of[at - 1]->offset + u->of[at - 1]->bytes > b->offset) return u->of[at - 1];
    if (at < u->n && b->offset + b->bytes > u->of[at]->offset) return u->of[at];
    memmove(u->of + at + 1, u->of + at, sizeof *u->of * (u->n - at));
    u->of[at] = b;
    u->n++;
    return NULL;
}

static ls_status check_apart(ls_document *d, ls_err *err)
{
    const ls_doc_buffer **sorted = ls_alloc(LS_MEM_CLI, sizeof *sorted * ((size_t)d->n_buffers + 1));
    in_use u = {ls_alloc(LS_MEM_CLI, sizeof *u.of * ((size_t)d->n_buffers + 1)), 0};
    ls_status st = LS_OK;
    size_t n = 0;

    if (sorted == NULL || u.of == NULL) st = ls_fail(err, LS_NOMEM, "no memory for a plan");
    for (int32_t i = 0; st == LS_OK && i < d->n_buffers; i++)
        if (in_arena(&d->buffers[i]) && d->buffers[i].bytes > 0) sorted[n++] = &d->buffers[i];
    if (n > 0) qsort(sorted, n, sizeof *sorted, by_first_use);
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        const ls_doc_buffer *other = put_in(&u, sorted[i]);
        lsi_item it = {d, NULL, "buffer", sorted[i] - d->buffers, err, LS_OK};
        if (other != NULL)
            st = lsi_item_refuse(&it, "its %zu bytes from %zu on are buffer %td's, too, while node %d runs",
                                 sorted[i]->bytes, sorted[i]->offset, other - d->buffers,
                                 (int)d->nodes[sorted[i]->first].id);
    }
    ls_free(sorted);
    ls_free(u.of);
    return st;
}

ls_status lsi_document_check(ls_document *d, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(check_inputs(d, err));
    LS_TRY(check_edges(d, err));
    LS_TRY(check_ends(d, err));
    LS_TRY(check_apart(d, err));
out:
    return st;
}
