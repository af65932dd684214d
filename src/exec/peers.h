/* peers.h: the other ranks, as a plan sees them: the exchanges that its all_reduce nodes start and finish.
 *
 * All plans of a session share one set of exchanges, found by the number of the bucket.  Gradients are
 * computed right where ranks exchange them, and optimisers read the sums where they were made: a bucket costs
 * no copy.  While exchanges are under way, the executor lets them do a piece of work after every node. */
#ifndef LS_EXEC_PEERS_H
#define LS_EXEC_PEERS_H

#include "backend/backend.h"
#include "comm/comm.h"

typedef struct ls_peers ls_peers;

/* `comm` stays the caller's and must outlive *out.  Without `overlap` exchanges wait until their result is
 * needed: for measuring what overlap gains. */
ls_status ls_peers_create(ls_peers **out, ls_comm *comm, ls_wire wire, bool overlap,
                          ls_err *err) LS_MUST_CHECK;
/* Stands for `ranks` ranks of one machine that are not there: plans can be compiled and looked at, not run.
 */
ls_status ls_peers_create_absent(ls_peers **out, int ranks, ls_err *err) LS_MUST_CHECK;
void ls_peers_destroy(ls_peers *p); /* accepts NULL; after every plan that uses it */
/* LS_OK, or why what the last plan computed is worthless: a rank was lost.  To be asked after every run. */
ls_status ls_peers_status(const ls_peers *p, ls_err *err) LS_MUST_CHECK;
/* The buckets there are, and bytes of gradients in one. */
int ls_peers_buckets(const ls_peers *p);
size_t ls_peers_bucket_bytes(const ls_peers *p, int bucket);
/* Memory of this rank that all of them take. */
size_t ls_peers_bytes(const ls_peers *p);

/* -- for the executor -------------------------------------------------------------------------------------
 */

/* Whether the node is one that peers run themselves; `p` may be NULL. */
bool lsi_peers_runs(const ls_peers *p, const ls_node *n);
/* Collective where it needs a new exchange: all ranks compile the same plans in the same order. */
ls_status lsi_peers_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out,
                         ls_err *err) LS_MUST_CHECK;
/* Marks values that can live in the exchange's memory external and sets their addresses. */
void lsi_peers_place(const ls_kernel *k, ls_graph *g, const ls_node *n, void **external);
bool lsi_peers_absent(const ls_peers *p);
/* A piece of work for what is under way, if anything is. */
void lsi_peers_progress(ls_peers *p);

#endif
