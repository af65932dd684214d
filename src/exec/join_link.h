/* join_link.h: joining a group of devices, while somebody looks whether all of its members still live. */
#ifndef LS_EXEC_JOIN_LINK_H
#define LS_EXEC_JOIN_LINK_H

#include "exec/peers_internal.h"

/* The link of member `rank` of `ranks`, as ls_links.open makes it.  LS_LOST, with who and why, when a rank of
 * this machine is gone: libraries wait for it for ever, and cannot be told. */
ls_status lsi_join_link(ls_peers *p, ls_link **out, const char id[LS_LINK_ID], int rank, int ranks,
                        ls_err *err) LS_MUST_CHECK;

#endif
