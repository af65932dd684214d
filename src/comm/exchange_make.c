/* exchange_make.c: makes and destroys exchanges: who owns which leaves, and where everything lies.
 *
 * Making one is collective and must fail on all ranks or on none: a rank alone with its failure would leave
 * the others waiting.  So every phase that can fail on one rank ends with lsi_all_well, and what all decide
 * from the same gathered words they decide alike. */
#include <string.h>

#include "base/alloc.h"
#include "comm/exchange_internal.h"

#define PAGE ((size_t)4096)
/* Windows begin at multiples of the largest page that Linux is built with. */
#define WINDOW_GRAIN ((size_t)64 * 1024)
/* Chunks: so many per rank that the last one is short, but none so small that taking it costs more than it.
 */
enum { CHUNKS_PER_RANK = 4, MIN_CHUNK = 4 * 1024, MAX_CHUNK = 64 * 1024 };

static size_t round_up(size_t bytes, size_t grain)
{
    return (bytes + grain - 1) / grain * grain;
}

/* From one buffer of n floats to the next. */
static size_t stride_of(int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);

    return round_up(bytes, bytes < PAGE ? LSI_LINE : PAGE);
}

static size_t board_bytes(int local_size)
{
    return round_up(sizeof(lsi_board) + (size_t)local_size * sizeof(lsi_post), PAGE);
}

/* -- who owns what -----------------------------------------------------------------------------------------
 */

/* What ranks tell each other. */
typedef struct claim {
    int64_t n, n_shards, first, end;
    float scale;
    int32_t wire;
} claim;

static claim claim_of(const ls_comm *c, const ls_exchange_options *o)
{
    bool per_rank = o->n_shards == 0;

    return (claim){
        .n = o->n,
        .n_shards = per_rank ? c->size : o->n_shards,
        .first = per_rank ? c->rank : o->first_shard,
        .end = per_rank ? c->rank + 1 : o->end_shard,
        .scale = o->scale == 0 ? 1 : o->scale,
        .wire = (int32_t)o->wire,
    };
}

static ls_status check_claim(const claim *m, const char *name, ls_err *err)
{
    if (m->n < 0 || m->n > INT64_MAX / 1024)
        return ls_fail(err, LS_INVALID, "%s: %lld floats", name, (long long)m->n);
    if (m->n_shards < 1 || m->first < 0 || m->first > m->end || m->end > m->n_shards)
        return ls_fail(err, LS_INVALID, "%s: shards %lld to %lld of %lld", name, (long long)m->first,
                       (long long)m->end, (long long)m->n_shards);
    return LS_OK;
}

/* The same words lie before every rank, so all come to the same conclusion. */
static ls_status check_claims(const claim *all, int size, const char *name, ls_err *err)
{
    int64_t next = 0;

    for (int r = 0; r < size; r++) {
        if (all[r].n != all[0].n || all[r].n_shards != all[0].n_shards || all[r].scale != all[0].scale ||
            all[r].wire != all[0].wire)
            return ls_fail(err, LS_DISAGREE,
                           "%s: ranks 0 and %d differ: %lld and %lld floats, %lld and %lld shards", name, r,
                           (long long)all[0].n, (long long)all[r].n, (long long)all[0].n_shards,
                           (long long)all[r].n_shards);
        if (all[r].first != next)
            return ls_fail(err, LS_DISAGREE, "%s: rank %d begins with shard %lld, expected %lld", name, r,
                           (long long)all[r].first, (long long)next);
        next = all[r].end;
    }
    if (next != all[0].n_shards)
        return ls_fail(err, LS_DISAGREE, "%s: ranks own %lld of %lld shards", name, (long long)next,
                       (long long)all[0].n_shards);
    return LS_OK;
}

static ls_status gather_claims(ls_exchange *x, const claim *mine, claim *all, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_comm_gather_all(x->c, mine, sizeof *mine, all, x->name, err));
    LS_TRY(check_claims(all, x->c->size, x->name, err));
out:
    return st;
}

/* -- where it lies -----------------------------------------------------------------------------------------
 */

/* The parts of all ranks, in ascending order, with their owners; and the tables of this rank. */
static ls_status list_parts(ls_exchange *x, const claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_node parts[LSI_MAX_PARTS], *nodes = NULL;
    int total = 0, n = 0;

    for (int r = 0; r < x->c->size; r++)
        total += lsi_tree_parts(x->n_shards, all[r].first, all[r].end, parts);
    x->n_parts = lsi_tree_parts(x->n_shards, all[x->c->rank].first, all[x->c->rank].end, parts);
    nodes = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof *nodes);
    x->owner = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof *x->owner);
    x->in = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof *x->in);
    x->weight = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof *x->weight);
    x->part = ls_alloc(LS_MEM_COMM, (size_t)x->n_parts * sizeof *x->part);
    x->part_at = ls_alloc(LS_MEM_COMM, (size_t)x->n_parts * sizeof *x->part_at);
    if (nodes == NULL || x->owner == NULL || x->in == NULL || x->weight == NULL || x->part == NULL ||
        x->part_at == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    memcpy(x->part, parts, (size_t)x->n_parts * sizeof *x->part);
    for (int r = 0; r < x->c->size; r++) {
        int m = lsi_tree_parts(x->n_shards, all[r].first, all[r].end, nodes + n);
        for (int i = 0; i < m; i++) x->owner[n + i] = r;
        n += m;
    }
    LS_TRY(lsi_sum_plan_make(&x->plan, x->n_shards, nodes, total, err));
    LS_BUG_IF(x->plan.n_out != 1);
    x->stack = ls_alloc(LS_MEM_COMM, (size_t)x->plan.depth * LSI_SUM_BLOCK * sizeof *x->stack);
    if (x->stack == NULL) st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
out:
    ls_free(nodes);
    return st;
}

