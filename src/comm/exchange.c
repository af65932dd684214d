/* exchange.c: collectives between ranks that share memory, and the tables of those and of one rank.
 *
 * Each rank writes its parts where all can read them and posts the exchange's number.  Once all have posted,
 * ranks claim chunks and write the weighted sum (or a copy of what one rank has) into the one result that all
 * read in place.  Whoever has time does the work: a rank that waits sums, a rank that computes does not.  The
 * order of additions is fixed by the plan, so the bits do not depend on who did it.
 *
 * No barrier is needed.  Let C be the number of chunks.
 *   Parts: a rank fills its parts for exchange t + 1 after it saw `done` reach t C.  All sums of t are then
 *     finished, so nobody reads the parts any more.  Nor the weights, which are read by ranks that hold a
 * claim: the exchange cannot end before their chunk. Result: it is overwritten by sums of t + 1, which begin
 * when all ranks have posted t + 1.  A rank posts t
 * + 1 when it needs the result of t no more. Claims: nobody claims for t + 1 before all have posted t + 1;
 * each had then seen `done` reach t C, so all chunks of t were claimed: `claimed` stands at t C and a claim
 * made in t never lands in t + 1. `number` is posted with release and read with acquire, `done` is raised
 * with release and read with acquire; all raises of `done` are read-modify-writes and so form one release
 * sequence: to see t C is to see every chunk. */
#include <string.h>

#include "base/clock.h"
#include "comm/exchange_internal.h"

/* -- between ranks of a machine -----------------------------------------------------------------------------
 */

static void start(ls_exchange *x, float weight)
{
    lsi_post *mine = &x->board->post[x->self];

    /* A wait that failed has left it running.  The run is over, which the next wait says again. */
    if (x->running && lsi_aborted(x->c)) return;
    LS_BUG_IF(x->running);
    lsi_note(x->c, x->name);
    x->number++;
    x->running = true;
    x->all_posted = x->weights_known = false;
    mine->weight = weight;
    atomic_store_explicit(&mine->number, x->number, memory_order_release);
    if (x->across) lsi_remote_exchange_begun(x);
}

static bool not_posted(const void *arg, int rank)
{
    const ls_exchange *x = arg;
    const int local = rank - x->first;

    if (local < 0 || local >= x->here) return false; /* is not in the group */
    return atomic_load_explicit(&x->board->post[local].number, memory_order_acquire) < x->number;
}

bool lsi_exchange_all_posted(ls_exchange *x)
{
    for (int i = 0; i < x->here && !x->all_posted; i++)
        if (not_posted(x, x->first + i)) return false;
    x->all_posted = true;
    return true;
}

