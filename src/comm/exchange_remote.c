/* exchange_remote.c: the part of an exchange that crosses machines.
 *
 * The vector is cut into slices, each with a home: the machine where it is summed, or that has it.  One rank
 * of every machine, the slice's owner, sums what its machine has (to the machine's largest subtrees, which is
 * what the tree asks for) and sends that to the owner at home; from there the result comes right into every
 * machine's.  Of an all-reduce slice k is at home on machine k mod H, which sends and receives 2 (H - 1) / H
 * of the vector; it needs no order among machines, and a late one holds up no more than its own slices.  A
 * reduce-scatter ends at home, on the machine of the piece's rank; an all-gather and a broadcast begin there.
 * There slice k is of the piece of rank in_turns[k mod ranks]: neighbouring slices have their homes on
 * different machines.  Piece after piece, all would send to one machine at a time, and each wire be used in
 * one direction.
 *
 * A rank has up to MOST_SLOTS slices in hand and takes them in ascending order, none that is further from its
 * lowest one: of so many slices in a row few have their home on the same machine, which has to keep what
 * comes before it is wanted.  For the same reason long vectors that flow in one direction alone have messages
 * in the other (lsi_is_gated).  Nothing can lock: of all unfinished slices the lowest is in hand, or next, at
 * all of its owners, and none of them waits for a higher one.
 *
 * On a narrow wire (bf16, f16) what a machine sends is rounded, and so is the result, at home
 * too: all machines must hold the same bits. */
#include "comm/exchange_remote.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

/* -- who does what ------------------------------------------------------------------------------------------
 */

/* The rank whose piece the slice is of, where ranks have pieces. */
static int piece_of(const ls_exchange *x, int64_t slice)
{
    return x->c->remote->in_turns[slice % x->size];
}

static int home_of(const ls_exchange *x, int64_t slice)
{
    if (lsi_has_pieces(x->kind)) return x->c->remote->host_of[piece_of(x, slice)];
    return x->kind == LS_COLL_BROADCAST ? x->c->remote->host_of[x->root] : (int)(slice % x->c->hosts);
}

/* Elements [*lo, *lo + *n) of the vector; of a piece that is short or empty, maybe none. */
static void bounds_of(const ls_exchange *x, int64_t slice, int64_t *lo, int64_t *n)
{
    const int64_t piece = ls_exchange_piece(x->n, x->size);
    int64_t end = x->n;

    *lo = slice * x->chunk;
    if (lsi_has_pieces(x->kind)) {
        const int64_t rank = piece_of(x, slice);
        *lo = rank * piece + slice / x->size * x->chunk;
        if ((rank + 1) * piece < end) end = (rank + 1) * piece;
    }
    *n = end - *lo < x->chunk ? end - *lo : x->chunk;
    if (*n < 0) *n = 0;
}

static int owner_of(const ls_exchange *x, int64_t slice, int host)
{
    const lsi_remote *f = x->c->remote;

    return f->ranks_of[host][lsi_turn_of(x, slice) % f->host_size[host]];
}

/* The first slice from `slice` on that is this rank's. */
static int64_t next_own(const ls_exchange *x, int64_t slice)
{
    while (slice < x->n_chunks && owner_of(x, slice, x->c->host) != x->c->rank) slice++;
    return slice;
}

/* -- one slice ----------------------------------------------------------------------------------------------
 */

/* What the machine has, into h->own. */
static void sum_own(ls_exchange *x, lsi_hand *h)
{
    lsi_remote_exchange *f = x->remote;
    const uint64_t begun = ls_clock_ns();

    lsi_exchange_read_weights(x);
    for (int i = 0; i < x->plan.n_in; i++) f->in_at[i] = x->in[i] + h->lo;
    for (int i = 0; i < x->plan.n_out; i++) f->out_at[i] = h->own + i * h->n;
    lsi_sum_run(&x->plan, x->loops, f->in_at, x->weight, 1, f->out_at, 0, h->n, x->stack);
    lsi_book_adding(x->c, begun);
}

/* A share of another machine, and by what it is multiplied. */
static const float *share_of(const ls_exchange *x, const lsi_hand *h, const lsi_share *s, float *weight)
{
    const lsi_remote_exchange *f = x->remote;
    int shares = 0, messages = 0; /* of the machines before it */

    *weight = 1;
    for (int k = 0; k < s->host; k++) {
        if (k == x->c->host) continue;
        shares += f->n_shares[k];
        messages += f->n_shares[k] > 0;
    }
    if (!f->held) return h->got + (shares + s->index) * h->n;
    return (const float *)lsi_lines_held(&h->request[messages], weight) + s->index * h->n;
}

