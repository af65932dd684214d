/* workspace.h: memory that the plans over one state use in turn.
 *
 * What a plan computes on its way means nothing when a run is over: only its inputs and what is fetched stay
 * (passes/memory.c puts them first).  Plans over one state never run side by side: without queues a run is
 * over when it returns, and queues get the work of one run behind that of the run before (exec/flights.c), of
 * whichever plan.  So they have one stretch of memory between them, as large as the largest of them needs.
 *
 * It grows when a plan comes that needs more: between runs, when there is nothing in it. */
#ifndef LS_EXEC_WORKSPACE_H
#define LS_EXEC_WORKSPACE_H

#include "backend/backend.h"
#include "graph/graph.h"
#include "lockstep/plan.h"

typedef struct lsi_workspace {
    ls_buffer memory;             /* one place for good, also when it grows: operands refer to it */
    size_t by_category[LS_CAT_N]; /* of the plan for which it has grown last; sums to memory.bytes */
    ls_plan **plans;              /* that use it */
    int n;
    size_t cap;
} lsi_workspace;

/* The plan, whose memory is laid out, is to run in it; other plans that do learn their new addresses where it
 * grows.  A plan that has joined leaves before it is destroyed; with the last one the memory goes. */
ls_status lsi_workspace_join(lsi_workspace *w, ls_plan *p, ls_err *err) LS_MUST_CHECK;
void lsi_workspace_leave(lsi_workspace *w, const ls_plan *p);
/* When no plan uses it. */
void lsi_workspace_release(lsi_workspace *w);

#endif
