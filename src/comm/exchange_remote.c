/* exchange_remote.c: the part of an exchange that crosses machines.
 *
 * The vector is cut into slices, each with a home: the machine where it is summed, or that has it.  One rank
 * of every machine, the slice's owner, sums what its machine has (to the machine's largest subtrees, which is
 * what the tree asks for) and sends that to the owner at home; from there the result comes right into every
 * machine's.  Of an all-reduce slice k is at home on machine k mod H, which sends and receives 2 (H - 1) / H
 * of the vector; it needs no order among machines, and a late one holds up no more than its own slices.  A
 * reduce-scatter ends at home, with the owner of the piece; an all-gather and a broadcast begin there.
 *
 * A rank has up to MOST_SLOTS slices in hand and takes them in ascending order.  Nothing can lock: of all
 * unfinished slices the lowest is in hand, or next, at all of its owners.
 *
 * On a narrow wire (bf16, f16) what a machine sends is rounded, and so is the result, at home
 * too: all machines must hold the same bits. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/exchange_internal.h"
#include "lockstep/tensor.h"

/* Slices are short enough for the transport to send them at once, without asking (module/mpi.c): a message
 * that is agreed upon first needs both sides at hand at the same time, and they compute.  On lines they are
 * shorter, and more of them in hand: what one look can put on its way must last until the next. */
enum {
    MOST_SLOTS = 32,
    MPI_SLOTS = 8,
    SLICES_PER_RANK = 2,
    MIN_SLICE = 16 * 1024,
    MAX_SLICE = LS_TRANSPORT_AT_ONCE / (int)sizeof(float),
    MAX_LINE_SLICE = MAX_SLICE / 2
};

/* One subtree that a machine contributes. */
typedef struct share {
    lsi_node node;
    int host, index; /* the machine's index-th */
} share;

/* A slice in hand. */
typedef struct hand {
    enum { FREE, COLLECTING, ANSWERING, ASKING } state;
    int64_t slice, lo, n;
    int n_requests;
    ls_transport_request *request;
    float *own; /* this machine's subtrees */
    float *got; /* at home: the others', host after host */
    void *out;  /* narrow wires only: what is sent, */
    void *in;   /* and what has come */
} hand;

struct lsi_remote_exchange {
    ls_wire wire;
    int *n_shares;      /* by host */
    lsi_sum_plan total; /* over the shares of all machines */
    share *share;       /* its inputs */
    const float **in_at;
    float **out_at;
    float *weight, *stack; /* of the shares: 1, or of this rank's part where it is the machine's only one */
    int own_share;         /* that one; -1: the machine's parts are added up first */
    uint64_t begun;        /* number of the exchange that `next` belongs to */
    int64_t next;          /* the next slice of this rank to take in hand */
    int slots;
    hand hand[MOST_SLOTS];
};

/* -- who does what ------------------------------------------------------------------------------------------
 */

/* Slices of one piece, where ranks have pieces. */
static int64_t slices_per_piece(const ls_exchange *x)
{
    return (ls_exchange_piece(x->n, x->size) + x->chunk - 1) / x->chunk;
}

static int home_of(const ls_exchange *x, int64_t slice)
{
    if (lsi_has_pieces(x->kind)) return x->c->remote->host_of[slice / slices_per_piece(x)];
    return x->kind == LS_COLL_BROADCAST ? x->c->remote->host_of[x->root] : (int)(slice % x->c->hosts);
}

/* Elements [*lo, *lo + *n) of the vector; of a piece that is short or empty, maybe none. */
static void bounds_of(const ls_exchange *x, int64_t slice, int64_t *lo, int64_t *n)
{
    const int64_t piece = ls_exchange_piece(x->n, x->size);
    int64_t end = x->n;

    *lo = slice * x->chunk;
    if (lsi_has_pieces(x->kind)) {
        const int64_t rank = slice / slices_per_piece(x);
        *lo = rank * piece + slice % slices_per_piece(x) * x->chunk;
        if ((rank + 1) * piece < end) end = (rank + 1) * piece;
    }
    *n = end - *lo < x->chunk ? end - *lo : x->chunk;
    if (*n < 0) *n = 0;
}

