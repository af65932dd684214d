/* collectives.c: where the tensors of a bucket lie, and the kernels that start and wait. */
#include "exec/collectives.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "exec/collectives_internal.h"
#include "exec/links.h"
#include "ops/ops.h"

enum { FEW = 64 };            /* floats that are not worth a narrow wire */
enum { ALIGN = 16 };          /* floats: tensors of a bucket begin at cache lines */
enum { PARTS = 0, SUMS = 1 }; /* the two buffers of a bucket: what this rank gives, and what comes of it */

/* -- planning ---------------------------------------------------------------------------------------------
 */

bool lsi_coll_runs(const ls_peers *p, const ls_node *n)
{
    return p != NULL && (n->op->flags & LS_OP_COLLECTIVE) != 0;
}

bool lsi_coll_on_host(const ls_peers *p, const ls_node *n)
{
    return lsi_coll_runs(p, n) && !lsi_links_run(p, n);
}

bool lsi_coll_begins(const ls_node *n)
{
    return (n->op->flags & LS_OP_COLLECTIVE) != 0 && n->op->coll_op != LS_COLL_OP_WAIT &&
           n->op->coll_op != LS_COLL_OP_LEAF;
}

int lsi_coll_bucket(const ls_kernel *k)
{
    return ((const lsi_transfer *)k->state)->bucket;
}

static bool same(const lsi_bucket *b, int number, const ls_exchange_options *o)
{
    return b->number == number && b->how.n == o->n && b->how.kind == o->kind && b->how.group == o->group &&
           b->how.root == o->root && b->how.n_shards == o->n_shards && b->how.room == o->room;
}

/* The room of that number that is large enough; rooms grow by making another. */
static const ls_exchange_room *find_room(const ls_peers *p, int number, const ls_exchange_options *o)
{
    ls_exchange_room need = {0};

    ls_exchange_need_room(p->comm, o, &need);
    for (int i = 0; i < p->n_rooms; i++) {
        const lsi_room *r = p->rooms[i];
        if (r->number == number && r->group == o->group && r->room.result_bytes >= need.result_bytes &&
            r->room.part_bytes >= need.part_bytes)
            return &r->room;
    }
    LS_BUG_IF(true); /* lsi_coll_rooms has made it */
    return NULL;
}

/* The plans of one part of a step have the same buckets, whatever the batch; those of another part differ in
 * number or length.  True: it was not there, and is the last one now unless memory ran out (*index is -1). */
static bool add_bucket(ls_peers *p, int number, const ls_exchange_options *o, int *index)
{
    for (*index = 0; *index < p->n; ++*index)
        if (same(&p->buckets[*index], number, o)) return false;
    if (!LS_GROW(LS_MEM_PLAN, p->buckets, p->n + 1, p->cap))
        *index = -1;
    else
        p->buckets[p->n] = (lsi_bucket){.number = number, .how = *o};
    return true;
}

static ls_status find_exchange(ls_peers *p, int number, ls_exchange_options o, int *index, ls_err *err)
{
    char name[32];
    ls_status st = LS_OK;

    if (!add_bucket(p, number, &o, index)) return LS_OK;
    if (*index < 0) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    snprintf(name, sizeof name, "bucket %d", number);
    o.name = name;
    LS_TRY(ls_exchange_create(&p->buckets[p->n].x, p->comm, &o, err));
    p->n++;
out:
    return st;
}

static ls_exchange_options options_of(const ls_peers *p, const ls_op *op, const ls_collective_attr *a)
{
    ls_exchange_options o = {
        .kind = op->collective, .group = a->group, .root = a->root, .newest_first = a->carried};

    if (a->shards == 0) {
        o.wire = a->exact ? LS_WIRE_F32 : p->how.wire;
        return o;
    }
    o.n_shards = a->shards; /* bits that do not depend on machines: nothing is rounded on its way */
    o.first_shard = p->how.first_shard;
    o.end_shard = p->how.end_shard;
    o.lanes = p->how.lanes;
    return o;
}