/* Everybody's shares, into the result. */
static void sum_total(ls_exchange *x, lsi_hand *h)
{
    lsi_remote_exchange *f = x->remote;
    const uint64_t begun = ls_clock_ns();

    for (int i = 0; i < f->total.n_in; i++) {
        const lsi_share *s = &f->share[i];
        f->weight[i] = 1;
        f->in_at[i] = s->host == x->c->host ? h->own + s->index * h->n : share_of(x, h, s, &f->weight[i]);
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

/* Floats of a vector that goes first whenever it comes: it holds up nobody, and the last one of a step has
 * nothing else to hide it; and of one that is short, as a step's last bucket of gradients is
 * (passes/parallel.c: 256 KiB, and what pieces and cache lines add), for which the next step waits first. */
enum { SMALL = 16 * 1024, SHORT = 128 * 1024 };

/* To overtake what waits here is not enough: behind 250 Mbit/s a rank waited 80 ms for its last bucket, since
 * both systems had 1 MiB to send first. */
static lsi_lane lane_of(const ls_exchange *x, size_t bytes)
{
    return x->n <= SHORT || bytes == 0 ? LSI_SHORT : LSI_LONG;
}

static ls_status receive(ls_exchange *x, lsi_hand *h, void *to, size_t bytes, int peer, int tag, ls_err *err)
{
    ls_transport_request *r = &h->request[h->n_requests];

    h->peer[h->n_requests++] = peer;
    if (x->c->remote->lines != NULL)
        return lsi_lines_receive(x->c->remote->lines, to, bytes, peer, lane_of(x, bytes), tag, r, err);
    return x->c->transport->receive(to, bytes, peer, tag, r, err);
}

/* What leaves the machine is counted.  What was started first goes first: it is waited for first.  A weight
 * that is not 1 lines alone can carry. */
static ls_status send(ls_exchange *x, lsi_hand *h, const void *from, size_t bytes, int peer, int tag,
                      float weight, ls_err *err)
{
    ls_transport_request *r = &h->request[h->n_requests];

    h->peer[h->n_requests++] = peer;
    x->c->sent_bytes += bytes;
    if (x->c->remote->lines != NULL)
        return lsi_lines_send(x->c->remote->lines, from, bytes, peer, lane_of(x, bytes), tag, x->turn, weight,
                              r, err);
    return x->c->transport->send(from, bytes, peer, tag, r, err);
}

static ls_status test(ls_exchange *x, ls_transport_request *requests, int n, bool *finished, ls_err *err)
{
    if (x->c->remote->lines != NULL) return lsi_lines_test(x->c->remote->lines, requests, n, finished, err);
    return x->c->transport->test(requests, n, finished, err);
}

/* There are two messages between home and another owner: what goes home, and what comes back. */
static int tag_of(const ls_exchange *x, const lsi_hand *h, bool back)
{
    return x->first_tag + (int)(2 * h->slice) + (back ? 1 : 0);
}

/* A message of no bytes has no place; lines would keep one that has NULL. */
static void *nowhere(lsi_hand *h)
{
    return h->block;
}

/* At home: what is gathered is asked for, by its stretch's first slice. */
static ls_status hear(ls_exchange *x, lsi_hand *h, ls_err *err)
{
    ls_status st = LS_OK;

    for (int k = 0; k < x->c->hosts; k++)
        if (k != x->c->host && lsi_speaks(x, h->slice))
            LS_TRY(receive(x, h, nowhere(h), 0, owner_of(x, h->slice, k), tag_of(x, h, false), err));
    h->state = LSI_COLLECTING;
out:
    return st;
}

/* At home: the shares of the others are awaited. */
static ls_status collect(ls_exchange *x, lsi_hand *h, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    size_t unit = lsi_wire_bytes(f->wire);
    char *to = f->held ? NULL : f->wire == LS_WIRE_F32 ? (char *)h->got : h->in;

    for (int k = 0; k < x->c->hosts; k++) {
        size_t bytes = (size_t)(f->n_shares[k] * h->n) * unit;
        if (k == x->c->host || bytes == 0) continue;
        LS_TRY(receive(x, h, to, bytes, owner_of(x, h->slice, k), tag_of(x, h, false), err));
        if (!f->held) to += bytes;
    }
    if (f->own_share < 0) sum_own(x, h);
    h->state = LSI_COLLECTING;
out:
    return st;
}

/* At home: what each of the others is sent when the total is there. */
static ls_status tell(ls_exchange *x, lsi_hand *h, const void *from, size_t bytes, ls_err *err)
{
    ls_status st = LS_OK;

    for (int k = 0; k < x->c->hosts; k++)
        if (k != x->c->host)
            LS_TRY(send(x, h, from, bytes, owner_of(x, h->slice, k), tag_of(x, h, true), 1, err));
out:
    return st;
}

/* At home: the total is made, and goes to the others where they want it. */
static ls_status answer(ls_exchange *x, lsi_hand *h, ls_err *err)
{
    lsi_remote_exchange *f = x->remote;
    const void *from = x->result + h->lo;
    const bool copies = lsi_copies(x->kind);
    int others = f->total.n_in - f->n_shares[x->c->host];

    h->state = LSI_ANSWERING;
    if (f->wire != LS_WIRE_F32) f->convert->widen(h->got, h->in, others * h->n);
    if (copies)
        lsi_exchange_copy(x, h->lo, h->lo + h->n, x->result + h->lo);
    else
        sum_total(x, h);
    for (int i = 0; f->held && !copies && i < h->n_requests; i++)
        lsi_lines_let_go(x->c->remote->lines, &h->request[i]);
    h->n_requests = 0;
    if (x->kind == LS_COLL_REDUCE_SCATTER)
        return lsi_speaks(x, h->slice) ? tell(x, h, nowhere(h), 0, err) : LS_OK;
    if (f->wire != LS_WIRE_F32) {
        f->convert->narrow(h->out, x->result + h->lo, h->n);
        f->convert->widen(x->result + h->lo, h->out, h->n);
        from = h->out;
    }
    return tell(x, h, from, (size_t)h->n * lsi_wire_bytes(f->wire), err);
}

/* Elsewhere: this machine's shares go to where the slice is at home; the total is awaited. */
static ls_status ask(ls_exchange *x, lsi_hand *h, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    int peer = owner_of(x, h->slice, home_of(x, h->slice));
    bool wide = f->wire == LS_WIRE_F32;
    int64_t own = x->plan.n_out * h->n;
    const bool speaks = lsi_speaks(x, h->slice);
    const void *from = wide ? (const void *)h->own : h->out;
    float weight = 1;

    if (x->kind != LS_COLL_REDUCE_SCATTER)
        LS_TRY(receive(x, h, wide ? (void *)(x->result + h->lo) : h->in,
                       (size_t)h->n * lsi_wire_bytes(f->wire), peer, tag_of(x, h, true), err));
    else if (speaks)
        LS_TRY(receive(x, h, nowhere(h), 0, peer, tag_of(x, h, true), err));
    if (f->held && f->own_share >= 0) { /* as it is: the weight travels along, and is multiplied by at home */
        lsi_exchange_read_weights(x);
        from = x->in[0] + h->lo;
        weight = x->weight[0];
    } else if (!lsi_copies(x->kind)) {
        sum_own(x, h);
    }
    if (!wide) f->convert->narrow(h->out, h->own, own);
    if (own > 0)
        LS_TRY(
            send(x, h, from, (size_t)own * lsi_wire_bytes(f->wire), peer, tag_of(x, h, false), weight, err));
    else if (speaks && lsi_copies(x->kind))
        LS_TRY(send(x, h, nowhere(h), 0, peer, tag_of(x, h, false), 1, err));
    h->state = LSI_ASKING;
out:
    return st;
}

/* The slice has been asked for.  Slices need not hear in their order. */
static void note_heard(ls_exchange *x, const lsi_hand *h)
{
    const int64_t stretch = lsi_stretch_of(x, h->slice);

    if (lsi_copies(x->kind) && lsi_speaks(x, h->slice) && stretch > x->remote->heard)
        x->remote->heard = stretch;
}

/* A block for what the slice needs. */
static bool find_block(ls_exchange *x, lsi_hand *h, const lsi_block_plan *p)
{
    if ((h->block = lsi_stock_take(&x->c->remote->blocks, p->bytes)) == NULL) return false;
    h->request = (ls_transport_request *)h->block;
    h->peer = (int *)(h->block + p->peers);
    h->own = (float *)(h->block + p->own);
    h->got = x->remote->held ? NULL : (float *)(h->block + p->got);
    h->out = h->block + p->out;
    h->in = h->block + p->in;
    return true;
}

static ls_status take_in_hand(ls_exchange *x, lsi_hand *h, ls_err *err)
{
    lsi_remote_exchange *f = x->remote;
    const bool at_home = home_of(x, f->next) == x->c->host;

    if (!find_block(x, h, at_home ? &f->home : &f->away))
        return ls_fail(err, LS_NOMEM, "%s: no memory for what travels", x->name);
    h->nth = f->taken++;
    h->slice = f->next;
    bounds_of(x, h->slice, &h->lo, &h->n);
    h->n_requests = 0;
    f->next = next_own(x, f->next + 1);
    if (h->n == 0) {
        note_heard(x, h);         /* nobody asks for nothing */
        h->state = LSI_ANSWERING; /* with nothing */
        return LS_OK;
    }
    if (!at_home) return ask(x, h, err);
    if (!lsi_copies(x->kind)) return collect(x, h, err);
    return lsi_is_gated(x, h->slice) ? hear(x, h, err) : answer(x, h, err);
}

/* Whether the next slice is near enough to the lowest one in hand. */
static bool may_take(const ls_exchange *x)
{
    const lsi_remote_exchange *f = x->remote;

    if (f->next >= x->n_chunks) return false;
    for (int i = 0; i < f->slots; i++)
        if (f->hand[i].state != LSI_FREE && f->taken - f->hand[i].nth >= f->slots) return false;
    return true;
}

/* Whether the slice waits for the one that speaks for it, which is in hand as well. */
static bool is_early(const ls_exchange *x, const lsi_hand *h)
{
    return h->state == LSI_COLLECTING && lsi_copies(x->kind) && !lsi_speaks(x, h->slice) &&
           lsi_stretch_of(x, h->slice) > x->remote->heard;
}

/* All transfers of the slice's state are over. */
static ls_status move_on(ls_exchange *x, lsi_hand *h, ls_err *err)
{
    ls_comm_beat(x->c); /* a long vector on a slow wire: something has come, though the rank still waits */
    if (h->state == LSI_COLLECTING) note_heard(x, h);
    if (h->state == LSI_COLLECTING) return answer(x, h, err);
    if (h->state == LSI_ASKING && x->remote->wire != LS_WIRE_F32 && x->kind != LS_COLL_REDUCE_SCATTER)
        x->remote->convert->widen(x->result + h->lo, h->in, h->n);
    h->state = LSI_FREE;
    lsi_stock_give(&x->c->remote->blocks, h->block);
    h->block = NULL;
    atomic_fetch_add_explicit(&x->board->done, 1, memory_order_release);
    return LS_OK;
}

/* The first slot that can go on, goes on; where none can, what is on its way. */
static ls_status work(ls_exchange *x, bool *worked, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    const bool may = may_take(x);

    for (int i = 0; i < f->slots && !*worked; i++) {
        lsi_hand *h = &f->hand[i];
        if (h->state == LSI_FREE) {
            if (!may) continue;
            *worked = true;
            return take_in_hand(x, h, err);
        }
        if (is_early(x, h)) continue;
        LS_TRY(test(x, h->request, h->n_requests, worked, err));
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
    /* When the run is over, parts may be anything: other machines must not get them as if it went on. */
    if (lsi_aborted(x->c) || !lsi_exchange_all_posted(x)) return false;
    if (x->remote->begun != x->number) {
        x->remote->begun = x->number;
        x->remote->next = next_own(x, 0);
        x->remote->taken = 0;
        x->remote->heard = -1;
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
    const uint64_t starts = ++x->c->remote->starts;

    while (*end != NULL && !x->newest_first) end = &(*end)->next_running;
    x->next_running = *end;
    *end = x;
    x->turn = x->n <= SMALL ? 0 : x->newest_first ? UINT64_MAX - starts : starts;
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

/* What a neighbour on this machine has done wakes nobody.  Until all neighbours have posted nobody reads what
 * comes, and a connection that has something would end every sleep at once. */
void lsi_remote_exchange_rest(void *exchange)
{
    const ls_exchange *x = exchange;
    const ls_comm *c = x->c;

    if (!x->all_posted) {
        nanosleep(&(struct timespec){.tv_nsec = LSI_REST_NS}, NULL);
        return;
    }
    lsi_lines_rest(c->remote->lines, c->local_size > 1 ? LSI_REST_NS : 20 * LSI_REST_NS);
}

/* -- who is waited for --------------------------------------------------------------------------------------
 */

/* Notes the peers of what is not over, at home or elsewhere; false: there are none.  A request that has
 * failed may say so once only: the run ends here. */
static bool note_peers(ls_exchange *x, bool at_home, bool *ranks)
{
    lsi_remote_exchange *f = x->remote;
    bool any = false;

    for (int i = 0; i < f->slots; i++) {
        lsi_hand *h = &f->hand[i];
        if (h->state == LSI_FREE || (h->state == LSI_COLLECTING) != at_home) continue;
        for (int k = 0; k < h->n_requests; k++) {
            bool over = false;
            ls_err err = {0};
            if (test(x, &h->request[k], 1, &over, &err) != LS_OK)
                ls_comm_heap_end(x->c->heap, err.status, err.text);
            else if (over)
                continue;
            ranks[h->peer[k]] = any = true;
        }
    }
    return any;
}

/* A rank that has not sent its shares is late itself; one that has not answered may wait for such a one. */
void lsi_remote_exchange_awaited(void *exchange, bool *ranks)
{
    if (!note_peers(exchange, true, ranks)) (void)note_peers(exchange, false, ranks);
}
