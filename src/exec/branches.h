/* branches.h: what in a plan must come after what, by the memory it works on.
 *
 * A queue runs one node after the other, and memory is planned for that.  Where a whole run is recorded, it
 * needs no such order: a node has to come after those that make what it reads, and, since memory is used
 * again, after those that still need what it writes over.  The rest may run side by side. */
#ifndef LS_EXEC_BRANCHES_H
#define LS_EXEC_BRANCHES_H

#include "exec/plan_internal.h"

typedef struct lsi_branches {
    int32_t *first; /* per position, and one more: where its list begins in `before` */
    int32_t *before;
} lsi_branches;

/* For every position of the schedule the positions before it that it must come after, without those that
 * follow from others of them.  Released in any case. */
ls_status lsi_branches_make(const ls_plan *p, lsi_branches *out, ls_err *err) LS_MUST_CHECK;
void lsi_branches_release(lsi_branches *b);

#endif
