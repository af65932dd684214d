/* control.c: barrier, broadcast and gather over the region that the ranks of a machine share.
 *
 * All of them are rounds.  In a round every rank puts a ticket (which operation) and perhaps mail into its
 * slot, posts the round's number, waits until all have posted it, and reads.  Slots hold two rounds, by
 * parity.  That is enough: a rank writes round k over round k - 2 after its wait in round k - 1 has seen all
 * ranks post k - 1, which each did after it had read round k - 2.  So one wait per round suffices. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/comm_internal.h"

/* -- rounds
 * --------------------------------------------------------------------------------------------------- */

typedef struct round_wait {
    const ls_comm *c;
    uint64_t number;
} round_wait;

static bool round_missing(const void *arg, int local)
{
    const round_wait *w = arg;

    return atomic_load_explicit(&w->c->heap->region->slot[local].posted, memory_order_acquire) < w->number;
}

/* FNV-1a; a collision would only make a wrong program fail later. */
uint64_t lsi_ticket(const char *operation, size_t bytes, const char *what)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ bytes;

    for (const char *p = operation; *p != '\0'; p++) h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    for (const char *p = what; *p != '\0'; p++) h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    return h;
}

static ls_status check_tickets(ls_comm *c, uint64_t number, const char *what, ls_err *err)
{
    const lsi_slot *slot = c->heap->region->slot;
    ls_comm_look look;

    for (int i = 0; i < c->local_size; i++) {
        if (slot[i].ticket[number & 1] == slot[c->local_rank].ticket[number & 1]) continue;
        ls_comm_heap_look(c->heap, i, &look);
        c->disagreed = true;
        return ls_fail(err, LS_DISAGREE, "rank %d is in %s, rank %d in %s, or with another size", c->rank,
                       what, atomic_load(&slot[i].rank), look.what);
    }
    return LS_OK;
}

ls_status lsi_meanwhile_turn(ls_comm *c, lsi_wait *w, lsi_missing missing, const void *arg,
                             const lsi_meanwhile *m, ls_err *err)
{
    if (m != NULL && m->work != NULL && m->work(m->ctx))
        return lsi_aborted(c) ? lsi_lost(c, w->what, err) : LS_OK;
    return lsi_wait_turn(c, w, missing, arg, err);
}

ls_status lsi_local_round(ls_comm *c, uint64_t ticket, const char *what, const lsi_meanwhile *m, ls_err *err)
{
    lsi_slot *slot = c->heap->region->slot;
    round_wait w = {c, ++c->round};
    lsi_wait wait = {.what = what};

    slot[c->local_rank].ticket[w.number & 1] = ticket;
    atomic_store_explicit(&slot[c->local_rank].posted, w.number, memory_order_release);
    for (int i = 0; i < c->local_size; i++) {
        while (round_missing(&w, i)) {
            ls_status st = lsi_meanwhile_turn(c, &wait, round_missing, &w, m, err);
            if (st != LS_OK) return st;
        }
    }
    lsi_wait_end(c, &wait);
    return check_tickets(c, w.number, what, err);
}

ls_status ls_comm_machine_barrier(ls_comm *c, const char *what, bool (*work)(void *ctx), void *ctx,
                                  ls_err *err)
{
    const uint64_t begun = ls_clock_ns();
    ls_status st;

    lsi_note(c, what);
    st = lsi_local_round(c, lsi_ticket("machine barrier", 0, what), what, &(lsi_meanwhile){work, ctx}, err);
    c->exposed_ns += ls_clock_ns() - begun;
    return st;
}

/* -- operations: a round for every piece that fits
 * ------------------------------------------------------------- */

static size_t piece_of(const ls_comm *c, size_t bytes, size_t at)
{
    size_t most = c->remote != NULL ? LSI_REMOTE_BYTES : LSI_MAIL_BYTES;

    return bytes - at < most ? bytes - at : most;
}

/* One round of the whole run; a rank with mail has `piece` bytes at `mine`. */
static ls_status round_of_all(ls_comm *c, const void *mine, int root, size_t piece, uint64_t ticket,
                              const char *what, const lsi_meanwhile *m, ls_err *err)
{
    ls_status st = LS_OK;

    if (piece > 0 && (root < 0 || root == c->rank))
        memcpy(lsi_mail(c->heap, c->local_rank, c->round + 1), mine, piece);
    LS_TRY(lsi_local_round(c, ticket, what, m, err));
    if (c->remote != NULL) LS_TRY(lsi_remote_round(c, root, piece, ticket, what, m, err));
out:
    return st;
}

static const char *mail_of(const ls_comm *c, int rank, int root, size_t piece)
{
    return c->remote != NULL ? lsi_remote_mail(c, rank, root, piece) : lsi_mail(c->heap, rank, c->round);
}

ls_status lsi_barrier(ls_comm *c, const char *what, const lsi_meanwhile *m, ls_err *err)
{
    lsi_note(c, what);
    return round_of_all(c, NULL, -1, 0, lsi_ticket("barrier", 0, what), what, m, err);
}

ls_status ls_comm_barrier(ls_comm *c, const char *what, ls_err *err)
{
    return lsi_barrier(c, what, NULL, err);
}

