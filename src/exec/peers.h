/* peers.h: the other ranks, as a plan sees them: whoever plans its collectives.
 *
 * All plans of a session share one set of exchanges, found by the number of the bucket.  Gradients are
 * computed right where ranks exchange them, and optimisers read the sums where they were made: a bucket costs
 * no copy.  While exchanges are under way, the executor lets them do a piece of work after every node.
 *
 * Parameters and optimiser state would be the same on all ranks of a machine; where the optimiser allows it
 * they lie in memory that these share, and each rank updates a piece. */
#ifndef LS_EXEC_PEERS_H
#define LS_EXEC_PEERS_H

#include "backend/backend.h"
#include "comm/comm.h"
#include "lockstep/plan.h"
#include "ops/ops.h"

typedef struct ls_peers ls_peers;

typedef struct ls_peers_options {
    ls_wire wire;
    bool overlap; /* false: exchanges wait until their result is needed, for measuring what overlap gains */
    bool share; /* ranks of a machine keep parameters and optimiser state once and update them together, each
                   a piece */
} ls_peers_options;

/* `comm` stays the caller's and must outlive *out. */
ls_status ls_peers_create(ls_peers **out, ls_comm *comm, const ls_peers_options *o,
                          ls_err *err) LS_MUST_CHECK;
/* Stands for `ranks` ranks of one machine that are not there: plans can be compiled and looked at, not run.
 */
ls_status ls_peers_create_absent(ls_peers **out, int ranks, bool share, ls_err *err) LS_MUST_CHECK;
void ls_peers_destroy(ls_peers *p); /* accepts NULL; after every plan that uses it */
/* The buckets there are, and bytes of gradients in one. */
int ls_peers_buckets(const ls_peers *p);
size_t ls_peers_bucket_bytes(const ls_peers *p, int bucket);
/* The bucket, counted from 0 as above, that a node of the plan begins or ends the exchange of; -1: none. */
int ls_peers_bucket_at(const ls_peers *p, const ls_plan *plan, int node);
/* Memory of this rank that all of them take. */
size_t ls_peers_bytes(const ls_peers *p);

/* -- for the executor -------------------------------------------------------------------------------------
 */

/* Whether the node is a collective that peers plan; `p` may be NULL: one rank, whose device does. */
bool lsi_peers_runs(const ls_peers *p, const ls_node *n);
/* Collective where it needs a new exchange: all ranks compile the same plans in the same order. */
ls_status lsi_peers_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out,
                         ls_err *err) LS_MUST_CHECK;
/* Gives values that can live in the collective's own memory their place there (ls_vinfo.buffer). */
void lsi_peers_place(const ls_kernel *k, ls_graph *g, const ls_node *n);
/* Where such a value lies. */
void *lsi_peers_address(const ls_peers *p, const ls_vinfo *v);
bool lsi_peers_absent(const ls_peers *p); /* false for NULL */
int lsi_peers_rank(const ls_peers *p);    /* 0 for NULL, and where nobody is there */
/* The communicator, where ranks of this machine share variables; NULL (also for p NULL): they do not. */
ls_comm *lsi_peers_sharing(const ls_peers *p);
/* This rank's part of a variable of so many bytes: all of it unless ranks share.  `p` may be NULL. */
size_t lsi_peers_part_of(const ls_peers *p, size_t bytes);
/* Whether this is the rank that writes shared variables when one rank does. */
bool lsi_peers_first_here(const ls_peers *p);
/* Whether ranks of a machine update variables in pieces (`p` may be NULL: no), and which piece is whose. */
bool lsi_peers_pieces(const ls_peers *p, int *rank, int *ranks);
/* A piece of work for what is under way, if anything is. */
void lsi_peers_progress(ls_peers *p);

#endif
