/* memory.h: what a run takes, added up over all its plans.
 *
 * ls_plan_memory_of tells it for a run with one plan.  Several plans have inputs and results of their own
 * each; what they compute in, they have in turn, and the largest of them counts (exec/workspace.h); variables
 * and exchanges are shared by all of them and count once. */
#ifndef LS_EXEC_MEMORY_H
#define LS_EXEC_MEMORY_H

#include "exec/peers.h"
#include "exec/state.h"

/* What the plan has for itself: inputs and fetched values. */
void ls_memory_add_plan(ls_plan_memory *m, const ls_plan *p);
/* The same of all of these, and what the largest computes in. */
void ls_memory_add_plans(ls_plan_memory *m, ls_plan *const *plans, int n);
/* Variables that are the state's own: this rank's part. */
void ls_memory_add_state(ls_plan_memory *m, const ls_state *s);
/* What all plans over the state have computed in, while one of them is left. */
void ls_memory_add_workspace(ls_plan_memory *m, ls_state *s);
/* What `lanes` of the reproducible mode would take that each have plans like these, beside the state of
 * these: for every lane the plans' own, and variables that it does not share. */
void ls_memory_add_lanes(ls_plan_memory *m, ls_plan *const *plans, int n, int lanes);
/* Memory of the host's beside a device that has its own, through which values of a plan pass; it is in none
 * of the sums. */
size_t ls_memory_staging(const ls_plan *p);
/* How a plan's values lie: the bytes of all of it, and the most that are in use at a time, which no layout is
 * below. */
typedef struct ls_plan_layout {
    size_t bytes, live;
} ls_plan_layout;
ls_plan_layout ls_memory_layout(const ls_plan *p);
/* Memory in which ranks exchange gradients. */
void ls_memory_add_comm(ls_plan_memory *m, size_t bytes);

#endif