ls_status ls_comm_broadcast(ls_comm *c, void *data, size_t bytes, int root, const char *what, ls_err *err)
{
    ls_status st = LS_OK;
    uint64_t ticket = lsi_ticket("broadcast", bytes, what);
    char *next = data;
    size_t at = 0;

    LS_BUG_IF(root < 0 || root >= c->size);
    lsi_note(c, what);
    do {
        size_t piece = piece_of(c, bytes, at);
        LS_TRY(round_of_all(c, next, root, piece, ticket, what, NULL, err));
        if (data != NULL && piece > 0 && c->rank != root) memcpy(next, mail_of(c, root, root, piece), piece);
        at += piece;
        if (data != NULL && piece > 0) next += piece;
    } while (at < bytes);
out:
    return st;
}

ls_status ls_comm_gather_all(ls_comm *c, const void *mine, size_t bytes, void *all, const char *what,
                             ls_err *err)
{
    ls_status st = LS_OK;
    uint64_t ticket = lsi_ticket("gather", bytes, what);
    const char *next = mine;
    size_t at = 0;

    lsi_note(c, what);
    do {
        size_t piece = piece_of(c, bytes, at);
        LS_TRY(round_of_all(c, next, -1, piece, ticket, what, NULL, err));
        for (int r = 0; piece > 0 && r < c->size; r++)
            memcpy((char *)all + (size_t)r * bytes + at, mail_of(c, r, -1, piece), piece);
        at += piece;
        if (piece > 0) next += piece;
    } while (at < bytes);
out:
    return st;
}

/* -- what is made of a gather
 * ---------------------------------------------------------------------------------- */

static double add(double a, double b)
{
    return a + b;
}

static double larger(double a, double b)
{
    return b > a || b != b ? b : a;
}

static double smaller(double a, double b)
{
    return b < a || b != b ? b : a;
}

/* Folds the values of all ranks in the order of ranks, a few at a time: no memory is taken. */
static ls_status fold(ls_comm *c, double (*f)(double, double), double *values, int n, const char *what,
                      ls_err *err)
{
    enum { ROOM = 512 };
    ls_status st = LS_OK;
    double all[ROOM], *large = NULL;
    int at_once = ROOM / c->size, done = 0;

    if (at_once == 0) { /* more ranks than fit */
        at_once = 1;
        large = ls_alloc(LS_MEM_COMM, (size_t)c->size * sizeof(double));
        if (large == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", what);
    }
    do {
        int m = n - done < at_once ? n - done : at_once;
        double *got = large != NULL ? large : all;
        LS_TRY(ls_comm_gather_all(c, values + done, (size_t)m * sizeof(double), got, what, err));
        for (int i = 0; i < m; i++) {
            double v = got[i];
            for (int r = 1; r < c->size; r++) v = f(v, got[r * m + i]);
            values[done + i] = v;
        }
        done += m;
    } while (done < n);
out:
    ls_free(large);
    return st;
}

ls_status ls_comm_sum(ls_comm *c, double *values, int n, const char *what, ls_err *err)
{
    return fold(c, add, values, n, what, err);
}

ls_status ls_comm_max(ls_comm *c, double *values, int n, const char *what, ls_err *err)
{
    return fold(c, larger, values, n, what, err);
}

ls_status ls_comm_min(ls_comm *c, double *values, int n, const char *what, ls_err *err)
{
    return fold(c, smaller, values, n, what, err);
}

/* The values of all ranks, one word each; the caller frees *all. */
static ls_status gather_words(ls_comm *c, uint64_t mine, uint64_t **all, const char *what, ls_err *err)
{
    ls_status st;

    *all = ls_alloc(LS_MEM_COMM, (size_t)c->size * sizeof **all);
    if (*all == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", what);
    st = ls_comm_gather_all(c, &mine, sizeof mine, *all, what, err);
    if (st != LS_OK) {
        ls_free(*all);
        *all = NULL;
    }
    return st;
}

ls_status ls_comm_agree(ls_comm *c, uint64_t value, const char *what, ls_err *err)
{
    uint64_t *all;
    ls_status st = gather_words(c, value, &all, what, err);

    for (int r = 1; st == LS_OK && r < c->size; r++)
        if (all[r] != all[0])
            st = ls_fail(err, LS_DISAGREE, "%s: rank 0 has %016llx, rank %d has %016llx", what,
                         (unsigned long long)all[0], r, (unsigned long long)all[r]);
    ls_free(all);
    return st;
}

ls_status lsi_all_well(ls_comm *c, ls_status mine, const char *what, ls_err *err)
{
    double worst[2] = {mine != LS_OK ? 1 + c->size - c->rank : 0, 0};
    int32_t said[2];

    /* No memory is taken: it may be what has run out. */
    ls_status st = ls_comm_max(c, worst, 1, what, err);
    if (st != LS_OK || worst[0] == 0) return mine != LS_OK ? mine : st;
    said[0] = 1 + c->size - (int)worst[0]; /* the first rank that failed */
    said[1] = mine;
    st = ls_comm_broadcast(c, &said[1], sizeof said[1], said[0], what, err);
    if (mine != LS_OK || st != LS_OK) return mine != LS_OK ? mine : st;
    return ls_fail(err, (ls_status)said[1], "%s failed on rank %d: %s", what, said[0],
                   ls_status_name((ls_status)said[1]));
}
