/* results.h: steps that are begun before the ones before them are over.
 *
 * On a device with queues the host may be ahead: it begins a step, and looks at its results when it has begun
 * the next.  On the others a step that was begun is over, and all this costs what ls_plan_run costs. */
#ifndef LS_EXEC_RESULTS_H
#define LS_EXEC_RESULTS_H

#include "lockstep/plan.h"

/* Whether a step that was begun may still be going on. */
bool ls_plan_is_queued(const ls_plan *p);

/* Begins a step.  At most two are on their way: it waits for the one before the last.  A failure may be that
 * of an earlier step, and one of this step may show later. */
ls_status ls_plan_start(ls_plan *p, ls_err *err) LS_MUST_CHECK;
/* The number of the step that was begun last, however it was. */
uint64_t ls_plan_runs(const ls_plan *p);
/* Waits until all that was begun is over, and returns what failed. */
ls_status ls_plan_join(ls_plan *p, ls_err *err) LS_MUST_CHECK;

/* Whether runs of the plan leave their updates to the next one. */
bool ls_plan_leaves_updates(const ls_plan *p);
/* Whether a run has left an update to the next one (passes/carry.c): sums are on their way, and variables are
 * not yet what they will be.  Whoever reads variables completes it first. */
bool ls_plan_carries(const ls_plan *p);
/* Whether a node has failed: nothing that was to be made of it is right, variables included. */
bool ls_plan_failed(const ls_plan *p);
/* Collective.  Makes that update, with the rates that the plan's inputs have now; nothing if there is none.
 * Any plan that trains will do. */
ls_status ls_plan_complete(ls_plan *p, ls_err *err) LS_MUST_CHECK;

/* The first bytes of fetched value `t` as that run left it, one of the last two where it has at most
 * LS_PLAN_RESULT bytes, else the last.  Waits until the run is over, and returns what failed; a result of
 * the first kind can be read also when a later run has found that another rank is gone. */
#define LS_PLAN_RESULT 1024
ls_status ls_plan_result(ls_plan *p, const ls_tensor *t, uint64_t run, void *to, size_t bytes,
                         ls_err *err) LS_MUST_CHECK;

/* When that run, a result of which was read, was over, in nanoseconds of ls_clock_ns.  Of devices with
 * queues. */
uint64_t ls_plan_over_at(const ls_plan *p, uint64_t run);

/* ls_plan_write_input from memory that stays as it is until the next step is over, or a result of it was
 * read. What the device gave (ls_staging_alloc) is taken fastest. */
void ls_plan_feed(ls_plan *p, const char *name, size_t offset, const void *from, size_t bytes);

#endif
