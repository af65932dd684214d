/* compile.h: plans of one part of a step, for those who train with several batches or ranks. */
#ifndef LS_EXEC_COMPILE_H
#define LS_EXEC_COMPILE_H

#include "lockstep/plan.h"
#include "passes/lower.h"

/* ls_plan_compile_take for a step that is spread as `how` says. */
ls_status ls_plan_compile_as(ls_plan **out, ls_graph *graph, const ls_strategy *how, ls_device *dev,
                             ls_state *state, ls_err *err) LS_MUST_CHECK;
/* The variables that such a plan would have get their places in `state`, and *stages what ls_plan_stages
 * would say, without a plan: for those whose plans are made over states beside it.  Takes the graph over. */
ls_status ls_plan_bind_take(ls_graph *graph, const ls_strategy *how, ls_state *state, int *stages,
                            ls_err *err) LS_MUST_CHECK;
/* The same of the model's own variables alone, weights and running statistics, each where `how` has it: for
 * those who compute with them and do not train.  The graph is a record of a training step. */
ls_status ls_plan_bind_model_take(ls_graph *graph, const ls_strategy *how, ls_state *state,
                                  ls_err *err) LS_MUST_CHECK;
/* The number of stages of the step that the plan is a part of; 1 for a whole one. */
int ls_plan_stages(const ls_plan *p);

/* What a run of a plan has to do, of the two kinds that take time: operations of nodes that compute much with
 * what they read (products, convolutions), and bytes that all others read and write. */
typedef struct ls_work {
    double flops, bytes;
} ls_work;
ls_work ls_plan_work(const ls_plan *p);

#endif
