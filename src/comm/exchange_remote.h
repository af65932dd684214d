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

/* A slice in hand. */
typedef struct lsi_hand {
    enum { LSI_FREE, LSI_COLLECTING, LSI_ANSWERING, LSI_ASKING } state;
    int64_t slice, lo, n;
    int n_requests;
    ls_transport_request *request;
    int *peer;  /* of each of them */
    float *own; /* this machine's subtrees */
    float *got; /* at home: the others', host after host; NULL: lines hold them */
    void *out;  /* narrow wires only: what is sent, */
    void *in;   /* and what has come */
} lsi_hand;

struct lsi_remote_exchange {
    ls_wire wire;
    const lsi_narrow_loops *convert; /* to and from a narrow one */
    int *n_shares;                   /* by host */
    lsi_sum_plan total;              /* over the shares of all machines */
    lsi_share *share;                /* its inputs */
    const float **in_at;
    float **out_at;
    float *weight, *stack; /* of the shares: 1, or of a rank's part where it is its machine's only one */
    int own_share;         /* that one; -1: the machine's parts are added up first */
    bool held;             /* shares of other machines are read where lines hold them, and have weights */
    uint64_t begun;        /* number of the exchange that `next` belongs to */
    int64_t next;          /* the next slice of this rank to take in hand */
    int slots;
    lsi_hand hand[LSI_MOST_SLOTS];
};

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
