/* exchange_make.c: makes and destroys exchanges: who owns which leaves, and where everything lies.
 *
 * Making one is collective and must fail on all ranks or on none: a rank alone with its failure would leave
 * the others waiting.  So every phase that can fail on one rank ends with lsi_all_well, and what all decide
 * from the same gathered words they decide alike. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "comm/exchange_internal.h"

#define PAGE ((size_t)4096)
/* Chunks: so many per rank that the last one is short, but none so small that taking it costs more than it.
 */
enum { CHUNKS_PER_RANK = 4, MIN_CHUNK = LSI_SUM_BLOCK, MAX_CHUNK = 64 * 1024 };

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

static lsi_claim claim_of(const ls_comm *c, const ls_exchange_options *o)
{
    bool per_rank = o->n_shards == 0;

    return (lsi_claim){
        .n = o->n,
        .n_shards = per_rank ? c->size : o->n_shards,
        .first = per_rank ? c->rank : o->first_shard,
        .end = per_rank ? c->rank + 1 : o->end_shard,
        .scale = o->scale == 0 ? 1 : o->scale,
        .wire = (int32_t)o->wire,
    };
}

static ls_status check_claim(const lsi_claim *m, const char *name, ls_err *err)
{
    if (m->n < 0 || m->n > INT64_MAX / 1024)
        return ls_fail(err, LS_INVALID, "%s: %lld floats", name, (long long)m->n);
    if (m->n_shards < 1 || m->first < 0 || m->first > m->end || m->end > m->n_shards)
        return ls_fail(err, LS_INVALID, "%s: shards %lld to %lld of %lld", name, (long long)m->first,
                       (long long)m->end, (long long)m->n_shards);
    return LS_OK;
}

/* The same words lie before every rank, so all come to the same conclusion. */
static ls_status check_claims(const lsi_claim *all, int size, const char *name, ls_err *err)
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

static ls_status gather_claims(ls_exchange *x, const lsi_claim *mine, lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_comm_gather_all(x->c, mine, sizeof *mine, all, x->name, err));
    LS_TRY(check_claims(all, x->c->size, x->name, err));
out:
    return st;
}

/* -- where it lies -----------------------------------------------------------------------------------------
 */

static int rank_at(const ls_comm *c, int host, int local)
{
    return c->far != NULL ? c->far->ranks_of[host][local] : local;
}

static int size_at(const ls_comm *c, int host)
{
    return c->far != NULL ? c->far->host_size[host] : c->size;
}

ls_status lsi_list_parts(const ls_comm *c, int host, const lsi_claim *all, lsi_node **nodes, int **owner,
                         int *n, ls_err *err)
{
    lsi_node parts[LSI_MAX_PARTS];
    int total = 0, ranks = size_at(c, host);

    for (int i = 0; i < ranks; i++) {
        const lsi_claim *m = &all[rank_at(c, host, i)];
        total += lsi_tree_parts(m->n_shards, m->first, m->end, parts);
    }
    *nodes = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof **nodes);
    *owner = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof **owner);
    if (*nodes == NULL || *owner == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for the parts of an exchange");
    *n = 0;
    for (int i = 0; i < ranks; i++) {
        const lsi_claim *m = &all[rank_at(c, host, i)];
        int some = lsi_tree_parts(m->n_shards, m->first, m->end, *nodes + *n);
        for (int k = 0; k < some; k++) (*owner)[*n + k] = i;
        *n += some;
    }
    return LS_OK;
}

