/* peers.c: all_reduce_start and all_reduce_finish over a communicator. */
#include "exec/peers.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "exec/plan_internal.h"
#include "ops/ops.h"

enum { ALIGN = 16 }; /* floats: tensors of a bucket begin at cache lines */

typedef struct bucket {
    ls_exchange *x;
    int number;
    int64_t n;    /* floats */
    float weight; /* of the start that waits, without overlap */
    bool waiting, under_way;
} bucket;

struct ls_peers {
    ls_comm *comm; /* NULL: absent */
    int ranks;
    ls_peers_options how;
    bucket *buckets;
    int n;
    size_t cap;
    int under_way; /* exchanges that were started and are not finished */
    ls_err failure;
};

/* Where a tensor lies in its bucket, in floats. */
typedef struct piece {
    int64_t offset, count;
} piece;

/* The kernel of either node. */
typedef struct transfer {
    ls_peers *peers;
    int bucket;             /* its place among the peers' */
    int n_tensors, n_plain; /* the last n_plain are not weighted */
    piece pieces[];
} transfer;

ls_status ls_peers_create(ls_peers **out, ls_comm *comm, const ls_peers_options *o, ls_err *err)
{
    ls_peers *p = ls_alloc(LS_MEM_PLAN, sizeof *p);

    *out = p;
    if (p == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    p->comm = comm;
    p->ranks = ls_comm_size(comm);
    p->how = *o;
    return LS_OK;
}

ls_status ls_peers_create_absent(ls_peers **out, int ranks, bool share, ls_err *err)
{
    ls_peers *p = ls_alloc(LS_MEM_PLAN, sizeof *p);

    *out = p;
    if (p == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    p->ranks = ranks;
    p->how.share = share;
    return LS_OK;
}

void ls_peers_destroy(ls_peers *p)
{
    if (p == NULL) return;
    for (int i = 0; i < p->n; i++) ls_exchange_destroy(p->buckets[i].x);
    ls_free(p->buckets);
    ls_free(p);
}

ls_status ls_peers_status(const ls_peers *p, ls_err *err)
{
    return p->failure.status == LS_OK ? LS_OK : ls_fail(err, p->failure.status, "%s", p->failure.text);
}

int ls_peers_buckets(const ls_peers *p)
{
    return p->n;
}

size_t ls_peers_bucket_bytes(const ls_peers *p, int bucket)
{
    return (size_t)p->buckets[bucket].n * sizeof(float);
}

int ls_peers_bucket_at(const ls_peers *p, const ls_plan *plan, int node)
{
    const lsi_step *s = &plan->steps[node];

    return lsi_peers_runs(p, s->node) ? ((const transfer *)s->kernel.state)->bucket : -1;
}

size_t ls_peers_bytes(const ls_peers *p)
{
    size_t sum = 0;

    for (int i = 0; i < p->n; i++) {
        const ls_exchange_options o = {.n = p->buckets[i].n, .wire = p->how.wire};
        sum += p->comm != NULL ? ls_exchange_bytes(p->comm, &o) : ls_exchange_bytes_on(p->ranks, o.n);
    }
    return sum;
}

/* -- planning ---------------------------------------------------------------------------------------------
 */

bool lsi_peers_runs(const ls_peers *p, const ls_node *n)
{
    return p != NULL && (n->op == &ls_op_all_reduce_start || n->op == &ls_op_all_reduce_finish);
}

static ls_status reserve(ls_peers *p, ls_err *err)
{
    if (LS_GROW(LS_MEM_PLAN, p->buckets, p->n + 1, p->cap)) return LS_OK;
    return ls_fail(err, LS_NOMEM, "ranks: no memory");
}

/* The plans of one part of a step have the same exchanges, whatever the batch; those of another part differ
 * in number or length. */
static ls_status find_exchange(ls_peers *p, int number, int64_t n, int *index, ls_err *err)
{
    char name[32];
    const ls_exchange_options o = {.name = name, .n = n, .wire = p->how.wire};
    ls_status st = LS_OK;

    for (*index = 0; *index < p->n; ++*index)
        if (p->buckets[*index].number == number && p->buckets[*index].n == n) return LS_OK;
    snprintf(name, sizeof name, "bucket %d", number);
    LS_TRY(reserve(p, err));
    p->buckets[p->n] = (bucket){.number = number, .n = n};
    if (p->comm != NULL) LS_TRY(ls_exchange_create(&p->buckets[p->n].x, p->comm, &o, err));
    p->n++;
out:
    return st;
}

static void fail(ls_peers *p, const ls_err *err)
{
    if (p->failure.status == LS_OK) p->failure = *err;
}

static void launch(ls_peers *p, bucket *b, float weight)
{
    ls_exchange_start(b->x, weight);
    b->under_way = true;
    p->under_way++;
}

static void run_start(void *state, const ls_call *call)
{
    const transfer *t = state;
    bucket *b = &t->peers->buckets[t->bucket];
    const float weight = *(const float *)call->in[0];
    float *part = ls_exchange_part(b->x, 0);

    *(float *)call->out[0] = weight;
    for (int i = 0; i < t->n_tensors; i++) {
        const float *from = call->in[1 + i];
        float *to = part + t->pieces[i].offset;
        if (t->n_plain > 0 && i < t->n_tensors - t->n_plain)
            for (int64_t k = 0; k < t->pieces[i].count; k++) to[k] = weight * from[k];
        else if (from != to)
            memcpy(to, from, (size_t)t->pieces[i].count * sizeof *to);
    }
    b->weight = t->n_plain > 0 ? 1 : weight;
    b->waiting = !t->peers->how.overlap;
    if (!b->waiting) launch(t->peers, b, b->weight);
}

static void run_finish(void *state, const ls_call *call)
{
    const transfer *t = state;
    ls_peers *p = t->peers;
    bucket *b = &p->buckets[t->bucket];
    ls_err err = {0};

    (void)call; /* the results lie where the outputs are */
    if (b->waiting) launch(p, b, b->weight);
    b->waiting = false;
    if (!b->under_way) return;
    if (ls_exchange_wait(b->x, &err) != LS_OK) fail(p, &err);
    b->under_way = false;
    p->under_way--;
}

bool lsi_peers_absent(const ls_peers *p)
{
    return p->comm == NULL;
}

void lsi_peers_progress(ls_peers *p)
{
    ls_comm_beat(p->comm);
    if (p->under_way == 0) return;
    /* Sums take the time of the core that computes: one piece between two nodes.  Between machines all that
     * can travel should be travelling. */
    const bool wire = ls_comm_hosts(p->comm) > 1;
    for (int i = 0; i < p->n; i++)
        if (p->buckets[i].under_way && !ls_exchange_progress(p->buckets[i].x) && !wire) return;
}

ls_status lsi_peers_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_all_reduce_attr *attr = n->attr;
    const int n_tensors = n->n_in - 1;
    transfer *t = ls_alloc(LS_MEM_PLAN, sizeof *t + sizeof t->pieces[0] * (size_t)n_tensors);
    int64_t length = 0;
    ls_status st;

    if (t == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    t->peers = p;
    t->n_tensors = n_tensors;
    t->n_plain = attr->plain;
    for (int i = 0; i < n_tensors; i++) {
        t->pieces[i] = (piece){length, ls_shape_count(*ls_node_in_shape(g, n, 1 + i))};
        length += (t->pieces[i].count + ALIGN - 1) / ALIGN * ALIGN;
    }
    st = find_exchange(p, attr->bucket, length, &t->bucket, err);
    *out = (ls_kernel){n->op == &ls_op_all_reduce_start ? run_start : run_finish, ls_free, t, 0,
                       p->comm != NULL ? ls_comm_kind(p->comm) : "absent"};
    return st;
}

/* Whether the value's maker can write it into the bucket: it is made by a kernel, into memory of its own. */
static bool can_move(const ls_graph *g, int32_t v)
{
    const ls_vinfo *x = g->values[v];

    return x->kind == LS_VALUE_NODE && x->var < 0 && !x->fetch && !x->external &&
           x->layout == LS_LAYOUT_PLAIN;
}

void lsi_peers_place(const ls_kernel *k, ls_graph *g, const ls_node *n, void **external)
{
    transfer *t = k->state;
    ls_exchange *x = t->peers->buckets[t->bucket].x;
    const bool start = n->op == &ls_op_all_reduce_start;

    for (int i = 0; i < t->n_tensors; i++) {
        const int32_t v = start ? ls_graph_storage(g, n->in[1 + i]) : n->out[i];
        /* Where not all are weighted alike, they are weighted on their way into the bucket. */
        if (start && (t->n_plain > 0 || !can_move(g, v))) continue;
        g->values[v]->external = true;
        if (x == NULL) /* absent: some address that is not ours, since nothing will be written there */
            external[v] = t;
        else
            external[v] = start ? ls_exchange_part(x, 0) + t->pieces[i].offset
                                : (float *)(uintptr_t)(ls_exchange_result(x) + t->pieces[i].offset);
    }
}

/* -- shared variables ---------------------------------------------------------------------------------------
 */

ls_comm *lsi_peers_sharing(const ls_peers *p)
{
    return p != NULL && p->comm != NULL && p->how.share && ls_comm_local_size(p->comm) > 1 ? p->comm : NULL;
}

size_t lsi_peers_part_of(const ls_peers *p, size_t bytes)
{
    size_t keepers = 1;

    if (p != NULL && p->how.share)
        keepers = (size_t)(p->comm != NULL ? ls_comm_local_size(p->comm) : p->ranks);
    return (bytes + keepers - 1) / keepers;
}

bool lsi_peers_first_here(const ls_peers *p)
{
    return ls_comm_local_rank(p->comm) == 0;
}

void lsi_peers_take_share(const ls_peers *p, ls_optim_attr *attr)
{
    attr->share = ls_comm_local_rank(p->comm);
    attr->shares = ls_comm_local_size(p->comm);
}

/* An optimiser's kernel among its meetings. */
typedef struct guarded {
    ls_peers *peers;
    ls_kernel kernel;
    bool first, last; /* of the nodes of one update */
} guarded;

static bool work_on_exchanges(void *peers)
{
    ls_peers *p = peers;

    for (int i = 0; p->under_way > 0 && i < p->n; i++)
        if (p->buckets[i].under_way && ls_exchange_work(p->buckets[i].x)) return true;
    return false;
}

static void meet(ls_peers *p, const char *what)
{
    ls_err err = {0};

    if (ls_comm_meet(p->comm, what, work_on_exchanges, p, &err) != LS_OK) fail(p, &err);
}

/* What reads old values of any of the update's variables comes before its first node, and what reads new ones
 * after its last (passes/updates.h): between the two meetings every rank touches its own pieces alone. */
static void run_guarded(void *state, const ls_call *call)
{
    const guarded *g = state;

    if (g->first) meet(g->peers, "before an update");
    g->kernel.run(g->kernel.state, call);
    if (g->last) meet(g->peers, "after an update");
}

static void destroy_guarded(void *state)
{
    guarded *g = state;

    if (g->kernel.destroy != NULL) g->kernel.destroy(g->kernel.state);
    ls_free(g);
}

ls_status lsi_peers_guard_take(ls_peers *p, const ls_optim_attr *attr, ls_kernel *k, ls_err *err)
{
    guarded *g = ls_alloc(LS_MEM_PLAN, sizeof *g);

    if (g == NULL) {
        if (k->destroy != NULL) k->destroy(k->state);
        *k = (ls_kernel){0};
        return ls_fail(err, LS_NOMEM, "ranks: no memory");
    }
    *g = (guarded){p, *k, !attr->later, !attr->part};
    k->run = run_guarded;
    k->destroy = destroy_guarded;
    k->state = g;
    return LS_OK;
}
