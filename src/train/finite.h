/* finite.h: notices that a training run has diverged. */
#ifndef LS_TRAIN_FINITE_H
#define LS_TRAIN_FINITE_H

#include "lockstep/plan.h"
#include "train/counters.h"

/* Where the run stands, for the message. */
typedef struct ls_finite_place {
    int64_t step; /* the one that was made last, from 1 */
    double lr;
    const char *checkpoints; /* the folder; its newest one is named as the place to go back to */
} ls_finite_place;

/* LS_DIVERGED, because of gradients: `what` says of which, and where. */
ls_status ls_finite_fail(const char *what, const ls_finite_place *at, ls_err *err);
/* LS_DIVERGED when a metric is infinite or not a number; says which, where, at which learning rate, what is
 * left and what helps. */
ls_status ls_finite_metrics(const ls_metric_sums *m, const ls_finite_place *at, ls_err *err);
/* The same for the variables: a checkpoint of such numbers would be of no use. */
ls_status ls_finite_state(const ls_state *vars, const ls_finite_place *at, ls_err *err);

#endif