static int owner_of(const ls_exchange *x, int64_t slice, int host)
{
    const lsi_remote *f = x->c->remote;
    const int64_t turn = x->kind == LS_COLL_ALL_REDUCE ? slice / x->c->hosts : slice;

    return f->ranks_of[host][turn % f->host_size[host]];
}

/* The first slice from `slice` on that is this rank's. */
static int64_t next_own(const ls_exchange *x, int64_t slice)
{
    while (slice < x->n_chunks && owner_of(x, slice, x->c->host) != x->c->rank) slice++;
    return slice;
}

/* Of ranks that are absent it is assumed. */
static bool has_lines(const ls_comm *c)
{
    return c->remote == NULL || c->remote->lines != NULL;
}

static int64_t slice_size(const ls_comm *c, int64_t n)
{
    const int64_t longest = has_lines(c) ? MAX_LINE_SLICE : MAX_SLICE;
    int most = c->remote != NULL ? 1 : c->local_size; /* of ranks that are absent */
    int64_t size;

    for (int h = 0; c->remote != NULL && h < c->hosts; h++)
        if (c->remote->host_size[h] > most) most = c->remote->host_size[h];
    size = n / ((int64_t)c->hosts * most * SLICES_PER_RANK);
    if (size < MIN_SLICE) size = MIN_SLICE;
    return size > longest ? longest : size;
}

/* -- making -------------------------------------------------------------------------------------------------
 */

static int by_first_leaf(const void *a, const void *b)
{
    const share *s = a, *t = b;

    return (s->node.first > t->node.first) - (s->node.first < t->node.first);
}