/* Takes on one chunk of this exchange; false when all are taken. */
static bool claim_chunk(ls_exchange *x, int64_t *chunk)
{
    uint64_t end = x->number * (uint64_t)x->n_chunks;
    uint64_t next = atomic_load_explicit(&x->board->claimed, memory_order_relaxed);

    while (next < end)
        if (atomic_compare_exchange_weak_explicit(&x->board->claimed, &next, next + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *chunk = (int64_t)(next - (end - (uint64_t)x->n_chunks));
            return true;
        }
    return false;
}

void lsi_exchange_read_weights(ls_exchange *x)
{
    for (int i = 0; i < x->plan.n_in && !x->weights_known; i++)
        x->weight[i] = x->board->post[x->owner[i]].weight;
    x->weights_known = true;
}

void lsi_exchange_copy(const ls_exchange *x, int64_t lo, int64_t hi, float *to)
{
    for (int i = 0; i < x->plan.n_in; i++) {
        const int64_t first = x->covers[i].first > lo ? x->covers[i].first : lo,
                      end = x->covers[i].end < hi ? x->covers[i].end : hi;
        if (first < end)
            memcpy(to + (first - lo), x->in[i] + (first - x->covers[i].first),
                   sizeof *to * (size_t)(end - first));
    }
}

static void work_on_chunk(ls_exchange *x, int64_t chunk)
{
    int64_t lo = chunk * x->chunk, hi = lo + x->chunk < x->n ? lo + x->chunk : x->n;
    const uint64_t begun = ls_clock_ns();

    lsi_exchange_read_weights(x);
    if (lsi_copies(x->kind))
        lsi_exchange_copy(x, lo, hi, x->result + lo);
    else
        lsi_sum_run(&x->plan, x->loops, x->in, x->weight, x->scale, &x->result, lo, hi, x->stack);
    lsi_book_adding(x->c, begun);
    atomic_fetch_add_explicit(&x->board->done, 1, memory_order_release);
}

bool lsi_exchange_finished(ls_exchange *x)
{
    if (atomic_load_explicit(&x->board->done, memory_order_acquire) < x->number * (uint64_t)x->n_chunks)
        return false;
    x->running = false;
    if (x->across) lsi_remote_exchange_ended(x);
    return true;
}

/* At most one chunk of work; `worked` says whether there was some. */
static bool advance(ls_exchange *x, bool *worked)
{
    int64_t chunk;

    if (x->remote != NULL) return lsi_remote_exchange_advance(x, worked);
    *worked = lsi_exchange_all_posted(x) && claim_chunk(x, &chunk);
    if (*worked) work_on_chunk(x, chunk);
    return lsi_exchange_finished(x);
}

static void book(ls_exchange *x, uint64_t begun)
{
    uint64_t spent = ls_clock_ns() - begun;

    x->exposed_ns += spent;
    x->c->exposed_ns += spent;
}

static bool progress(ls_exchange *x)
{
    bool worked, ready;

    if (!x->running) return true;
    uint64_t begun = ls_clock_ns();
    ready = advance(x, &worked) || lsi_aborted(x->c);
    book(x, begun);
    return ready;
}

/* Between machines the next transfer begins where the last one ended, or the wire is idle until the next
 * call. */
static bool progress_all(ls_exchange *x)
{
    bool worked, ready;

    if (!x->running) return true;
    uint64_t begun = ls_clock_ns();
    do ready = advance(x, &worked) || lsi_aborted(x->c);
    while (worked && !ready);
    book(x, begun);
    return ready;
}

static bool work(ls_exchange *x)
{
    bool worked = false;

    if (x->running) (void)advance(x, &worked);
    return worked;
}

static ls_status wait_for(ls_exchange *x, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_wait wait = {.what = x->name, .of = x};
    bool worked;

    if (!x->running) return LS_OK;
    if (x->remote != NULL) wait.awaited = lsi_remote_exchange_awaited;
    if (x->remote != NULL && x->c->remote->lines != NULL) wait.rest = lsi_remote_exchange_rest;
    uint64_t begun = ls_clock_ns();
    lsi_note(x->c, x->name);
    /* What other exchanges have to send goes on: the wire must not rest because of the one that is waited
     * for. */
    while (st == LS_OK && !advance(x, &worked))
        if (!worked && !(x->across && lsi_remote_exchange_others(x)))
            st = lsi_wait_turn(x->c, &wait, not_posted, x, err);
    if (st == LS_OK) lsi_wait_end(x->c, &wait);
    book(x, begun);
    return st;
}

const ls_collectives lsi_shared_collectives = {
    .name = "shared memory",
    .make = lsi_exchange_make,
    .destroy = lsi_exchange_destroy,
    .bytes = lsi_exchange_bytes,
    .start = start,
    .progress = progress,
    .work = work,
    .wait = wait_for,
    .barrier = lsi_group_barrier,
};

/* The same between machines too, for which exchange_remote.c has the rest. */
const ls_collectives lsi_mpi_collectives = {
    .name = "mpi",
    .make = lsi_exchange_make,
    .destroy = lsi_exchange_destroy,
    .bytes = lsi_exchange_bytes,
    .start = start,
    .progress = progress_all,
    .work = work,
    .wait = wait_for,
    .barrier = lsi_group_barrier,
};

/* -- one rank: its part becomes the result ------------------------------------------------------------------
 */

/* The same two roundings as in a sum of several parts. */
static void start_alone(ls_exchange *x, float weight)
{
    const bool sums = !lsi_copies(x->kind);

    lsi_note(x->c, x->name);
    for (int64_t i = 0; sums && weight != 1 && i < x->n; i++) x->result[i] = weight * x->result[i];
    for (int64_t i = 0; sums && x->scale != 1 && i < x->n; i++) x->result[i] = x->scale * x->result[i];
}

static bool ready_alone(ls_exchange *x)
{
    (void)x;
    return true;
}

static bool no_work_alone(ls_exchange *x)
{
    (void)x;
    return false;
}

static ls_status wait_alone(ls_exchange *x, ls_err *err)
{
    (void)x, (void)err;
    return LS_OK;
}

const ls_collectives lsi_self_collectives = {
    .name = "self",
    .make = lsi_exchange_make,
    .destroy = lsi_exchange_destroy,
    .bytes = lsi_exchange_bytes,
    .start = start_alone,
    .progress = ready_alone,
    .work = no_work_alone,
    .wait = wait_alone,
    .barrier = lsi_group_barrier,
};