ls_status lsi_coll_note_bucket(ls_peers *p, const ls_node *n, lsi_transfer *t, ls_err *err)
{
    const ls_collective_attr *a = n->attr;
    ls_exchange_options o = options_of(p, n->op, a);

    o.n = t->length * t->stretches;
    if (!add_bucket(p, a->bucket, &o, &t->bucket)) return LS_OK;
    if (t->bucket < 0) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    p->n++;
    return LS_OK;
}

static ls_status check_ranks(const ls_peers *p, const ls_collective_attr *a, ls_err *err)
{
    const int ranks = ls_group_size(p->comm, a->group);

    if (a->ranks == 0 || a->ranks == ranks) return LS_OK;
    return ls_fail(err, LS_INVALID, "pieces of %d ranks, and there are %d", a->ranks, ranks);
}

/* Tensors begin at cache lines; a tensor alone, where each rank has a piece, lies as it is. */
static void lay_tensors(const ls_graph *g, const ls_node *n, bool pieces, bool given_whole, lsi_transfer *t)
{
    for (int i = 0; i < t->n; i++) {
        const int64_t count = ls_shape_count(*ls_node_in_shape(g, n, t->first + i));
        lsi_place *at = &t->at[i];
        int64_t floats;
        at->offset = t->length;
        at->count = pieces && given_whole ? ls_exchange_piece(count, t->stretches) : count;
        at->whole = count;
        at->size = (int64_t)ls_dtype_size(g->values[n->in[t->first + i]]->dtype);
        floats = (at->count * at->size + (int64_t)sizeof(float) - 1) / (int64_t)sizeof(float);
        t->length += pieces && t->n == 1 ? floats : (floats + ALIGN - 1) / ALIGN * ALIGN;
    }
}

/* Which tensors the node has, and where they lie in the vector. */
ls_status lsi_coll_lay_out(const ls_peers *p, const ls_graph *g, const ls_node *n, lsi_transfer *t,
                           ls_err *err)
{
    const ls_collective_attr *a = n->attr;
    const ls_collective kind = n->op->collective;
    const bool sums = kind == LS_COLL_ALL_REDUCE || kind == LS_COLL_REDUCE_SCATTER;
    ls_status st = LS_OK;

    t->first = n->op->coll_op == LS_COLL_OP_LEAF ? 2 : n->op->coll_op == LS_COLL_OP_WAIT || sums ? 1 : 0;
    t->n = n->n_in - t->first;
    t->scatters = kind == LS_COLL_REDUCE_SCATTER;
    t->gathers = kind == LS_COLL_ALL_GATHER;
    t->gives = kind != LS_COLL_BROADCAST || ls_group_rank(p->comm, a->group) == a->root;
    if (t->scatters || t->gathers) {
        LS_TRY(check_ranks(p, a, err));
        t->stretches = a->ranks;
        t->own = ls_group_rank(p->comm, a->group);
    }
    lay_tensors(g, n, t->stretches > 1 || t->scatters || t->gathers, t->scatters, t);
out:
    return st;
}

lsi_transfer *lsi_coll_transfer(ls_peers *p, const ls_node *n)
{
    const ls_collective_attr *a = n->attr;
    lsi_transfer *t = ls_alloc(LS_MEM_PLAN, sizeof *t + sizeof t->at[0] * (size_t)n->n_in);

    if (t == NULL) return NULL;
    *t = (lsi_transfer){.peers = p,
                        .bucket = -1,
                        .n_plain = a->plain,
                        .tree = a->shards > 0,
                        .stretches = 1,
                        .group = a->group,
                        .what = ls_barrier_name(a->at),
                        .shared = a->room > 0};
    return t;
}

/* -- rooms ------------------------------------------------------------------------------------------------
 */

static lsi_room *add_room(ls_peers *p, int number, ls_group group)
{
    lsi_room *r;

    if (!LS_GROW(LS_MEM_PLAN, p->rooms, p->n_rooms + 1, p->cap_rooms)) return NULL;
    r = p->rooms[p->n_rooms] = ls_alloc(LS_MEM_PLAN, sizeof *r);
    if (r == NULL) return NULL;
    *r = (lsi_room){.number = number, .group = group};
    p->n_rooms++;
    return r;
}

