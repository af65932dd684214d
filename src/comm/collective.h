/* collective.h: what ranks do together with vectors of floats: made once, run every step, and after the first
 * steps without allocating.
 *
 * An exchange is one collective of some length, between its making and its destruction.
 *   all-reduce      every rank has a vector; all get the weighted sum
 *   reduce-scatter  the same, but rank r gets piece r of the sum
 *   all-gather      rank r has piece r of a vector; all get the vector
 *   broadcast       the root has a vector; all get it
 * Pieces are ls_exchange_piece floats long, the last ones shorter or empty.
 *
 *     fill ls_exchange_part(x, j) for every j
 *     ls_exchange_start(x, weight)
 *     ... compute, with a call of ls_exchange_progress now and then ...
 *     ls_exchange_wait(x, err)
 *     read ls_exchange_result(x)
 *
 * Ranks wait for their exchanges in the same order.  Several may be under way at once.
 *
 * Sums over leaves ("shards") follow one fixed binary tree: leaves 2i and 2i + 1 first, then pairs of pairs;
 * a missing right child passes the left one through.  Whoever owns the leaves, the bits depend on n_shards
 * alone.  A rank hands in its contiguous range of leaves as "parts": the largest subtrees that lie in the
 * range.  With one leaf per rank that is one part, which the caller fills; with more, the caller gives the
 * leaves (ls_exchange_leaf), or fills the parts with sums in the order of the tree. */
#ifndef LS_COMM_COLLECTIVE_H
#define LS_COMM_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef struct ls_comm ls_comm;
typedef struct ls_exchange ls_exchange;

typedef enum ls_collective {
    LS_COLL_NONE,
    LS_COLL_ALL_REDUCE,
    LS_COLL_REDUCE_SCATTER,
    LS_COLL_ALL_GATHER,
    LS_COLL_BROADCAST,
    LS_COLL_BARRIER
} ls_collective;
const char *ls_collective_name(ls_collective kind); /* "all_reduce" */

/* Who takes part. */
typedef enum ls_group {
    LS_GROUP_ALL,
    LS_GROUP_MACHINE, /* the ranks of each machine among themselves */
    LS_GROUP_SHARD    /* neighbours on a machine that have one model between them (ls_comm_set_shard_group) */
} ls_group;
enum { LS_GROUPS = LS_GROUP_SHARD + 1 };
const char *ls_group_text(ls_group group); /* "", " group=machine", " group=shard" */
int ls_group_size(const ls_comm *c, ls_group group);
int ls_group_rank(const ls_comm *c, ls_group group); /* this rank's number in it */
/* The rank that is number i of the group that rank 0 is in. */
int ls_group_member(const ls_comm *c, ls_group group, int i);
/* Before any exchange of LS_GROUP_SHARD is made, and the same on all ranks: so many ranks, of which each
 * machine has a multiple; 0: those of a machine. */
void ls_comm_set_shard_group(ls_comm *c, int ranks);

/* What crosses machines; sums are always taken in f32.  Inside a machine nothing is converted, and what is
 * gathered or broadcast never is. */
typedef enum ls_wire { LS_WIRE_F32, LS_WIRE_BF16, LS_WIRE_F16 } ls_wire;

/* Memory that exchanges use one after the other: a rank starts one when it has waited for the one before, and
 * needs its result no more.  It is the same on all ranks of a machine that take part: the result, then a part
 * of each of them, of which the longest fits. */
typedef struct ls_exchange_room {
    char *at; /* NULL: ranks are absent */
    size_t result_bytes, part_bytes;
} ls_exchange_room;

typedef struct ls_exchange_options {
    const char *name;   /* "bucket 3"; copied */
    ls_collective kind; /* LS_COLL_NONE stands for an all-reduce */
    ls_group group;
    int root;                                 /* of a broadcast: a rank of the group */
    int64_t n;                                /* floats of the whole vector; 0 is allowed */
    int64_t n_shards, first_shard, end_shard; /* leaves, and this rank's part of them (may be empty), in
                                                 ascending order of ranks; n_shards 0: one leaf per rank */
    int lanes;   /* leaves are given by so many threads at once; 0: parts are filled by the caller */
    float scale; /* a total is multiplied by it; 0 stands for 1 */
    ls_wire wire;
    bool newest_first; /* between machines: goes before others that were started earlier and are the same in
                          this; else behind */
    const ls_exchange_room *room; /* NULL: memory of its own; must outlive the exchange.  Without shards. */
} ls_exchange_options;

