/* peers.c: collectives over a communicator. */
#include "exec/peers.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "exec/plan_internal.h"
#include "ops/ops.h"

enum { ALIGN = 16 };          /* floats: tensors of a bucket begin at cache lines */
enum { PARTS = 0, SUMS = 1 }; /* the two buffers of a bucket: what this rank gives, and what comes of it */

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

int ls_peers_buckets(const ls_peers *p)
{
    return p->n;
}

size_t ls_peers_bucket_bytes(const ls_peers *p, int bucket)
{
    return (size_t)p->buckets[bucket].n * sizeof(float);
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
    return p != NULL && (n->op->flags & LS_OP_COLLECTIVE) != 0;
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

static void launch(ls_peers *p, bucket *b, float weight)
{
    ls_exchange_start(b->x, weight);
    b->under_way = true;
    p->under_way++;
}

static ls_status read_operand(const ls_operand *x, void *to, size_t bytes, ls_err *err)
{
    return ls_buffer_read(x->buffer, x->at, to, bytes, err);
}

static ls_status write_float(const ls_operand *x, float value, ls_err *err)
{
    return ls_buffer_write(x->buffer, x->at, &value, sizeof value, err);
}

/* So many floats into the bucket, weighted; most are there already. */
static ls_status take(const ls_operand *x, float weight, float *to, int64_t n, ls_err *err)
{
    const float *from = ls_buffer_host(x->buffer, x->at);
    ls_status st = LS_OK;

    if (from == NULL || (weight == 1 && from != to)) {
        st = read_operand(x, to, (size_t)n * sizeof *to, err);
        from = to;
    }
    for (int64_t k = 0; weight != 1 && k < n; k++) to[k] = weight * from[k];
    return st;
}

static void run_start(void *state, const ls_call *call)
{
    const transfer *t = state;
    bucket *b = &t->peers->buckets[t->bucket];
    float *part = ls_exchange_part(b->x, 0), weight = 0;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(read_operand(&call->operands[0], &weight, sizeof weight, &err));
    LS_TRY(write_float(&call->operands[1 + t->n_tensors], weight, &err));
    for (int i = 0; i < t->n_tensors; i++) {
        const bool weighs = t->n_plain > 0 && i < t->n_tensors - t->n_plain;
        LS_TRY(take(&call->operands[1 + i], weighs ? weight : 1, part + t->pieces[i].offset,
                    t->pieces[i].count, &err));
    }
out:
    if (st != LS_OK) ls_stream_fail(call->stream, st, "%s", err.text);
    b->weight = t->n_plain > 0 ? 1 : weight;
    b->waiting = !t->peers->how.overlap;
    if (!b->waiting) launch(t->peers, b, b->weight);
}

static void run_wait(void *state, const ls_call *call)
{
    const transfer *t = state;
    ls_peers *p = t->peers;
    bucket *b = &p->buckets[t->bucket];
    ls_err err = {0};

    /* The results lie where the outputs are. */
    if (b->waiting) launch(p, b, b->weight);
    b->waiting = false;
    if (!b->under_way) return;
    if (ls_exchange_wait(b->x, &err) != LS_OK) ls_stream_fail(call->stream, err.status, "%s", err.text);
    b->under_way = false;
    p->under_way--;
}

int lsi_peers_rank(const ls_peers *p)
{
    return p != NULL && p->comm != NULL ? ls_comm_rank(p->comm) : 0;
}

bool lsi_peers_absent(const ls_peers *p)
{
    return p != NULL && p->comm == NULL;
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

/* -- all-reduce -------------------------------------------------------------------------------------------
 */

static ls_status plan_all_reduce(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    const ls_all_reduce_attr *attr = n->attr;
    const int n_tensors = n->n_in - 1;
    transfer *t = ls_alloc(LS_MEM_PLAN, sizeof *t + sizeof t->pieces[0] * (size_t)n_tensors);
    int64_t length = 0;

    if (t == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    t->peers = p;
    t->n_tensors = n_tensors;
    t->n_plain = attr->plain;
    for (int i = 0; i < n_tensors; i++) {
        t->pieces[i] = (piece){length, ls_shape_count(*ls_node_in_shape(g, n, 1 + i))};
        length += (t->pieces[i].count + ALIGN - 1) / ALIGN * ALIGN;
    }
    *out = (ls_kernel){.destroy = ls_free, .state = t};
    return find_exchange(p, attr->bucket, length, &t->bucket, err);
}

/* Whether the value's maker can write it into the bucket: it is made by a kernel, into memory of its own. */
static bool can_move(const ls_graph *g, int32_t v)
{
    const ls_vinfo *x = g->values[v];

    return x->kind == LS_VALUE_NODE && x->var < 0 && !x->fetch && x->buffer < 0 &&
           x->layout == &ls_layout_plain;
}

static void place_tensors(const ls_kernel *k, ls_graph *g, const ls_node *n)
{
    const transfer *t = k->state;
    const bool start = n->op->queue == LS_QUEUE_COMM; /* the other one waits for it */

    for (int i = 0; i < t->n_tensors; i++) {
        const int32_t v = start ? ls_graph_storage(g, n->in[1 + i]) : n->out[i];
        /* Where not all are weighted alike, they are weighted on their way into the bucket. */
        if (start && (t->n_plain > 0 || !can_move(g, v))) continue;
        g->values[v]->buffer = 2 * t->bucket + (start ? PARTS : SUMS);
        g->values[v]->at = (size_t)t->pieces[i].offset * sizeof(float);
    }
}

void *lsi_peers_address(const ls_peers *p, const ls_vinfo *v)
{
    const bucket *b = &p->buckets[v->buffer / 2];

    if (b->x == NULL) return NULL; /* absent: nothing will be written there */
    return (char *)(uintptr_t)(v->buffer % 2 == PARTS ? ls_exchange_part(b->x, 0)
                                                      : ls_exchange_result(b->x)) +
           v->at;
}

/* -- barriers ---------------------------------------------------------------------------------------------
 */

typedef struct barrier {
    ls_peers *peers;
    const char *what;
} barrier;

static bool work_on_exchanges(void *peers)
{
    ls_peers *p = peers;

    for (int i = 0; p->under_way > 0 && i < p->n; i++)
        if (p->buckets[i].under_way && ls_exchange_work(p->buckets[i].x)) return true;
    return false;
}

static void run_barrier(void *state, const ls_call *call)
{
    const barrier *b = state;
    ls_err err = {0};

    if (write_float(&call->operands[0], 0, &err) != LS_OK)
        ls_stream_fail(call->stream, err.status, "%s", err.text);
    if (ls_comm_machine_barrier(b->peers->comm, b->what, work_on_exchanges, b->peers, &err) != LS_OK)
        ls_stream_fail(call->stream, err.status, "%s", err.text);
}

static ls_status plan_barrier(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    barrier *b = ls_alloc(LS_MEM_PLAN, sizeof *b);

    (void)g;
    if (b == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    *b = (barrier){p, ls_barrier_name(((const ls_barrier_attr *)n->attr)->at)};
    *out = (ls_kernel){.destroy = ls_free, .state = b};
    return LS_OK;
}

/* -- the table of collectives -----------------------------------------------------------------------------
 */

typedef struct collective {
    const ls_op *op;
    ls_status (*plan)(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err);
    void (*run)(void *state, const ls_call *call);
    void (*place)(const ls_kernel *k, ls_graph *g, const ls_node *n); /* NULL: has no memory of its own */
} collective;

static const collective collectives[] = {
    {&ls_op_all_reduce_start, plan_all_reduce, run_start, place_tensors},
    {&ls_op_all_reduce_wait, plan_all_reduce, run_wait, place_tensors},
    {&ls_op_barrier, plan_barrier, run_barrier, NULL},
};

static const collective *find_collective(const ls_node *n)
{
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++)
        if (collectives[i].op == n->op) return &collectives[i];
    return NULL;
}

int ls_peers_bucket_at(const ls_peers *p, const ls_plan *plan, int node)
{
    const lsi_step *s = &plan->steps[node];
    const collective *c = lsi_peers_runs(p, s->node) ? find_collective(s->node) : NULL;

    return c != NULL && c->plan == plan_all_reduce ? ((const transfer *)s->kernel.state)->bucket : -1;
}

ls_status lsi_peers_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const collective *c = find_collective(n);
    ls_status st;

    if (c == NULL) return ls_fail(err, LS_UNSUPPORTED, "ranks: no way to run %s", n->op->name);
    st = c->plan(p, g, n, out, err);
    out->run = c->run;
    out->impl = p->comm != NULL ? ls_comm_kind(p->comm) : "absent";
    return st;
}

void lsi_peers_place(const ls_kernel *k, ls_graph *g, const ls_node *n)
{
    const collective *c = find_collective(n);

    if (c != NULL && c->place != NULL) c->place(k, g, n);
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

bool lsi_peers_pieces(const ls_peers *p, int *rank, int *ranks)
{
    if (p == NULL || !p->how.share) return false;
    *rank = p->comm != NULL ? ls_comm_local_rank(p->comm) : 0;
    *ranks = p->comm != NULL ? ls_comm_local_size(p->comm) : p->ranks;
    return *ranks > 1;
}