/* The sum over this machine's parts, and the tables of this rank's own. */
static ls_status plan_sum(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_node *nodes = NULL;
    const ls_comm *c = x->c;
    int n;

    LS_TRY(lsi_list_parts(c, c->host, all, &nodes, &x->owner, &n, err));
    LS_TRY(lsi_sum_plan_make(&x->plan, x->n_shards, nodes, n, err));
    LS_BUG_IF(c->far == NULL && x->plan.n_out != 1);
    x->in = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *x->in);
    x->weight = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *x->weight);
    x->stack = ls_alloc(LS_MEM_COMM, (size_t)x->plan.depth * LSI_SUM_BLOCK * sizeof *x->stack);
    x->part = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *x->part);
    x->part_at = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *x->part_at);
    if (x->in == NULL || x->weight == NULL || x->stack == NULL || x->part == NULL || x->part_at == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    for (int i = 0; i < n; i++)
        if (x->owner[i] == c->local_rank) x->part[x->n_parts++] = nodes[i];
    if (c->far != NULL) LS_TRY(lsi_far_exchange_create(x, all, err));
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
    x->bytes = at + ((size_t)x->plan.n_in + (x->in_place ? 0 : 1)) * stride;
    LS_TRY(lsi_window_map(x->c, x->bytes, &x->offset, &x->window, err));
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

/* Whether the result should be written past the caches.  It is read when the rest of the backward pass is
 * done, which leaves little of it there; reading its old lines in order to fill them would be a third more
 * traffic. */
static bool past_cache(const ls_exchange *x)
{
    const long own = sysconf(_SC_LEVEL2_CACHE_SIZE);

    return (double)stride_of(x->n) > (own > 0 ? (double)own : 1024.0 * 1024);
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

static ls_status begin(ls_exchange **x, lsi_claim **all, ls_comm *c, const ls_exchange_options *o,
                       const lsi_claim *mine, ls_err *err)
{
    *x = ls_alloc(LS_MEM_COMM, sizeof **x);
    *all = ls_alloc(LS_MEM_COMM, (size_t)c->size * sizeof **all);
    if (*x != NULL) (*x)->c = c;
    if (*x == NULL || *all == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", o->name);
    (*x)->n = mine->n;
    (*x)->n_shards = mine->n_shards;
    (*x)->scale = mine->scale;
    strncpy((*x)->name, o->name, sizeof(*x)->name - 1);
    return check_claim(mine, o->name, err);
}

ls_status ls_exchange_create(ls_exchange **out, ls_comm *c, const ls_exchange_options *o, ls_err *err)
{
    ls_status st = LS_OK;
    ls_exchange *x = NULL;
    lsi_claim *all = NULL, mine = claim_of(c, o);

    *out = NULL;
    LS_TRY(lsi_all_well(c, begin(&x, &all, c, o, &mine, err), o->name, err));
    LS_TRY(gather_claims(x, &mine, all, err));
    if (c->far != NULL)
        lsi_far_choose_slices(x);
    else
        choose_chunks(x);
    LS_TRY(lsi_all_well(c, plan_sum(x, all, err), x->name, err));
    LS_TRY(lsi_all_well(c, lay_out(x, err), x->name, err));
    /* Between machines slices begin anywhere, and what is summed here is sent next. */
    x->loops = lsi_sum_loops_best(c->far == NULL && past_cache(x));
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
    lsi_far_exchange_destroy(x);
    lsi_sum_plan_release(&x->plan);
    ls_free(x->stack);
    ls_free(x->weight);
    ls_free(x->owner);
    ls_free(x->in);
    ls_free(x->part_at);
    ls_free(x->part);
    ls_free(x);
}

/* A rank's share of what the machine holds once; the only rank's part becomes the result. */
static size_t shared_bytes(int size, int local_size, int64_t n)
{
    const size_t result = size > 1 ? stride_of(n) : 0;

    return (result + board_bytes(local_size)) / (size_t)local_size;
}

size_t ls_exchange_bytes(const ls_comm *c, const ls_exchange_options *o)
{
    lsi_claim m = claim_of(c, o);
    lsi_node parts[LSI_MAX_PARTS];
    size_t own = (size_t)lsi_tree_parts(m.n_shards, m.first, m.end, parts) * stride_of(m.n);

    if (c->far != NULL) own += lsi_far_exchange_bytes(c, m.n, o->wire);
    return own + shared_bytes(c->size, c->local_size, m.n);
}

size_t ls_exchange_bytes_on(int ranks, int64_t n)
{
    return stride_of(n) + shared_bytes(ranks, ranks, n);
}
