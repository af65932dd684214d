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

static ls_collective kind_of(const ls_exchange_options *o)
{
    return o->kind == LS_COLL_NONE ? LS_COLL_ALL_REDUCE : o->kind;
}

static lsi_claim claim_of(const ls_comm *c, const ls_exchange_options *o)
{
    const bool per_rank = o->n_shards == 0;
    const int rank = ls_group_rank(c, o->group);

    return (lsi_claim){
        .n = o->n,
        .n_shards = per_rank ? ls_group_size(c, o->group) : o->n_shards,
        .first = per_rank ? rank : o->first_shard,
        .end = per_rank ? rank + 1 : o->end_shard,
        .scale = o->scale == 0 ? 1 : o->scale,
        .wire = (int32_t)(lsi_copies(kind_of(o)) ? LS_WIRE_F32 : o->wire),
        .kind = (int32_t)kind_of(o),
        .group = (int32_t)o->group,
        .root = o->root,
        .lanes = o->lanes,
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
            all[r].wire != all[0].wire || all[r].kind != all[0].kind || all[r].group != all[0].group ||
            all[r].root != all[0].root)
            return ls_fail(err, LS_DISAGREE,
                           "%s: ranks 0 and %d differ: %s and %s, %lld and %lld floats, %lld and %lld shards",
                           name, r, ls_collective_name((ls_collective)all[0].kind),
                           ls_collective_name((ls_collective)all[r].kind), (long long)all[0].n,
                           (long long)all[r].n, (long long)all[0].n_shards, (long long)all[r].n_shards);
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

/* Of the ranks of the group, in its order. */
static ls_status gather_claims(ls_exchange *x, const lsi_claim *mine, lsi_claim *all, ls_err *err)
{
    const ls_comm *c = x->c;
    ls_status st = LS_OK;

    LS_TRY(ls_comm_gather_all(x->c, mine, sizeof *mine, all, x->name, err));
    for (int i = 0; mine->group != LS_GROUP_ALL && i < x->here; i++) {
        const int local = x->first + i; /* ascending: none is needed again that is overwritten */
        all[i] = all[c->remote != NULL ? c->remote->ranks_of[c->host][local] : local];
    }
    LS_TRY(check_claims(all, x->size, x->name, err));
out:
    return st;
}

/* -- where it lies -----------------------------------------------------------------------------------------
 */

static int rank_at(const ls_exchange *x, int host, int local)
{
    return x->across ? x->c->remote->ranks_of[host][local] : local;
}

static int size_at(const ls_exchange *x, int host)
{
    return x->across ? x->c->remote->host_size[host] : x->size;
}

ls_status lsi_list_parts(const ls_exchange *x, int host, const lsi_claim *all, lsi_node **nodes, int **owner,
                         int *n, ls_err *err)
{
    lsi_node parts[LSI_MAX_PARTS];
    int total = 0, ranks = size_at(x, host);

    for (int i = 0; i < ranks; i++) {
        const lsi_claim *m = &all[rank_at(x, host, i)];
        total += lsi_tree_parts(m->n_shards, m->first, m->end, parts);
    }
    *nodes = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof **nodes);
    *owner = ls_alloc(LS_MEM_COMM, (size_t)total * sizeof **owner);
    if (*nodes == NULL || *owner == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for the parts of an exchange");
    *n = 0;
    for (int i = 0; i < ranks; i++) {
        const lsi_claim *m = &all[rank_at(x, host, i)];
        int some = lsi_tree_parts(m->n_shards, m->first, m->end, *nodes + *n);
        for (int k = 0; k < some; k++) (*owner)[*n + k] = i;
        *n += some;
    }
    return LS_OK;
}

/* The stretches of the vector that ranks of this machine have. */
static ls_status list_pieces(ls_exchange *x, lsi_node **nodes, int *n, ls_err *err)
{
    const int ranks = size_at(x, x->c->host);
    const int64_t piece = ls_exchange_piece(x->n, x->size);

    *nodes = ls_alloc(LS_MEM_COMM, (size_t)ranks * sizeof **nodes);
    x->owner = ls_alloc(LS_MEM_COMM, (size_t)ranks * sizeof *x->owner);
    if (*nodes == NULL || x->owner == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    *n = 0;
    for (int i = 0; i < ranks; i++) {
        const int rank = rank_at(x, x->c->host, i);
        int64_t first = rank * piece, end = first + piece;
        if (x->kind == LS_COLL_BROADCAST && rank != x->root) continue;
        if (x->kind == LS_COLL_BROADCAST) first = 0, end = x->n;
        x->owner[*n] = i;
        (*nodes)[(*n)++] = (lsi_node){first < x->n ? first : x->n, end < x->n ? end : x->n};
    }
    x->plan.n_in = *n;
    return LS_OK;
}

/* What comes of this machine's inputs, and the tables of this rank's own. */
static ls_status plan_inputs(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_node *nodes = NULL;
    int n = 0;

    if (lsi_copies(x->kind)) {
        LS_TRY(list_pieces(x, &nodes, &n, err));
    } else {
        LS_TRY(lsi_list_parts(x, x->c->host, all, &nodes, &x->owner, &n, err));
        LS_TRY(lsi_sum_plan_make(&x->plan, x->n_shards, nodes, n, err));
        LS_BUG_IF(!x->across && x->plan.n_out != 1);
    }
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
        if (x->owner[i] == x->self) x->part[x->n_parts++] = nodes[i];
    if (lsi_copies(x->kind)) {
        x->covers = nodes;
        nodes = NULL;
    }
    if (x->across) LS_TRY(lsi_remote_exchange_create(x, all, err));
out:
    ls_free(nodes);
    return st;
}

/* Floats of one part. */
static int64_t part_floats(ls_collective kind, int64_t n, int ranks)
{
    return kind == LS_COLL_ALL_GATHER ? ls_exchange_piece(n, ranks) : n;
}

/* Result and parts in memory that others use, too. */
static void move_in(ls_exchange *x)
{
    int j = 0;

    LS_BUG_IF(stride_of(x->n) > x->room->result_bytes ||
              stride_of(part_floats(x->kind, x->n, x->size)) > x->room->part_bytes);
    x->result = (float *)x->room->at;
    for (int i = 0; i < x->plan.n_in; i++) {
        float *at =
            (float *)(x->room->at + x->room->result_bytes + (size_t)x->owner[i] * x->room->part_bytes);
        if (x->size == 1) at = x->result; /* the only part becomes it */
        x->in[i] = at;
        if (x->owner[i] == x->self) x->part_at[j++] = at;
    }
}

void ls_exchange_need_room(const ls_comm *c, const ls_exchange_options *o, ls_exchange_room *room)
{
    const size_t part = stride_of(part_floats(kind_of(o), o->n, ls_group_size(c, o->group)));

    if (stride_of(o->n) > room->result_bytes) room->result_bytes = stride_of(o->n);
    if (part > room->part_bytes) room->part_bytes = part;
}

size_t ls_exchange_room_bytes(const ls_comm *c, ls_group group, const ls_exchange_room *room)
{
    const int here = group == LS_GROUP_ALL ? c->local_size : ls_group_size(c, group);

    return room->result_bytes + (size_t)here * room->part_bytes;
}

/* Board, result (unless the only part becomes it), parts, leaves of every rank. */
static ls_status lay_out(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    const size_t stride = stride_of(x->n), part = stride_of(part_floats(x->kind, x->n, x->size));
    const bool in_place = x->size == 1;
    size_t at = board_bytes(x->c->local_size);
    int leaves = 0, before = 0, own = 0, j = 0;

    for (int i = 0; i < size_at(x, x->c->host); i++) {
        const lsi_claim *m = &all[rank_at(x, x->c->host, i)];
        const int some = lsi_leaves_buffers(m->n_shards, m->first, m->end, m->lanes);
        if (i == x->self) own = some, before = leaves;
        leaves += some;
    }
    if (x->room != NULL)
        x->bytes = at;
    else
        x->bytes = at + (in_place ? 0 : stride) + (size_t)x->plan.n_in * part + (size_t)leaves * stride;
    /* Groups of a machine have windows side by side, and every rank knows of all. */
    LS_TRY(lsi_window_map(x->c, x->bytes, x->c->local_size / x->here, x->first / x->here, &x->offset,
                          &x->window, err));
    x->board = x->window;
    if (x->room != NULL) {
        move_in(x);
        goto out;
    }
    x->result = (float *)((char *)x->window + at);
    if (!in_place) at += stride;
    for (int i = 0; i < x->plan.n_in; i++, at += part) {
        x->in[i] = (const float *)((char *)x->window + at);
        if (x->owner[i] == x->self) x->part_at[j++] = (float *)((char *)x->window + at);
    }
    at += (size_t)before * stride;
    if (own > 0) {
        const lsi_claim *m = &all[x->rank];
        LS_TRY(lsi_leaves_create(x, m->first, m->end, own, (float *)((char *)x->window + at), stride, err));
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
    int64_t chunk = x->n / (x->size * CHUNKS_PER_RANK);

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
    (*x)->kind = (ls_collective)mine->kind;
    (*x)->rank = ls_group_rank(c, o->group);
    (*x)->size = ls_group_size(c, o->group);
    (*x)->across = o->group == LS_GROUP_ALL && c->remote != NULL;
    (*x)->self = (*x)->across ? c->local_rank : (*x)->rank;
    (*x)->here = (*x)->across ? c->local_size : (*x)->size;
    (*x)->first = c->local_rank - (*x)->self;
    (*x)->root = o->root;
    (*x)->newest_first = o->newest_first;
    (*x)->room = o->room;
    (*x)->n = mine->n;
    (*x)->n_shards = mine->n_shards;
    (*x)->scale = mine->scale;
    strncpy((*x)->name, o->name, sizeof(*x)->name - 1);
    return check_claim(mine, o->name, err);
}

ls_status lsi_exchange_make(ls_exchange **out, ls_comm *c, const ls_exchange_options *o, ls_err *err)
{
    ls_status st = LS_OK;
    ls_exchange *x = NULL;
    lsi_claim *all = NULL, mine = claim_of(c, o);

    *out = NULL;
    LS_TRY(lsi_all_well(c, begin(&x, &all, c, o, &mine, err), o->name, err));
    LS_TRY(gather_claims(x, &mine, all, err));
    if (x->across)
        lsi_remote_choose_slices(x);
    else
        choose_chunks(x);
    LS_TRY(lsi_all_well(c, plan_inputs(x, all, err), x->name, err));
    LS_TRY(lsi_all_well(c, lay_out(x, all, err), x->name, err));
    /* Between machines slices begin anywhere, and what is summed here is sent next. */
    x->loops = lsi_sum_loops_best(!x->across && past_cache(x));
    *out = x;
    x = NULL;
out:
    if (x != NULL) x->board = NULL; /* ranks that failed do not count the others */
    lsi_exchange_destroy(x);
    ls_free(all);
    return st;
}

void lsi_exchange_destroy(ls_exchange *x)
{
    if (x == NULL) return;
    bool last = x->board != NULL && atomic_fetch_add(&x->board->closed, 1) + 1 == x->here;
    lsi_heap_unmap(x->c->heap, x->window);
    if (last) lsi_heap_discard(x->c->heap, x->offset, x->bytes);
    lsi_remote_exchange_destroy(x);
    lsi_leaves_destroy(x);
    lsi_sum_plan_release(&x->plan);
    ls_free(x->stack);
    ls_free(x->weight);
    ls_free(x->owner);
    ls_free(x->covers);
    ls_free(x->in);
    ls_free(x->part_at);
    ls_free(x->part);
    ls_free(x);
}

void ls_exchange_transit(const ls_comm *c, const ls_exchange_options *o, ls_transit *out)
{
    const lsi_claim m = claim_of(c, o);

    *out = (ls_transit){{0}};
    if (o->group != LS_GROUP_ALL || (c->remote == NULL && c->hosts == 1)) return;
    lsi_remote_exchange_transit(c, &m, out);
}

size_t ls_transit_bytes(const ls_transit *t)
{
    size_t sum = 0;

    for (int i = 0; i < LS_TRANSIT_SIZES; i++) sum += t->bytes[i];
    return sum;
}

/* Its parts and leaves, and its share of what the machine holds once; the only rank's part becomes the
 * result. */
size_t lsi_exchange_bytes(const ls_comm *c, const ls_exchange_options *o)
{
    const lsi_claim m = claim_of(c, o);
    const ls_collective kind = kind_of(o);
    const int ranks = ls_group_size(c, o->group);
    const size_t part = stride_of(part_floats(kind, m.n, ranks)), result = ranks > 1 ? stride_of(m.n) : 0;
    const int here = o->group == LS_GROUP_ALL ? c->local_size : ranks;
    lsi_node parts[LSI_MAX_PARTS];
    size_t n_parts = lsi_copies(kind) ? 1 : (size_t)lsi_tree_parts(m.n_shards, m.first, m.end, parts);
    size_t own = (size_t)lsi_leaves_buffers(m.n_shards, m.first, m.end, m.lanes) * stride_of(m.n);

    if (kind == LS_COLL_BROADCAST && ls_group_rank(c, o->group) != o->root) n_parts = 0;
    if (o->room != NULL) return own + board_bytes(c->local_size) / (size_t)here;
    return own + n_parts * part + (result + board_bytes(c->local_size)) / (size_t)here;
}
