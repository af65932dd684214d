/* pieces.c: pieces of variables on their way from and to rank 0.
 *
 * Every rank of the first group has a piece; of further groups (hybrid) each rank has the same as one of the
 * first.  So pieces are read from the first group, and written everywhere. */
#include "exec/pieces.h"

#include <string.h>

#include "base/alloc.h"
#include "exec/peers.h"

enum { VISIT, FILL, CALL, END };

/* What rank 0 wants next. */
typedef struct order {
    int32_t what, variable;
} order;

#define WHAT "pieces of variables"

/* One variable of which this rank has a piece. */
typedef struct cutting {
    const ls_tensor *piece;
    ls_comm *comm;
    bool leads;
    int own; /* this rank's */
    ls_group group;
    size_t whole, of_a_piece; /* bytes */
    char *chunk;              /* LS_TENSOR_CHUNK */
} cutting;

static bool leads(const ls_state *s)
{
    return ls_comm_rank(ls_peers_comm(ls_state_peers(s))) == 0;
}

static ls_status open_cutting(cutting *x, const ls_state *s, int i, ls_err *err)
{
    const ls_cut_of cut = ls_state_cut(s, i);

    *x = (cutting){.piece = ls_state_at(s, i),
                   .comm = ls_peers_comm(ls_state_peers(s)),
                   .leads = leads(s),
                   .own = cut.own,
                   .group = cut.group,
                   .whole = ls_state_whole(s, i).bytes,
                   .of_a_piece = ls_state_at(s, i)->bytes};
    x->chunk = ls_alloc(LS_MEM_PLAN, LS_TENSOR_CHUNK);
    return x->chunk != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "variable \"%s\": no memory", x->piece->name);
}

/* Bytes from `at` on that are one piece's and fit into a chunk. */
static size_t stretch(const cutting *x, size_t at)
{
    const size_t end = (at / x->of_a_piece + 1) * x->of_a_piece, last = end < x->whole ? end : x->whole;

    return last - at < LS_TENSOR_CHUNK ? last - at : LS_TENSOR_CHUNK;
}

/* The first error is the one that is told; ranks go on together all the same. */
static void keep_first(ls_status *first, ls_err *err, ls_status st, const ls_err *why)
{
    if (*first != LS_OK || st == LS_OK) return;
    *first = st;
    if (err != NULL) *err = *why;
}

static ls_status send_pieces(const cutting *x, ls_tensor_look look, void *ctx, ls_err *err)
{
    ls_status st = LS_OK, looked = LS_OK;

    for (size_t at = 0, n; at < x->whole; at += n) {
        const int owner = (int)(at / x->of_a_piece), root = ls_group_member(x->comm, x->group, owner);
        const bool here = ls_comm_rank(x->comm) == root;
        ls_err why = {0};
        n = stretch(x, at);
        if (here) LS_TRY(ls_tensor_read(x->piece, at - (size_t)owner * x->of_a_piece, x->chunk, n, err));
        if (root != 0)
            LS_TRY(ls_comm_broadcast(x->comm, here || x->leads ? x->chunk : NULL, n, root, WHAT, err));
        if (look != NULL && looked == LS_OK) keep_first(&looked, err, look(ctx, x->chunk, at, n, &why), &why);
    }
out:
    return st != LS_OK ? st : looked;
}

static ls_status take_pieces(const cutting *x, ls_tensor_make make, void *ctx, ls_err *err)
{
    ls_status st = LS_OK, made = LS_OK;

    for (size_t at = 0, n; at < x->whole; at += n) {
        const int owner = (int)(at / x->of_a_piece);
        ls_err why = {0};
        n = stretch(x, at);
        if (make != NULL && made == LS_OK) keep_first(&made, err, make(ctx, x->chunk, at, n, &why), &why);
        LS_TRY(ls_comm_broadcast(x->comm, x->leads || owner == x->own ? x->chunk : NULL, n, 0, WHAT, err));
        if (owner == x->own)
            LS_TRY(ls_tensor_write(x->piece, at - (size_t)owner * x->of_a_piece, x->chunk, n, err));
    }
out:
    return st != LS_OK ? st : made;
}

static ls_status work(const ls_state *s, order o, ls_tensor_look look, ls_tensor_make make, void *ctx,
                      ls_err *err)
{
    cutting x;
    ls_status st = open_cutting(&x, s, o.variable, err);

    if (st == LS_OK) st = o.what == VISIT ? send_pieces(&x, look, ctx, err) : take_pieces(&x, make, ctx, err);
    ls_free(x.chunk);
    return st;
}

/* What rank 0 wants goes to all others. */
static ls_status share_order(const ls_state *s, order *o, ls_err *err)
{
    return ls_comm_broadcast(ls_peers_comm(ls_state_peers(s)), o, sizeof *o, 0, WHAT, err);
}

ls_status ls_pieces_visit(const ls_state *s, int i, ls_tensor_look look, void *ctx, ls_err *err)
{
    order o = {VISIT, i};
    ls_status st;

    if (!ls_state_in_pieces(s, i))
        return look != NULL ? ls_tensor_visit(ls_state_at(s, i), look, ctx, err) : LS_OK;
    st = share_order(s, &o, err);
    return st == LS_OK ? work(s, o, look, NULL, ctx, err) : st;
}

ls_status ls_pieces_fill(const ls_state *s, int i, ls_tensor_make make, void *ctx, ls_err *err)
{
    order o = {FILL, i};
    ls_status st;

    if (!ls_state_in_pieces(s, i)) return ls_tensor_fill(ls_state_at(s, i), make, ctx, err);
    st = share_order(s, &o, err);
    return st == LS_OK ? work(s, o, NULL, make, ctx, err) : st;
}

bool ls_pieces_any(const ls_state *s, ls_pieces_which which)
{
    for (int i = 0; i < ls_state_count(s); i++)
        if (ls_state_in_pieces(s, i) && (which == NULL || which(ls_state_role(s, i)))) return true;
    return false;
}

ls_status ls_pieces_end(const ls_state *s, ls_err *err)
{
    return ls_pieces_any(s, NULL) ? share_order(s, &(order){END, 0}, err) : LS_OK;
}

ls_status ls_pieces_call(const ls_state *s, ls_err *err)
{
    return share_order(s, &(order){CALL, 0}, err);
}

ls_status ls_pieces_serve(const ls_state *s, ls_pieces_work own, ls_err *err)
{
    order o = {VISIT, 0};
    ls_status st = LS_OK;

    if (!ls_pieces_any(s, NULL)) return LS_OK;
    for (;;) {
        LS_TRY(share_order(s, &o, err));
        if (o.what == END) break;
        LS_BUG_IF(o.what == CALL && own == NULL);
        LS_TRY(o.what == CALL ? own(s, err) : work(s, o, NULL, NULL, NULL, err));
    }
out:
    return st;
}