/* What a node needs of its room, of those that are new since `first`; where an older one is large enough,
 * nothing. */
static ls_status need_room(ls_peers *p, const ls_graph *g, const ls_node *n, int first, ls_err *err)
{
    const ls_collective_attr *a = n->attr;
    ls_exchange_options o = options_of(p, n->op, a);
    ls_exchange_room need = {0};
    lsi_room *mine = NULL;
    lsi_transfer *t = lsi_coll_transfer(p, n);
    ls_status st = t != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "ranks: no memory");

    if (t != NULL) LS_TRY(lsi_coll_lay_out(p, g, n, t, err));
    if (st != LS_OK) goto out;
    o.n = t->length * t->stretches;
    ls_exchange_need_room(p->comm, &o, &need);
    for (int i = 0; i < p->n_rooms; i++) {
        lsi_room *r = p->rooms[i];
        if (r->number != a->room || r->group != a->group) continue;
        if (i < first && r->room.result_bytes >= need.result_bytes && r->room.part_bytes >= need.part_bytes)
            goto out;
        if (i >= first) mine = r;
    }
    if (mine == NULL) mine = add_room(p, a->room, a->group);
    if (mine == NULL)
        st = ls_fail(err, LS_NOMEM, "ranks: no memory");
    else
        ls_exchange_need_room(p->comm, &o, &mine->room);
out:
    ls_free(t);
    return st;
}

/* Groups of a machine have theirs side by side. */
static ls_status make_room(ls_peers *p, lsi_room *r, ls_err *err)
{
    const size_t bytes = ls_exchange_room_bytes(p->comm, r->group, &r->room);
    const int here = ls_comm_local_size(p->comm),
              groups = r->group == LS_GROUP_ALL ? 1 : here / ls_group_size(p->comm, r->group);
    ls_status st = LS_OK;

    if (lsi_peers_absent(p)) return LS_OK;
    LS_TRY(ls_shared_create(&r->memory, p->comm, bytes * (size_t)groups, err));
    r->room.at = ls_shared_data(r->memory);
    r->room.at += bytes * (size_t)(groups > 1 ? ls_comm_local_rank(p->comm) / (here / groups) : 0);
out:
    return st;
}

ls_status lsi_coll_rooms(ls_peers *p, const ls_graph *g, ls_err *err)
{
    const int first = p != NULL ? p->n_rooms : 0;
    ls_status st = LS_OK;

    if (p != NULL && p->links != NULL) return lsi_links_rooms(p, g, err);
    for (int32_t i = 0; p != NULL && i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || !lsi_coll_runs(p, n) || n->op->coll_op != LS_COLL_OP_START) continue;
        if (((const ls_collective_attr *)n->attr)->room > 0) LS_TRY(need_room(p, g, n, first, err));
    }
    for (int i = first; p != NULL && i < p->n_rooms; i++) LS_TRY(make_room(p, p->rooms[i], err));
out:
    return st;
}

/* -- kernels ----------------------------------------------------------------------------------------------
 */

static void run_leaf(void *state, const ls_call *call);
static void run_start(void *state, const ls_call *call);
static void run_wait(void *state, const ls_call *call);
static void run_barrier(void *state, const ls_call *call);

ls_status lsi_coll_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    static void (*const run[])(void *, const ls_call *) = {
        [LS_COLL_OP_WHOLE] = run_barrier,
        [LS_COLL_OP_LEAF] = run_leaf,
        [LS_COLL_OP_START] = run_start,
        [LS_COLL_OP_WAIT] = run_wait,
    };
    const ls_collective_attr *a = n->attr;
    ls_exchange_options o = options_of(p, n->op, a);
    lsi_transfer *t;
    ls_status st = LS_OK;

    if (lsi_links_run(p, n)) return lsi_links_plan(p, g, n, out, err);
    t = lsi_coll_transfer(p, n);
    if (t == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    *out = (ls_kernel){
        .run = run[n->op->coll_op], .destroy = ls_free, .state = t, .impl = ls_comm_kind(p->comm)};
    if (n->op->coll_op == LS_COLL_OP_WHOLE) return LS_OK;
    LS_TRY(lsi_coll_lay_out(p, g, n, t, err));
    o.n = t->length * t->stretches;
    if (o.n <= FEW) o.wire = LS_WIRE_F32; /* single numbers, such as a sum of squares, travel as they are */
    if (t->shared) o.room = find_room(p, a->room, &o);
    LS_TRY(find_exchange(p, a->bucket, o, &t->bucket, err));
    p->buckets[t->bucket].carried = a->carried;
out:
    return st;
}

