/* finite.h: notices that a training run has diverged. */
#ifndef LS_TRAIN_FINITE_H
#define LS_TRAIN_FINITE_H

#include "comm/comm.h"
#include "lockstep/plan.h"
#include "train/counters.h"

/* Where the run stands, for the message. */
typedef struct ls_finite_place {
    int64_t step; /* the one that was made last, from 1 */
    double lr;
    const char *checkpoints; /* the folder; its newest one is named as the place to go back to */
    bool checks_gradients;   /* train.check_gradients is on already: it is no advice */
    bool goes_on;            /* nor is train.on_nonfinite=warn */
} ls_finite_place;

/* LS_DIVERGED, because of gradients: `what` says of which, and where. */
ls_status ls_finite_fail(const char *what, const ls_finite_place *at, ls_err *err);
/* LS_DIVERGED when a metric is infinite or not a number; says which, where, at which learning rate, what is
 * left and what helps. */
ls_status ls_finite_metrics(const ls_metric_sums *m, const ls_finite_place *at, ls_err *err);
/* The same for the variables: a checkpoint of such numbers would be of no use. */
ls_status ls_finite_state(const ls_state *vars, const ls_finite_place *at, ls_err *err);
/* Adds to the message of a step whose metrics were not finite what is left to be seen, for the update has
 * been made and gradients are gone: how many variables are no longer finite, and the first of them; and the
 * first rank whose batch is not finite, and in which input.  One pass over both.  `batch` is the plan whose
 * inputs are those of the step, or NULL; all ranks of `comm` (NULL: one) come here together. */
ls_status ls_finite_explain(const ls_state *vars, const ls_plan *batch, ls_comm *comm, ls_err *trouble,
                            ls_err *err) LS_MUST_CHECK;

#endif