/* Adds the subtrees that a machine's parts make up. */
static ls_status add_shares(ls_exchange *x, const lsi_claim *all, int host, int *n, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    lsi_node *nodes = NULL;
    lsi_sum_plan plan = {0};
    int *owner = NULL, n_parts;
    share *more;

    LS_TRY(lsi_list_parts(x, host, all, &nodes, &owner, &n_parts, err));
    LS_TRY(lsi_sum_plan_make(&plan, x->n_shards, nodes, n_parts, err));
    more = ls_realloc(LS_MEM_COMM, f->share, (size_t)(*n + plan.n_out) * sizeof *more);
    if (more == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    f->share = more;
    for (int i = 0; i < plan.n_out; i++) f->share[(*n)++] = (share){plan.out[i], host, i};
    f->n_shares[host] = plan.n_out;
out:
    lsi_sum_plan_release(&plan);
    ls_free(owner);
    ls_free(nodes);
    return st;
}

static ls_status plan_total(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    lsi_node *nodes = NULL;
    int n = 0;

    f->n_shares = ls_alloc(LS_MEM_COMM, (size_t)x->c->hosts * sizeof *f->n_shares);
    f->share = ls_alloc(LS_MEM_COMM, sizeof *f->share);
    if (f->n_shares == NULL || f->share == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    if (lsi_copies(x->kind)) return LS_OK; /* there is nothing to add up */
    for (int h = 0; h < x->c->hosts; h++) LS_TRY(add_shares(x, all, h, &n, err));
    qsort(f->share, (size_t)n, sizeof *f->share, by_first_leaf);
    nodes = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *nodes);
    if (nodes == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    for (int i = 0; i < n; i++) nodes[i] = f->share[i].node;
    LS_TRY(lsi_sum_plan_make(&f->total, x->n_shards, nodes, n, err));
    LS_BUG_IF(f->total.n_out != 1);
out:
    ls_free(nodes);
    return st;
}

static size_t wire_bytes(ls_wire wire)
{
    return wire == LS_WIRE_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* So many slices can be in hand at once. */
static int hands_of(const ls_comm *c, int64_t n_slices)
{
    const int most = has_lines(c) ? MOST_SLOTS : MPI_SLOTS;

    return n_slices < most ? (int)n_slices : most;
}

static ls_status make_hands(ls_exchange *x, ls_err *err)
{
    lsi_remote_exchange *f = x->remote;
    int own = f->n_shares[x->c->host], others = f->total.n_in - own;
    size_t slice = (size_t)(x->chunk < x->n ? x->chunk : x->n);
    const bool one =
        f->own_share >= 0; /* a slice then needs room for its own share, or for those of the others */

    f->slots = hands_of(x->c, x->n_chunks);
    for (int i = 0; i < f->slots; i++) {
        hand *h = &f->hand[i];
        h->request = ls_alloc(LS_MEM_COMM, 2 * (size_t)x->c->hosts * sizeof *h->request);
        h->own = ls_alloc(LS_MEM_COMM, (size_t)(one && others > own ? others : own) * slice * sizeof(float));
        h->got = one ? h->own : ls_alloc(LS_MEM_COMM, (size_t)others * slice * sizeof(float));
        if (h->request == NULL || h->own == NULL || h->got == NULL)
            return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        if (f->wire == LS_WIRE_F32) continue;
        h->out = ls_alloc(LS_MEM_COMM, (size_t)(own + 1) * slice * wire_bytes(f->wire));
        h->in = ls_alloc(LS_MEM_COMM, (size_t)(others + 1) * slice * wire_bytes(f->wire));
        if (h->out == NULL || h->in == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    }
    return LS_OK;
}

/* Two tags per slice.  When they are used up they begin anew: two exchanges that share tags would have to be
 * millions of slices apart, and messages with equal tags still arrive in order. */
void lsi_remote_choose_slices(ls_exchange *x)
{
    lsi_remote *f = x->c->remote;

    x->chunk = slice_size(x->c, x->n);
    x->n_chunks = lsi_has_pieces(x->kind) ? x->size * slices_per_piece(x) : (x->n + x->chunk - 1) / x->chunk;
    if (2 * x->n_chunks > x->c->place.last_tag - f->next_tag) f->next_tag = LSI_FIRST_EXCHANGE_TAG;
    x->first_tag = f->next_tag;
    f->next_tag += (int)(2 * x->n_chunks);
}

ls_status lsi_remote_exchange_create(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = ls_alloc(LS_MEM_COMM, sizeof *f);

    if (f == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    x->remote = f;
    f->wire = (ls_wire)all[0].wire;
    if (2 * x->n_chunks >= x->c->place.last_tag)
        return ls_fail(err, LS_UNSUPPORTED, "%s: too long for the tags of this MPI", x->name);
    LS_TRY(plan_total(x, all, err));
    f->in_at = ls_alloc(LS_MEM_COMM, (size_t)(f->total.n_in + x->plan.n_in) * sizeof *f->in_at);
    f->out_at = ls_alloc(LS_MEM_COMM, (size_t)(x->plan.n_out + 1) * sizeof *f->out_at);
    f->weight = ls_alloc(LS_MEM_COMM, (size_t)f->total.n_in * sizeof *f->weight);
    f->stack = ls_alloc(LS_MEM_COMM, (size_t)f->total.depth * LSI_SUM_BLOCK * sizeof *f->stack);
    if (f->in_at == NULL || f->out_at == NULL || f->weight == NULL || f->stack == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    f->own_share = -1;
    for (int i = 0; i < f->total.n_in; i++) {
        f->weight[i] = 1;
        if (x->plan.n_in == 1 && f->share[i].host == x->c->host) f->own_share = i;
    }
    LS_TRY(make_hands(x, err));
out:
    return st;
}

void lsi_remote_exchange_destroy(ls_exchange *x)
{
    lsi_remote_exchange *f = x->remote;

    if (f == NULL) return;
    lsi_remote_exchange_ended(x);
    for (int i = 0; i < f->slots; i++) {
        ls_free(f->hand[i].in);
        ls_free(f->hand[i].out);
        if (f->hand[i].got != f->hand[i].own) ls_free(f->hand[i].got);
        ls_free(f->hand[i].own);
        ls_free(f->hand[i].request);
    }
    ls_free(f->stack);
    ls_free(f->weight);
    ls_free(f->out_at);
    ls_free(f->in_at);
    lsi_sum_plan_release(&f->total);
    ls_free(f->share);
    ls_free(f->n_shares);
    ls_free(f);
    x->remote = NULL;
}

size_t lsi_remote_exchange_bytes(const ls_comm *c, int64_t n, ls_wire wire)
{
    const int64_t size = slice_size(c, n), slice = size < n ? size : n;
    const size_t shares = (size_t)(c->local_size == 1 ? c->hosts - 1 : c->hosts);
    const size_t narrow = wire == LS_WIRE_F32 ? 0 : (size_t)(c->hosts + 2) * wire_bytes(wire);

    return (size_t)hands_of(c, (n + size - 1) / size) * (size_t)slice * (shares * sizeof(float) + narrow);
}

/* -- one slice ----------------------------------------------------------------------------------------------
 */

static void narrow(ls_wire wire, void *to, const float *from, int64_t n)
{
    uint16_t *out = to;

    if (wire == LS_WIRE_BF16)
        for (int64_t i = 0; i < n; i++) out[i] = ls_bf16_from_f32(from[i]);
    else
        for (int64_t i = 0; i < n; i++) out[i] = ls_f16_from_f32(from[i]);
}

static void widen(ls_wire wire, float *to, const void *from, int64_t n)
{
    const uint16_t *in = from;

    if (wire == LS_WIRE_BF16)
        for (int64_t i = 0; i < n; i++) to[i] = ls_bf16_to_f32(in[i]);
    else
        for (int64_t i = 0; i < n; i++) to[i] = ls_f16_to_f32(in[i]);
}

/* What the machine has, into h->own. */
static void sum_own(ls_exchange *x, hand *h)
{
    lsi_remote_exchange *f = x->remote;
    const uint64_t begun = ls_clock_ns();

    lsi_exchange_read_weights(x);
    for (int i = 0; i < x->plan.n_in; i++) f->in_at[i] = x->in[i] + h->lo;
    for (int i = 0; i < x->plan.n_out; i++) f->out_at[i] = h->own + i * h->n;
    lsi_sum_run(&x->plan, x->loops, f->in_at, x->weight, 1, f->out_at, 0, h->n, x->stack);
    lsi_book_adding(x->c, begun);
}

/* Everybody's shares, into the result. */
static void sum_total(ls_exchange *x, hand *h)
{
    lsi_remote_exchange *f = x->remote;
    const uint64_t begun = ls_clock_ns();

    for (int i = 0; i < f->total.n_in; i++) {
        const share *s = &f->share[i];
        int before = 0;
        for (int k = 0; k < s->host; k++)
            if (k != x->c->host) before += f->n_shares[k];
        f->in_at[i] = s->host == x->c->host ? h->own + s->index * h->n : h->got + (before + s->index) * h->n;
    }
    if (f->own_share >= 0) { /* a product that is rounded before it is added, here as in sum_own */
        lsi_exchange_read_weights(x);
        f->in_at[f->own_share] = x->in[0] + h->lo;
        f->weight[f->own_share] = x->weight[0];
    }
    f->out_at[0] = x->result + h->lo;
    lsi_sum_run(&f->total, x->loops, f->in_at, f->weight, x->scale, f->out_at, 0, h->n, f->stack);
    lsi_book_adding(x->c, begun);
}

/* -- messages: on lines where there are some, else through the transport ------------------------------------
 */

static ls_status receive(ls_exchange *x, hand *h, void *to, size_t bytes, int peer, int tag, ls_err *err)
{
    ls_transport_request *r = &h->request[h->n_requests++];

    if (x->c->remote->lines != NULL)
        return lsi_lines_receive(x->c->remote->lines, to, bytes, peer, tag, r, err);
    return x->c->transport->receive(to, bytes, peer, tag, r, err);
}

/* What leaves the machine is counted.  What was started first goes first: it is waited for first. */
static ls_status send(ls_exchange *x, hand *h, const void *from, size_t bytes, int peer, int tag, ls_err *err)
{
    ls_transport_request *r = &h->request[h->n_requests++];

    x->c->sent_bytes += bytes;
    if (x->c->remote->lines != NULL)
        return lsi_lines_send(x->c->remote->lines, from, bytes, peer, tag, x->turn, r, err);
    return x->c->transport->send(from, bytes, peer, tag, r, err);
}

static ls_status test(ls_exchange *x, hand *h, bool *finished, ls_err *err)
{
    if (x->c->remote->lines != NULL)
        return lsi_lines_test(x->c->remote->lines, h->request, h->n_requests, finished, err);
    return x->c->transport->test(h->request, h->n_requests, finished, err);
}

static int tag_of(const ls_exchange *x, const hand *h, bool result)
{
    return x->first_tag + (int)(2 * h->slice) + (result ? 1 : 0);
}

/* At home: the shares of the others are awaited. */
static ls_status collect(ls_exchange *x, hand *h, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    size_t unit = wire_bytes(f->wire);
    char *to = f->wire == LS_WIRE_F32 ? (char *)h->got : h->in;

    for (int k = 0; k < x->c->hosts; k++) {
        size_t bytes = (size_t)(f->n_shares[k] * h->n) * unit;
        if (k == x->c->host || bytes == 0) continue;
        LS_TRY(receive(x, h, to, bytes, owner_of(x, h->slice, k), tag_of(x, h, false), err));
        to += bytes;
    }
    if (f->own_share < 0) sum_own(x, h);
    h->state = COLLECTING;
out:
    return st;
}

/* At home: the total is made, and goes to the others where they want it. */
static ls_status answer(ls_exchange *x, hand *h, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    const void *from = x->result + h->lo;
    int others = f->total.n_in - f->n_shares[x->c->host];

    h->state = ANSWERING;
    if (f->wire != LS_WIRE_F32) widen(f->wire, h->got, h->in, others * h->n);
    if (lsi_copies(x->kind))
        lsi_exchange_copy(x, h->lo, h->lo + h->n, x->result + h->lo);
    else
        sum_total(x, h);
    if (x->kind == LS_COLL_REDUCE_SCATTER) return LS_OK;
    if (f->wire != LS_WIRE_F32) {
        narrow(f->wire, h->out, x->result + h->lo, h->n);
        widen(f->wire, x->result + h->lo, h->out, h->n);
        from = h->out;
    }
    for (int k = 0; k < x->c->hosts; k++) {
        if (k == x->c->host) continue;
        LS_TRY(send(x, h, from, (size_t)h->n * wire_bytes(f->wire), owner_of(x, h->slice, k),
                    tag_of(x, h, true), err));
    }
out:
    return st;
}

/* Elsewhere: this machine's shares go to where the slice is at home; the total is awaited. */
static ls_status ask(ls_exchange *x, hand *h, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    int peer = owner_of(x, h->slice, home_of(x, h->slice));
    bool wide = f->wire == LS_WIRE_F32;
    int64_t own = x->plan.n_out * h->n;

    if (x->kind != LS_COLL_REDUCE_SCATTER)
        LS_TRY(receive(x, h, wide ? (void *)(x->result + h->lo) : h->in, (size_t)h->n * wire_bytes(f->wire),
                       peer, tag_of(x, h, true), err));
    if (!lsi_copies(x->kind)) sum_own(x, h);
    if (!wide) narrow(f->wire, h->out, h->own, own);
    if (own > 0)
        LS_TRY(send(x, h, wide ? (const void *)h->own : h->out, (size_t)own * wire_bytes(f->wire), peer,
                    tag_of(x, h, false), err));
    h->state = ASKING;
out:
    return st;
}

static ls_status take_in_hand(ls_exchange *x, hand *h, ls_err *err)
{
    lsi_remote_exchange *f = x->remote;

    h->slice = f->next;
    bounds_of(x, h->slice, &h->lo, &h->n);
    h->n_requests = 0;
    f->next = next_own(x, f->next + 1);
    if (h->n == 0) {
        h->state = ANSWERING; /* with nothing */
        return LS_OK;
    }
    if (home_of(x, h->slice) != x->c->host) return ask(x, h, err);
    return lsi_copies(x->kind) ? answer(x, h, err) : collect(x, h, err);
}

/* All transfers of the slice's state are over. */
static ls_status move_on(ls_exchange *x, hand *h, ls_err *err)
{
    h->n_requests = 0;
    ls_comm_beat(x->c); /* a long vector on a slow wire: something has come, though the rank still waits */
    if (h->state == COLLECTING) return answer(x, h, err);
    if (h->state == ASKING && x->remote->wire != LS_WIRE_F32 && x->kind != LS_COLL_REDUCE_SCATTER)
        widen(x->remote->wire, x->result + h->lo, h->in, h->n);
    h->state = FREE;
    atomic_fetch_add_explicit(&x->board->done, 1, memory_order_release);
    return LS_OK;
}

/* The first slot that can go on, goes on; where none can, what is on its way. */
static ls_status work(ls_exchange *x, bool *worked, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;

    for (int i = 0; i < f->slots && !*worked; i++) {
        hand *h = &f->hand[i];
        if (h->state == FREE) {
            if (f->next >= x->n_chunks) continue;
            *worked = true;
            return take_in_hand(x, h, err);
        }
        LS_TRY(test(x, h, worked, err));
        if (*worked) LS_TRY(move_on(x, h, err));
    }
    if (!*worked && x->c->remote->lines != NULL) LS_TRY(lsi_lines_turn(x->c->remote->lines, worked, err));
out:
    return st;
}

bool lsi_remote_exchange_advance(ls_exchange *x, bool *worked)
{
    ls_err err = {0};

    *worked = false;
    if (!lsi_exchange_all_posted(x)) return false;
    if (x->remote->begun != x->number) {
        x->remote->begun = x->number;
        x->remote->next = next_own(x, 0);
    }
    /* Everybody on this machine waits for this rank's slices: all must learn of a failure. */
    if (work(x, worked, &err) != LS_OK) {
        *worked = false;
        ls_comm_heap_end(x->c->heap, err.status, err.text);
    }
    return lsi_exchange_finished(x);
}

/* -- several at once ----------------------------------------------------------------------------------------
 */

void lsi_remote_exchange_begun(ls_exchange *x)
{
    ls_exchange **end = &x->c->remote->running;

    while (*end != NULL) end = &(*end)->next_running;
    *end = x;
    x->next_running = NULL;
    x->turn = x->c->remote->starts++;
}

void lsi_remote_exchange_ended(ls_exchange *x)
{
    ls_exchange **at = &x->c->remote->running;

    while (*at != NULL && *at != x) at = &(*at)->next_running;
    if (*at == x) *at = x->next_running;
}

bool lsi_remote_exchange_others(const ls_exchange *x)
{
    bool worked = false;

    for (ls_exchange *y = x->c->remote->running, *next; y != NULL && !worked; y = next) {
        next = y->next_running;
        if (y != x) (void)lsi_remote_exchange_advance(y, &worked);
    }
    return worked;
}