/* -- where values lie ---------------------------------------------------------------------------------------
 */

/* Whether the value's maker can write it into the bucket: it is made by a kernel, into memory of its own. */
static bool can_move(const ls_graph *g, int32_t v)
{
    const ls_vinfo *x = g->values[v];

    return x->kind == LS_VALUE_NODE && x->var < 0 && !x->fetch && x->buffer < 0 &&
           x->layout == &ls_layout_plain;
}

/* Of several tensors in pieces none lies in one stretch.  Where not all are weighted alike, they are weighted
 * on their way into the bucket; what leaves have brought is not given again. */
static bool given_in_place(const lsi_transfer *t)
{
    return t->gives && !t->tree && t->n_plain == 0 && !t->shared && (!t->scatters || t->n == 1);
}

static bool comes_in_place(const lsi_transfer *t)
{
    if (t->shared || !t->gathers) return !t->shared;
    return t->n == 1 && t->at[0].count * t->at[0].size == t->length * (int64_t)sizeof(float);
}

/* Where node `id` comes in the order; -1: it is a view, or no node. */
static int32_t place_in(const ls_schedule *s, int32_t id)
{
    for (int32_t i = 0; id >= 0 && i < s->n; i++)
        if (s->order[i] == id) return i;
    return -1;
}

/* The run before may be exchanging the bucket until its wait is over, in this run.  Nodes of devices without
 * queues, which alone carry anything, run in this order.  -1: it is free at any time. */
static int32_t free_from(const ls_graph *g, const ls_schedule *s, const ls_node *start)
{
    const ls_node *wait = ls_carried_wait(g, start);

    return wait != NULL ? place_in(s, wait->id) : -1;
}

void lsi_coll_place(const ls_kernel *k, ls_graph *g, const ls_schedule *s, const ls_node *n)
{
    const lsi_transfer *t = k->state;
    const bool start = n->op->coll_op == LS_COLL_OP_START;

    if (t->vector != NULL) return; /* the device's, who moves what there is */
    if (start ? !given_in_place(t) : n->op->coll_op != LS_COLL_OP_WAIT || !comes_in_place(t)) return;
    const int32_t from = start ? free_from(g, s, n) : -1;
    for (int i = 0; i < t->n; i++) {
        const int32_t v = start ? ls_graph_storage(g, n->in[t->first + i]) : n->out[i];
        const int64_t stretch = !start && t->scatters ? t->own * t->length : 0;
        if (start && (!can_move(g, v) || (from >= 0 && place_in(s, g->values[v]->node) < from))) continue;
        g->values[v]->buffer = 2 * t->bucket + (start ? PARTS : SUMS);
        g->values[v]->at = (size_t)(stretch + t->at[i].offset) * sizeof(float);
    }
}

void *lsi_coll_address(const ls_peers *p, const ls_vinfo *v)
{
    ls_exchange *x = p->buckets[v->buffer / 2].x;
    const char *base =
        v->buffer % 2 == PARTS ? (const char *)ls_exchange_part(x, 0) : (const char *)ls_exchange_result(x);

    return base != NULL ? (char *)(uintptr_t)base + v->at : NULL; /* absent: nothing will be written there */
}

/* -- running ------------------------------------------------------------------------------------------------
 */

/* Of a run that has failed nothing is exchanged: what lies there may be an older step's.  All waits for it
 * end with this rank's communicator (lsi_plan_run_node). */
static void launch(ls_peers *p, lsi_bucket *b, float weight, const ls_stream *s)
{
    if (s != NULL && s->failure->told) return;
    ls_exchange_start(b->x, weight);
    b->under_way = true;
    p->under_way++;
    p->carried += b->carried;
}

