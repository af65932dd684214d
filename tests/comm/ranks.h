/* ranks.h: runs a function on several ranks that are threads or forked processes of this one.
 *
 * A rank has no CHECK (checks are for the main thread): it returns how many things went wrong, and prints
 * them. */
#ifndef LS_TESTS_COMM_RANKS_H
#define LS_TESTS_COMM_RANKS_H

#include "comm/comm.h"

typedef int (*rank_fn)(ls_comm *c, const void *arg);

/* Each returns the sum of what the ranks returned; a process that ended otherwise counts as 1000. */
int run_threads(int n, rank_fn fn, const void *arg);
int run_processes(int n, rank_fn fn, const void *arg);

/* For ranks: prints "rank R: TEXT" and returns 1 when `st` is not `want` (and prints err's text). */
int expect_status(const ls_comm *c, ls_status st, ls_status want, const ls_err *err, const char *what);

/* A number that depends on all of its arguments, in (-1, 1), with a full mantissa. */
float noise(uint64_t a, uint64_t b, uint64_t i);
/* Gives the core away, or computes for a moment, or does nothing: by chance. */
void dawdle(uint64_t *state);

/* A readable tree sum: value i over the leaves [first, end) of n, where leaf s holds noise(seed, s, i). */
float tree_value(uint64_t seed, int64_t n_leaves, int64_t first, int64_t width, int64_t i);
/* Leaves of rank `rank` when `shards` are dealt out as evenly as can be. */
void deal(int64_t shards, int size, int rank, int64_t *first, int64_t *end);
/* Fills every part with its leaves, summed in the order of the tree. */
void fill_parts(ls_exchange *x, uint64_t seed, int64_t n_leaves, int64_t n);

#endif
