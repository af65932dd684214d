/* trace.h: a timeline of the first steps of a rank, as a file for Chrome's trace viewer.
 *
 * One array of complete events ("ph": "X"): a span per step, and within it a span for every node of the plan
 * and for the work on exchanges between two nodes.  The process of an event is the rank.  A file that cannot
 * be written costs a warning, not the run. */
#ifndef LS_TRAIN_TRACE_H
#define LS_TRAIN_TRACE_H

#include "lockstep/plan.h"

typedef struct ls_trace ls_trace;

/* trace-<rank>.json in `folder`, of the next `steps` steps. */
ls_status ls_trace_open(ls_trace **out, const char *folder, int rank, int64_t steps,
                        ls_err *err) LS_MUST_CHECK;
/* The rest accept NULL. */
void ls_trace_close(ls_trace *t);
void ls_trace_begin(ls_trace *t, int64_t step);
/* ls_plan_start; a step that is traced is over when it returns. */
ls_status ls_trace_start(ls_trace *t, ls_plan *p, ls_err *err) LS_MUST_CHECK;
void ls_trace_end(ls_trace *t);

#endif
