/* links.h: collectives of a plan that devices run among themselves (backend/links.h).
 *
 * Used when every rank has a device of its own and all of them have the library.  The vector of a bucket lies
 * in the device's memory: a start moves the tensors there, weighted, and enqueues the collective on the
 * communication queue; a wait moves the result to where its readers expect it.  The host enqueues and goes
 * on.  Sums that must not depend on the number of ranks (a tree over shards), barriers, and the bucket with
 * the numbers by which ranks agree on what comes next stay the host's, who need not wait for the device to
 * know them. */
#ifndef LS_EXEC_LINKS_H
#define LS_EXEC_LINKS_H

#include "exec/peers.h"

/* Whether devices run the node's collective; `p` may be NULL: no. */
bool lsi_links_run(const ls_peers *p, const ls_node *n);
/* As lsi_coll_rooms and lsi_coll_plan, for such nodes. */
ls_status lsi_links_rooms(ls_peers *p, const ls_graph *g, ls_err *err) LS_MUST_CHECK;
ls_status lsi_links_plan(ls_peers *p, const ls_graph *g, const ls_node *n, ls_kernel *out,
                         ls_err *err) LS_MUST_CHECK;
/* For who waits for the device, now and then: LS_LOST when a rank is gone, for whom the device would wait for
 * ever, LS_DEVICE when the library has failed; all that is under way is then given up.  LS_OK without links.
 */
ls_status lsi_links_watch(ls_peers *p, ls_err *err);
/* Bytes of the device's memory that vectors take. */
size_t lsi_links_bytes(const ls_peers *p);
void lsi_links_release(ls_peers *p);

#endif