/* Board, result (unless the only part becomes it), parts. */
static ls_status lay_out(ls_exchange *x, ls_err *err)
{
    ls_status st = LS_OK;
    size_t stride = stride_of(x->n), at = board_bytes(x->c->local_size);
    int j = 0;

    x->in_place = x->c->size == 1;
    x->offset = round_up(x->c->cursor, WINDOW_GRAIN);
    x->bytes = round_up(at + ((size_t)x->plan.n_in + (x->in_place ? 0 : 1)) * stride, WINDOW_GRAIN);
    x->c->cursor = x->offset + x->bytes;
    LS_TRY(lsi_heap_map(x->c->heap, x->offset, x->bytes, &x->window, err));
    x->board = x->window;
    x->result = (float *)((char *)x->window + at);
    if (!x->in_place) at += stride;
    for (int i = 0; i < x->plan.n_in; i++, at += stride) {
        x->in[i] = (const float *)((char *)x->window + at);
        if (x->owner[i] == x->c->local_rank) x->part_at[j++] = (float *)((char *)x->window + at);
    }
out:
    return st;
}

static void choose_chunks(ls_exchange *x)
{
    int64_t chunk = x->n / (x->c->local_size * CHUNKS_PER_RANK);

    if (chunk < MIN_CHUNK) chunk = MIN_CHUNK;
    if (chunk > MAX_CHUNK) chunk = MAX_CHUNK;
    x->chunk = chunk / LSI_SUM_BLOCK * LSI_SUM_BLOCK;
    x->n_chunks = (x->n + x->chunk - 1) / x->chunk;
}

/* -- making and destroying
 * ------------------------------------------------------------------------------------ */

static ls_status begin(ls_exchange **x, claim **all, ls_comm *c, const ls_exchange_options *o,
                       const claim *mine, ls_err *err)
{
    *x = ls_alloc(LS_MEM_COMM, sizeof **x);
    *all = ls_alloc(LS_MEM_COMM, (size_t)c->size * sizeof **all);
    if (*x != NULL) (*x)->c = c;
    if (*x == NULL || *all == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", o->name);
    (*x)->n = mine->n;
    (*x)->n_shards = mine->n_shards;
    (*x)->scale = mine->scale;
    (*x)->loops = lsi_sum_loops_best();
    strncpy((*x)->name, o->name, sizeof(*x)->name - 1);
    return check_claim(mine, o->name, err);
}

ls_status ls_exchange_create(ls_exchange **out, ls_comm *c, const ls_exchange_options *o, ls_err *err)
{
    ls_status st = LS_OK;
    ls_exchange *x = NULL;
    claim *all = NULL, mine = claim_of(c, o);

    *out = NULL;
    LS_TRY(lsi_all_well(c, begin(&x, &all, c, o, &mine, err), o->name, err));
    LS_TRY(gather_claims(x, &mine, all, err));
    LS_TRY(lsi_all_well(c, list_parts(x, all, err), x->name, err));
    LS_TRY(lsi_all_well(c, lay_out(x, err), x->name, err));
    choose_chunks(x);
    *out = x;
    x = NULL;
out:
    if (x != NULL) x->board = NULL; /* ranks that failed do not count the others */
    ls_exchange_destroy(x);
    ls_free(all);
    return st;
}

void ls_exchange_destroy(ls_exchange *x)
{
    if (x == NULL) return;
    bool last = x->board != NULL && atomic_fetch_add(&x->board->closed, 1) + 1 == x->c->local_size;
    lsi_heap_unmap(x->c->heap, x->window);
    if (last) lsi_heap_discard(x->c->heap, x->offset, x->bytes);
    lsi_sum_plan_release(&x->plan);
    ls_free(x->stack);
    ls_free(x->weight);
    ls_free(x->owner);
    ls_free(x->in);
    ls_free(x->part_at);
    ls_free(x->part);
    ls_free(x);
}

size_t ls_exchange_bytes(const ls_comm *c, const ls_exchange_options *o)
{
    claim m = claim_of(c, o);
    lsi_node parts[LSI_MAX_PARTS];
    size_t own = (size_t)lsi_tree_parts(m.n_shards, m.first, m.end, parts) * stride_of(m.n);

    if (c->size == 1) return own + board_bytes(1);
    return own + (stride_of(m.n) + board_bytes(c->local_size)) / (size_t)c->local_size;
}
