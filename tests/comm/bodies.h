/* bodies.h: what ranks do in the tests of comm, whatever kind of communicator joins them.
 *
 * Each returns how many things went wrong, and prints them. */
#ifndef LS_TESTS_COMM_BODIES_H
#define LS_TESTS_COMM_BODIES_H

#include "comm/comm.h"

typedef struct sum_case {
    int64_t n, shards; /* shards 0: one per rank */
    int steps;
} sum_case;

/* arg: a sum_case.  Exchanges at a pace that differs by rank, compared bit for bit with a readable tree. */
int rank_sums_steps(ls_comm *c, const void *arg);
/* Several exchanges under way at once. */
int rank_overlaps(ls_comm *c, const void *arg);
/* A rank that is in a barrier of all sends what others wait for before they come. */
int rank_works_in_barriers(ls_comm *c, const void *arg);
/* Weights that differ by rank and step, and a scale; 1, 2 or 4 ranks. */
int rank_weighs(ls_comm *c, const void *arg);
/* A rank of weight 0, which has infinities: they are in no sum.  At most 4 ranks. */
int rank_weighs_nothing(ls_comm *c, const void *arg);
/* Every kind of collective over every group, at lengths that do not fit ranks, empty ones among them. */
int rank_moves(ls_comm *c, const void *arg);
/* Pieces of several slices each, more of them than a rank of a few has in hand at once, odd lengths. */
int rank_moves_long(ls_comm *c, const void *arg);
/* Exchanges that use the same memory one after the other. */
int rank_moves_in(ls_comm *c, const void *arg);
/* arg: an int64_t, the number of shards.  Sums of leaves that several threads give out of order. */
int rank_gives_leaves(ls_comm *c, const void *arg);
/* Gathers and broadcasts on both sides of what one round carries; at most 8 ranks. */
int rank_gathers(ls_comm *c, const void *arg);
/* Memory in common: what one rank writes before a barrier, all read after it. */
int rank_shares(ls_comm *c, const void *arg);
/* Sums, maxima and minima in the order of ranks. */
int rank_folds(ls_comm *c, const void *arg);

#endif
