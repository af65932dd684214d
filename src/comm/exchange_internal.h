/* exchange_internal.h: an exchange, as exchange.c runs it and exchange_make.c makes it.
 *
 * Its window in the heap holds the board, the result, and parts and leaves of all ranks of the machine. */
#ifndef LS_COMM_EXCHANGE_INTERNAL_H
#define LS_COMM_EXCHANGE_INTERNAL_H

#include "comm/comm_internal.h"

/* What one rank says on the board, on a line of its own. */
typedef struct lsi_post {
    alignas(LSI_LINE) _Atomic uint64_t number; /* the last exchange for which its parts are filled; orders the
                                                  parts and the weight */
    float weight;
} lsi_post;

/* Counts run on over all exchanges: with C chunks, those of exchange t (from 1) are [(t - 1) C, t C). */
typedef struct lsi_board {
    alignas(LSI_LINE) _Atomic uint64_t claimed; /* chunks that somebody has taken on */
    alignas(LSI_LINE) _Atomic uint64_t done;    /* chunks whose result is written; orders the result */
    alignas(LSI_LINE) _Atomic int32_t closed;   /* ranks that have destroyed their exchange */
    lsi_post post[];
} lsi_board;

typedef struct lsi_remote_exchange lsi_remote_exchange;
typedef struct lsi_leaves lsi_leaves;

struct ls_exchange {
    const ls_collectives *how;
    ls_comm *c;
    char name[LS_COMM_WHAT_MAX];
    ls_collective kind;
    int rank, size, root; /* in the group */
    bool across;          /* over all machines, of which there are several */
    int first, here; /* the ranks of this machine that take part: the first one's local number, how many, */
    int self;        /* and this rank among them */
    int64_t n, n_shards;
    float scale;
    int n_parts;
    lsi_node *part;     /* this rank's */
    lsi_leaves *leaves; /* NULL: the caller fills the parts */
    float **part_at;
    bool in_place; /* one rank: its part becomes the result */

    const ls_exchange_room *room; /* where result and parts lie; NULL: in the window */
    size_t offset, bytes;         /* the window */
    void *window;
    lsi_board *board;
    float *result;

    lsi_sum_plan plan;           /* over all parts of the machine */
    lsi_remote_exchange *remote; /* NULL: there is one machine, and the plan's output is the result */
    const float **in;
    lsi_node *covers; /* of each input of a copy: the stretch of the vector that it is */
    int *owner;       /* of each input: a local index */
    float *weight;
    const lsi_sum_loops *loops;
    float *stack;

    int64_t chunk, n_chunks; /* floats in a chunk, and how many chunks there are */
    int first_tag;           /* between machines */
    uint64_t number;         /* of the exchange under way, or of the last one */
    bool running, all_posted, weights_known;
    ls_exchange *next_running; /* between machines: the next that was started, */
    uint64_t turn;             /* and how many go before this one, or a number that says as much */
    bool newest_first;
    uint64_t exposed_ns;
};

/* What ranks tell each other when an exchange is made. */
typedef struct lsi_claim {
    int64_t n, n_shards, first, end;
    float scale;
    int32_t wire, kind, group, root, lanes;
} lsi_claim;

/* Whether each element of the result is one rank's, and not a sum over all. */
static inline bool lsi_copies(ls_collective kind)
{
    return kind == LS_COLL_ALL_GATHER || kind == LS_COLL_BROADCAST;
}
/* Whether ranks own pieces of the vector. */
static inline bool lsi_has_pieces(ls_collective kind)
{
    return kind == LS_COLL_REDUCE_SCATTER || kind == LS_COLL_ALL_GATHER;
}

/* -- exchange_make.c ---------------------------------------------------------------------------------------
 */

ls_status lsi_exchange_make(ls_exchange **out, ls_comm *c, const ls_exchange_options *o,
                            ls_err *err) LS_MUST_CHECK;
void lsi_exchange_destroy(ls_exchange *x);
size_t lsi_exchange_bytes(const ls_comm *c, const ls_exchange_options *o);
/* The parts of all ranks of a host, in ascending order; *nodes and *owner (local indices) are the caller's.
 */
ls_status lsi_list_parts(const ls_exchange *x, int host, const lsi_claim *all, lsi_node **nodes, int **owner,
                         int *n, ls_err *err) LS_MUST_CHECK;

/* -- collective.c ------------------------------------------------------------------------------------------
 */

extern const ls_collectives lsi_self_collectives, lsi_shared_collectives, lsi_mpi_collectives,
    lsi_absent_collectives;
ls_status lsi_group_barrier(ls_comm *c, ls_group group, const char *what, bool (*work)(void *ctx), void *ctx,
                            ls_err *err) LS_MUST_CHECK;

/* -- leaves.c ----------------------------------------------------------------------------------------------
 */

/* How many buffers a rank needs that gives leaves in so many lanes; 0: it does not. */
int lsi_leaves_buffers(int64_t n_leaves, int64_t first, int64_t end, int lanes);
/* Over that many, from `memory` on. */
ls_status lsi_leaves_create(ls_exchange *x, int64_t first, int64_t end, int buffers, float *memory,
                            size_t stride, ls_err *err) LS_MUST_CHECK;
void lsi_leaves_destroy(ls_exchange *x); /* accepts that there are none */

/* -- exchange.c --------------------------------------------------------------------------------------------
 */

/* Of a copy: elements [lo, hi) of the vector, as far as they are this machine's, to `to`. */
void lsi_exchange_copy(const ls_exchange *x, int64_t lo, int64_t hi, float *to);
bool lsi_exchange_finished(ls_exchange *x);
/* Whether sums may begin. */
bool lsi_exchange_all_posted(ls_exchange *x);
/* For holders of a claim: reads everybody's weight. */
void lsi_exchange_read_weights(ls_exchange *x);

/* -- exchange_remote.c, exchange_remote_make.c: what happens between machines
 * ------------------------------------------------------------ */

/* Chunks are then slices, each dealt to one rank of every machine: sets x->chunk, x->n_chunks and
 * x->first_tag. Cannot fail, and so takes the same tags on all ranks. */
void lsi_remote_choose_slices(ls_exchange *x);
ls_status lsi_remote_exchange_create(ls_exchange *x, const lsi_claim *all, ls_err *err) LS_MUST_CHECK;
void lsi_remote_exchange_destroy(ls_exchange *x); /* accepts that there is none */
/* At most, while it is under way; where ranks have their leaves in their order.  Adds to *out. */
void lsi_remote_exchange_transit(const ls_comm *c, const lsi_claim *m, ls_transit *out);
/* Like `advance` of exchange.c. */
bool lsi_remote_exchange_advance(ls_exchange *x, bool *worked);
/* An exchange over all machines is under way; it is so no more (nothing happens if it was not). */
void lsi_remote_exchange_begun(ls_exchange *x);
void lsi_remote_exchange_ended(ls_exchange *x);
/* A piece of work for another than this one, the earliest that has some; false: none has. */
bool lsi_remote_exchange_others(const ls_exchange *x);
/* Marks the ranks of other machines that a wait for it (its argument) waits for. */
void lsi_remote_exchange_awaited(void *exchange, bool *ranks);
/* Until lines have something to do, or a moment is over. */
void lsi_remote_exchange_rest(void *exchange);

#endif
