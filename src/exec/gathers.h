/* gathers.h: the gathers of weights in a plan, and what is computed between them. */
#ifndef LS_EXEC_GATHERS_H
#define LS_EXEC_GATHERS_H

#include "lockstep/plan.h"

/* A unit of weights that is gathered. */
typedef struct ls_unit_gather {
    double bytes; /* that a rank receives of others, the mean over ranks */
    double whole; /* bytes of all of it */
    double flops; /* computed from when it is there until the next is wanted */
} ls_unit_gather;

/* The first `most` of a run of the plan, in the order in which they are wanted; returns how many there are.
 */
int ls_plan_gathers(const ls_plan *p, ls_unit_gather *out, int most);

#endif