static ls_status read_operand(const ls_operand *x, int64_t from, void *to, int64_t floats, ls_err *err)
{
    return ls_buffer_read(x->buffer, x->at + (size_t)from * sizeof(float), to, (size_t)floats * sizeof(float),
                          err);
}

static ls_status write_float(const ls_operand *x, float value, ls_err *err)
{
    return ls_buffer_write(x->buffer, x->at, &value, sizeof value, err);
}

/* n floats of x, from element `from` on, to `to`, weighted; most are there already.  Of weight 0 they are
 * zeros, whatever was made up in the place of samples. */
static ls_status take(const ls_operand *x, int64_t from, int64_t n, float weight, float *to, ls_err *err)
{
    const float *here = ls_buffer_host(x->buffer, x->at + (size_t)from * sizeof(float));
    ls_status st = LS_OK;

    if (n <= 0) return LS_OK;
    if (weight == 0) {
        memset(to, 0, sizeof *to * (size_t)n);
        return LS_OK;
    }
    if (here == NULL || (weight == 1 && here != to)) {
        st = read_operand(x, from, to, n, err);
        here = to;
    }
    for (int64_t k = 0; weight != 1 && k < n; k++) to[k] = weight * here[k];
    return st;
}

/* A piece of 16-bit numbers, which others only copy: as it is, with zeros behind an odd one. */
static ls_status give_narrow(const lsi_place *at, const ls_operand *x, float *to, ls_err *err)
{
    const size_t bytes = (size_t)(at->count * at->size);

    if (ls_buffer_host(x->buffer, x->at) == (void *)(to + at->offset)) return LS_OK;
    if (bytes % sizeof *to != 0) to[at->offset + (int64_t)(bytes / sizeof *to)] = 0;
    return ls_buffer_read(x->buffer, x->at, to + at->offset, bytes, err);
}

/* Tensor i into the vector at `to`, which is cut in stretches where what is given is in pieces. */
static ls_status give(const lsi_transfer *t, int i, const ls_operand *x, float weight, float *to, ls_err *err)
{
    const lsi_place *at = &t->at[i];
    ls_status st = LS_OK;

    if (at->size != (int64_t)sizeof *to) return give_narrow(at, x, to, err);
    for (int r = 0; r < (t->scatters ? t->stretches : 1) && st == LS_OK; r++) {
        const int64_t from = r * at->count, left = at->whole - from;
        const int64_t n = left < at->count ? (left > 0 ? left : 0) : at->count;
        float *here = to + r * t->length + at->offset;
        st = take(x, from, n, weight, here, err);
        if (n < at->count) memset(here + n, 0, sizeof *here * (size_t)(at->count - n));
    }
    return st;
}

/* The weight of the node, and its token, which is the same. */
static ls_status pass_weight(const lsi_transfer *t, const ls_call *call, float *weight, ls_err *err)
{
    ls_status st = LS_OK;

    *weight = 1;
    if (t->first > 0) LS_TRY(read_operand(&call->operands[0], 0, weight, 1, err));
    LS_TRY(write_float(&call->operands[t->first + t->n], *weight, err));
out:
    return st;
}

static void run_start(void *state, const ls_call *call)
{
    const lsi_transfer *t = state;
    lsi_bucket *b = &t->peers->buckets[t->bucket];
    float *part = t->gives ? ls_exchange_part(b->x, 0) : NULL, weight = 1;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(pass_weight(t, call, &weight, &err));
    /* Leaves that were not given are completed by the start, and must not write over what is plain. */
    for (int i = 0; t->gives && i < t->n && !t->tree; i++) {
        const bool weighs = t->n_plain > 0 && i < t->n - t->n_plain;
        LS_TRY(give(t, i, &call->operands[t->first + i], weighs ? weight : 1, part, &err));
    }
    if (t->tree) ls_exchange_complete(b->x);
    for (int i = t->n - t->n_plain; t->tree && i < t->n; i++)
        LS_TRY(give(t, i, &call->operands[t->first + i], 1, part, &err));
out:
    if (st != LS_OK) ls_stream_fail(call->stream, st, "%s", err.text);
    b->weight = t->n_plain > 0 || t->tree ? 1 : weight;
    b->waiting = !t->peers->how.overlap;
    if (!b->waiting) launch(t->peers, b, b->weight, call->stream);
}

