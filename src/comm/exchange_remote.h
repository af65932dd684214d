/* exchange_remote.h: the part of an exchange that crosses machines, as exchange_remote.c runs it and
 * exchange_remote_make.c makes it. */
#ifndef LS_COMM_EXCHANGE_REMOTE_H
#define LS_COMM_EXCHANGE_REMOTE_H

#include "comm/exchange_internal.h"

enum { LSI_MOST_SLOTS = 32 }; /* slices that a rank has in hand at once, at most */

/* One subtree that a machine contributes. */
typedef struct lsi_share {
    lsi_node node;
    int host, index; /* the machine's index-th */
} lsi_share;

/* A slice in hand.  Until it is over it has a block of memory, in which the rest lies. */
typedef struct lsi_hand {
    enum { LSI_FREE, LSI_COLLECTING, LSI_ANSWERING, LSI_ASKING } state;
    int64_t nth; /* of this rank's slices */
    int64_t slice, lo, n;
    int n_requests;
    char *block;
    ls_transport_request *request;
    int *peer;  /* of each of them */
    float *own; /* this machine's subtrees */
    float *got; /* at home: the others', host after host; NULL: lines hold them */
    void *out;  /* narrow wires only: what is sent, */
    void *in;   /* and what has come */
} lsi_hand;

/* Where in its block what a slice needs begins, and how long the block is. */
typedef struct lsi_block_plan {
    size_t peers, own, got, out, in, bytes;
} lsi_block_plan;

struct lsi_remote_exchange {
    ls_wire wire;
    const lsi_narrow_loops *convert; /* to and from a narrow one */
    int *n_shares;                   /* by host */
    lsi_sum_plan total;              /* over the shares of all machines */
    lsi_share *share;                /* its inputs */
    const float **in_at;
    float **out_at;
    float *weight, *stack;     /* of the shares: 1, or of a rank's part where it is its machine's only one */
    int own_share;             /* that one; -1: the machine's parts are added up first */
    bool held;                 /* shares of other machines are read where lines hold them, and have weights */
    uint64_t begun;            /* number of the exchange that `next` belongs to */
    int64_t next;              /* the next slice of this rank to take in hand, */
    int64_t taken;             /* and how many it has taken before */
    int ahead;                 /* slices that a machine may be ahead of another: see lsi_is_gated */
    int speakers, stretch;     /* turns whose slices speak for a stretch of turns */
    int64_t heard;             /* at home: the last stretch that was asked for; -1: none */
    lsi_block_plan home, away; /* of a slice that is at home here, and of another */
    int slots;
    lsi_hand hand[LSI_MOST_SLOTS];
};

/* In every turn there is a slice for each machine that is home to some, and one after another all ranks of a
 * machine have turns.  A stretch has as many turns of each. */
static inline int64_t lsi_turn_of(const ls_exchange *x, int64_t slice)
{
    return x->kind == LS_COLL_BROADCAST ? slice : slice / x->c->hosts;
}

static inline int64_t lsi_stretch_of(const ls_exchange *x, int64_t slice)
{
    return lsi_turn_of(x, slice) / x->remote->stretch;
}

/* Whether more is said about a slice than its numbers.  What is gathered goes out without being asked for,
 * and who gives his share of a scattered sum hears nothing in return: a machine could be any number of slices
 * ahead of another, which would have to keep them all.  So of a long vector each stretch but the first
 * ones is asked for before it is sent, or each but the last ones is acknowledged.  Both sides know by the
 * slice's number.
 */
static inline bool lsi_is_gated(const ls_exchange *x, int64_t slice)
{
    const int64_t first =
        lsi_stretch_of(x, slice) * x->remote->stretch * (x->kind == LS_COLL_BROADCAST ? 1 : x->c->hosts);

    if (lsi_copies(x->kind)) return first >= x->remote->ahead;
    return x->kind == LS_COLL_REDUCE_SCATTER && first + x->remote->ahead < x->n_chunks;
}

/* Of a stretch that is gated, the slices that say so: a message of no bytes for each of them. */
static inline bool lsi_speaks(const ls_exchange *x, int64_t slice)
{
    return lsi_is_gated(x, slice) && lsi_turn_of(x, slice) % x->remote->stretch < x->remote->speakers;
}

/* Slices of one piece, where ranks have pieces. */
static inline int64_t lsi_slices_per_piece(const ls_exchange *x)
{
    return (ls_exchange_piece(x->n, x->size) + x->chunk - 1) / x->chunk;
}

static inline size_t lsi_wire_bytes(ls_wire wire)
{
    return wire == LS_WIRE_F32 ? sizeof(float) : sizeof(uint16_t);
}

#endif
