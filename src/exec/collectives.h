/* collectives.h: the collectives of a plan, planned by whoever a communicator's table says
 * (comm/collective.h).
 *
 * The tensors of a bucket lie one after the other in one vector.  Gradients are computed right where ranks
 * exchange them, and optimisers read the sums where they were made: a bucket costs no copy.  While exchanges
 * are under way, the executor lets them do a piece of work after every node. */
#ifndef LS_EXEC_COLLECTIVES_H
#define LS_EXEC_COLLECTIVES_H

#include "exec/peers.h"
#include "passes/passes.h"

/* Whether the node is a collective that peers plan; `p` may be NULL: one rank, whose device does. */
bool lsi_coll_runs(const ls_peers *p, const ls_node *n);
/* Whether the host runs it: not where devices do so among themselves (links.h). */
bool lsi_coll_on_host(const ls_peers *p, const ls_node *n);
/* Whether the node is where a collective begins, or all of it.  Leaves are given to the sum of another plan,
 * and who waits has begun before. */
bool lsi_coll_begins(const ls_node *n);
/* Rooms that nodes of the graph use in turn, before any of them is planned.  Collective where there is a new
 * one. */
ls_status lsi_coll_rooms(ls_peers *p, const ls_graph *g, ls_err *err) LS_MUST_CHECK;
/* Collective where it needs a new exchange: all ranks compile the same plans in the same order. */
ls_status lsi_coll_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out,
                        ls_err *err) LS_MUST_CHECK;
/* Gives values that can live in the collective's own memory their place there (ls_vinfo.buffer). */
void lsi_coll_place(const ls_kernel *k, ls_graph *g, const ls_schedule *s, const ls_node *n);
/* Where such a value lies. */
void *lsi_coll_address(const ls_peers *p, const ls_vinfo *v);
/* The bucket, counted from 0 as ls_peers_buckets does, that a kernel of such a node works on; -1: none. */
int lsi_coll_bucket(const ls_kernel *k);
/* Whether sums are on their way that the run before has left to the next one (passes/carry.c).  `p` may be
 * NULL. */
bool lsi_coll_carried(const ls_peers *p);
/* A piece of work for what is under way, if anything is. */
void lsi_coll_progress(ls_peers *p);

#endif