static void run_leaf(void *state, const ls_call *call)
{
    const lsi_transfer *t = state;
    ls_exchange *x = t->peers->buckets[t->bucket].x;
    float *leaf = ls_exchange_leaf(x), weight = 0, shard = 0;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(pass_weight(t, call, &weight, &err));
    LS_TRY(read_operand(&call->operands[1], 0, &shard, 1, &err));
    for (int i = 0; i < t->n; i++) {
        const int64_t end = i + 1 < t->n ? t->at[i + 1].offset : t->length;
        float *to = leaf + t->at[i].offset;
        LS_TRY(take(&call->operands[t->first + i], 0, t->at[i].count, weight, to, &err));
        memset(to + t->at[i].count, 0, sizeof *to * (size_t)(end - t->at[i].offset - t->at[i].count));
    }
    ls_exchange_give(x, leaf, (int64_t)shard);
out:
    if (st != LS_OK) ls_stream_fail(call->stream, st, "%s", err.text);
}

/* Pieces of all ranks, one after the other, where they do not lie so already; of scattered sums, this rank's.
 */
static ls_status collect(const lsi_transfer *t, const float *all, const ls_call *call, ls_err *err)
{
    const int first = t->scatters ? t->own : 0, end = t->scatters ? t->own + 1 : t->stretches;
    ls_status st = LS_OK;

    for (int i = 0; !comes_in_place(t) && i < t->n; i++)
        for (int r = first; r < end && st == LS_OK; r++) {
            const ls_operand *to = &call->operands[t->first + t->n + i];
            const size_t bytes = (size_t)(t->at[i].count * t->at[i].size);
            st = ls_buffer_write(to->buffer, to->at + (size_t)(r - first) * bytes,
                                 all + r * t->length + t->at[i].offset, bytes, err);
        }
    return st;
}

static void run_wait(void *state, const ls_call *call)
{
    const lsi_transfer *t = state;
    ls_peers *p = t->peers;
    lsi_bucket *b = &p->buckets[t->bucket];
    ls_err err = {0};

    if (b->waiting) launch(p, b, b->weight, call->stream);
    b->waiting = false;
    if (!b->under_way) return;
    if (ls_exchange_wait(b->x, &err) != LS_OK || collect(t, ls_exchange_result(b->x), call, &err) != LS_OK)
        ls_stream_fail(call->stream, err.status, "%s", err.text);
    b->under_way = false;
    p->under_way--;
    p->carried -= b->carried;
}

bool lsi_coll_carried(const ls_peers *p)
{
    return p != NULL && p->carried > 0;
}

static bool work_on_exchanges(void *peers)
{
    ls_peers *p = peers;

    for (int i = 0; p->under_way > 0 && i < p->n; i++)
        if (p->buckets[i].under_way && ls_exchange_work(p->buckets[i].x)) return true;
    return false;
}

static void run_barrier(void *state, const ls_call *call)
{
    const lsi_transfer *t = state;
    ls_comm *c = t->peers->comm;
    ls_err err = {0};

    if (write_float(&call->operands[0], 0, &err) != LS_OK ||
        ls_comm_collectives(c)->barrier(c, t->group, t->what, work_on_exchanges, t->peers, &err) != LS_OK)
        ls_stream_fail(call->stream, err.status, "%s", err.text);
}

void lsi_coll_progress(ls_peers *p)
{
    /* Who waits for devices that wait for each other does not get on. */
    if (p->links == NULL) ls_comm_beat(p->comm);
    if (p->under_way == 0) return;
    /* Sums take the time of the core that computes: one piece between two nodes.  Between machines all that
     * can travel should be travelling. */
    const bool wire = ls_comm_hosts(p->comm) > 1;
    for (int i = 0; i < p->n; i++)
        if (p->buckets[i].under_way && !ls_exchange_progress(p->buckets[i].x) && !wire) return;
}