/* How a kind of communicator does it.  One table for each; ls_exchange_create finds the one to ask. */
typedef struct ls_collectives {
    const char *name; /* "self", "shared memory", "mpi", "absent" */
    ls_status (*make)(ls_exchange **out, ls_comm *c, const ls_exchange_options *o, ls_err *err);
    void (*destroy)(ls_exchange *x);
    size_t (*bytes)(const ls_comm *c, const ls_exchange_options *o);
    void (*start)(ls_exchange *x, float weight);
    bool (*progress)(ls_exchange *x);
    bool (*work)(ls_exchange *x);
    ls_status (*wait)(ls_exchange *x, ls_err *err);
    /* Calls `work` (may be NULL) while it waits: a piece of what is under way, which others may need from
     * this rank before they come; it returns whether there was any. */
    ls_status (*barrier)(ls_comm *c, ls_group group, const char *what, bool (*work)(void *ctx), void *ctx,
                         ls_err *err);
} ls_collectives;
const ls_collectives *ls_comm_collectives(const ls_comm *c);

/* Collective; the caller owns *out and destroys it before the communicator. */
ls_status ls_exchange_create(ls_exchange **out, ls_comm *c, const ls_exchange_options *o,
                             ls_err *err) LS_MUST_CHECK;
void ls_exchange_destroy(ls_exchange *x); /* not collective; accepts NULL */
/* Bytes that such an exchange takes on this rank: its parts, and its share of what the machine holds once. */
size_t ls_exchange_bytes(const ls_comm *c, const ls_exchange_options *o);
/* What exchanges take besides, at most, while they are under way between machines: what is being sent, and
 * what has come from machines that are ahead.  Exchanges that follow one another use blocks of the same size
 * one after the other, so it is counted by size: twice, for these are two kinds of blocks. */
enum { LS_TRANSIT_SIZES = 2 * 160 };
typedef struct ls_transit {
    size_t bytes[LS_TRANSIT_SIZES];
} ls_transit;
/* Of one exchange. */
void ls_exchange_transit(const ls_comm *c, const ls_exchange_options *o, ls_transit *out);
size_t ls_transit_bytes(const ls_transit *t); /* of all sizes */

/* What such an exchange needs of a room: raises its bytes where they are less. */
void ls_exchange_need_room(const ls_comm *c, const ls_exchange_options *o, ls_exchange_room *room);
/* All bytes of a room of this group on a machine. */
size_t ls_exchange_room_bytes(const ls_comm *c, ls_group group, const ls_exchange_room *room);

/* Floats of a rank's piece, where the vector of n is cut for `ranks`. */
static inline int64_t ls_exchange_piece(int64_t n, int ranks)
{
    return (n + ranks - 1) / ranks;
}
/* Floats of a slice of a vector of n that all ranks reduce between so many machines, of at most `most` ranks
 * each: slice k is summed on machine k mod `machines`.  `lines`: it travels on lines (comm/lines.h), as
 * between machines that can reach one another; else MPI carries it. */
int64_t ls_exchange_slice(int64_t n, int machines, int most, bool lines);
int ls_exchange_parts(const ls_exchange *x);
/* The leaves that part j is the sum of. */
void ls_exchange_part_range(const ls_exchange *x, int j, int64_t *first, int64_t *end);
/* n floats (of an all-gather: a piece), aligned to 64 bytes, zero at first.  Writable unless the exchange is
 * under way.  NULL where ranks are absent. */
float *ls_exchange_part(ls_exchange *x, int j);

/* n floats for one leaf, of unknown contents, to be filled and given back with the leaf's number: at most
 * `lanes` at a time, by any threads, in any order that takes as many leaves at a time as there are lanes.
 * ls_exchange_complete says that there are no more: those that nobody has given count as zero, and the parts
 * are filled. */
float *ls_exchange_leaf(ls_exchange *x);
void ls_exchange_give(ls_exchange *x, float *leaf, int64_t shard);
void ls_exchange_complete(ls_exchange *x);

/* The parts are filled.  Each is multiplied by `weight` before it is added; ranks may have different weights,
 * and those of weight 0 add zeros, also where theirs are not finite.
 * The bits are independent of who owns which leaves only for weights that are powers of two (use `scale`). */
void ls_exchange_start(ls_exchange *x, float weight);
/* Does at most one chunk of work, between machines all that can be done at once, and never waits; true: the
 * result is ready.  True also when a rank is lost or nothing was started: ls_exchange_wait tells. */
bool ls_exchange_progress(ls_exchange *x);
/* The same without booking the time: for use within another wait.  True: there was a chunk of work. */
bool ls_exchange_work(ls_exchange *x);
/* Returns when the result is ready, doing the summing that is left meanwhile. */
ls_status ls_exchange_wait(ls_exchange *x, ls_err *err) LS_MUST_CHECK;
/* The whole vector, which all ranks of the machine read in place; of a reduce-scatter only this rank's piece
 * of it, at its place, means something.  Valid from the end of the wait until this rank fills its parts again
 * or starts again, whichever is first. */
const float *ls_exchange_result(const ls_exchange *x);
/* Seconds in ls_exchange_progress and ls_exchange_wait of this exchange since it was made. */
double ls_exchange_exposed_seconds(const ls_exchange *x);

/* to[i] += from[i]: one addition of the tree. */
void ls_sum_into(float *to, const float *from, int64_t n);

#endif
