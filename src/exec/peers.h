/* peers.h: the other ranks, as plans see them.
 *
 * All plans of a session share one set of exchanges (exec/collectives.h), found by the number of the bucket.
 * Parameters and optimiser state would be the same on all ranks of a machine; where the optimiser allows it
 * they lie in memory that these share, and each rank updates a piece. */
#ifndef LS_EXEC_PEERS_H
#define LS_EXEC_PEERS_H

#include "backend/backend.h"
#include "comm/comm.h"
#include "lockstep/plan.h"

typedef struct ls_peers ls_peers;

typedef struct ls_peers_options {
    ls_wire wire;
    bool overlap; /* false: exchanges wait until their result is needed, for measuring what overlap gains */
    bool share; /* ranks of a machine keep parameters and optimiser state once and update them together, each
                   a piece */
    /* Where sums follow the tree over shards: this rank's, and the threads that compute them side by side. */
    int64_t first_shard, end_shard;
    int lanes;
    int shard_group; /* of ranks that are absent: ls_comm_set_shard_group */
} ls_peers_options;

/* `comm` stays the caller's and must outlive *out. */
ls_status ls_peers_create(ls_peers **out, ls_comm *comm, const ls_peers_options *o,
                          ls_err *err) LS_MUST_CHECK;
/* Stands for `ranks` ranks that are not there, `here` of them on each machine (0: all on one): plans can be
 * compiled and looked at, not run. */
ls_status ls_peers_create_absent(ls_peers **out, int ranks, int here, const ls_peers_options *o,
                                 ls_err *err) LS_MUST_CHECK;
void ls_peers_destroy(ls_peers *p); /* accepts NULL; after every plan that uses it */
/* Collective, before the first plan: where every rank has a device of its own and all have the library,
 * devices run collectives among themselves from now on (links.h); else nothing changes.  `dev` outlives *p.
 */
ls_status ls_peers_link(ls_peers *p, ls_device *dev, ls_err *err) LS_MUST_CHECK;
bool ls_peers_linked(const ls_peers *p);
/* "by NCCL 2.28.3: ..." or "through the host: ...", with why; "" where that is no question.  `p` may be NULL.
 */
const char *ls_peers_links_text(const ls_peers *p);
/* The buckets there are, and bytes of gradients in one. */
int ls_peers_buckets(const ls_peers *p);
size_t ls_peers_bucket_bytes(const ls_peers *p, int bucket);
/* The next bucket whose exchange a plan starts, in the order in which it does: *at is where to look from, 0
 * at first, and -1 means that there are no more.  Buckets are numbered as plans were compiled, which is
 * another order where leaves are given in one plan and summed in the next. */
int ls_plan_next_bucket(const ls_plan *p, int32_t *at);
/* Bytes that a rank sends in one run of the plan, the mean over ranks, were each on a machine of its own: of
 * an all-reduce of n bytes among N ranks 2 n (N - 1) / N, of the other collectives half of that. */
double ls_plan_traffic(const ls_plan *p);
/* Memory of this rank that all of them take. */
size_t ls_peers_bytes(const ls_peers *p);

/* -- for the executor: who is there, and who keeps what ----------------------------------------------------
 */

ls_comm *ls_peers_comm(const ls_peers *p);
bool lsi_peers_absent(const ls_peers *p);                 /* false for NULL */
int lsi_peers_rank(const ls_peers *p);                    /* 0 for NULL, and where nobody is there */
int lsi_peers_rank_in(const ls_peers *p, ls_group group); /* the same, in a group */
/* The communicator, where ranks of some machine share variables; NULL (also for p NULL): they do not.  The
 * same on all machines, for memory to share is found together; one rank alone on its machine shares with
 * nobody. */
ls_comm *lsi_peers_sharing(const ls_peers *p);
/* This rank's part of a variable of so many bytes: all of it unless ranks share.  `p` may be NULL. */
size_t lsi_peers_part_of(const ls_peers *p, size_t bytes);
/* Whether this is the rank that writes shared variables when one rank does. */
bool lsi_peers_first_here(const ls_peers *p);
/* Whether ranks of a machine update variables in pieces (`p` may be NULL: no), and which piece is whose. */
bool lsi_peers_pieces(const ls_peers *p, int *rank, int *ranks);

#endif
