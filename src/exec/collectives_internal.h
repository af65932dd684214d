/* collectives_internal.h: where the tensors of a bucket lie: shared by collectives.c, whose vectors are the
 * host's, and links.c. */
#ifndef LS_EXEC_COLLECTIVES_INTERNAL_H
#define LS_EXEC_COLLECTIVES_INTERNAL_H

#include "exec/collectives.h"
#include "exec/peers_internal.h"
#include "ops/ops.h"

/* A tensor in its bucket. */
typedef struct lsi_place {
    int64_t offset; /* in a rank's stretch of the vector, in floats */
    int64_t count;  /* elements that the stretch holds of it */
    int64_t whole;  /* and the tensor */
    int64_t size;   /* bytes of an element: 4 of what is added up; what is gathered may have fewer */
} lsi_place;

/* The kernel of any node. */
typedef struct lsi_transfer {
    ls_peers *peers;
    int bucket;             /* its place among the peers'; -1: none */
    int first, n;           /* tensors: their first input (or output), and how many */
    int n_plain;            /* the last so many are not weighted */
    bool tree;              /* leaves have brought all but the plain ones */
    int stretches, own;     /* of the vector: one for each rank where each has a piece, and this rank's */
    int64_t length;         /* floats of a stretch */
    bool scatters, gathers; /* what is given, or comes, is in pieces */
    bool shared;            /* others use the same memory before and after: nothing stays in it */
    bool gives;             /* this rank does: all but those that listen to a broadcast */
    ls_group group;         /* of a barrier */
    const char *what;
    /* Of links.c, else NULL: where the vector is in the device's memory, and room for what is moved. */
    float *vector;
    ls_link_piece *pieces;
    ls_collective kind;
    int root; /* of a broadcast */
    lsi_place at[];
} lsi_transfer;

/* For node n, without a bucket and without tensors; the caller's to ls_free.  NULL: no memory. */
lsi_transfer *lsi_coll_transfer(ls_peers *p, const ls_node *n);
/* Which tensors the node has, and where they lie in the vector. */
ls_status lsi_coll_lay_out(const ls_peers *p, const ls_graph *g, const ls_node *n, lsi_transfer *t,
                           ls_err *err) LS_MUST_CHECK;
/* Notes the node's bucket in `t`, a new one if need be, without an exchange. */
ls_status lsi_coll_note_bucket(ls_peers *p, const ls_node *n, lsi_transfer *t, ls_err *err) LS_MUST_CHECK;

#endif
