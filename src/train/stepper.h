/* stepper.h: from batches to updates.
 *
 * An update is made of one batch, or of `accumulate` consecutive ones whose gradients are added up; where an
 * epoch ends within an update, the update is made of what there is.  The gradient is in any case the mean
 * over the update's samples, of all ranks: a batch counts by its share of them.  Where the model trains in
 * stages, all of the update's samples go through one before any goes through the next.  Afterwards all ranks
 * have the same parameters, the same counters and the same metrics, so that they take the same decisions. */
#ifndef LS_TRAIN_STEPPER_H
#define LS_TRAIN_STEPPER_H

#include "data/loader.h"
#include "exec/profile.h"
#include "train/counters.h"
#include "train/kept.h"
#include "train/schedule.h"
#include "train/session.h"
#include "train/trace.h"

typedef struct ls_stepper {
    ls_session *session;
    const ls_schedule *schedule;
    const ls_dataset *data;
    uint64_t seed;
    int64_t update; /* samples of a full update */
    const ls_ruler *ruler;
    ls_trace *trace;     /* NULL: none; the stepper's own */
    ls_profile *profile; /* NULL: none; borrowed, and in the place of a trace */
    ls_kept kept;        /* batches of the update that goes on, when there are stages */
    ls_control control;  /* in: what this rank tells; out, after an update: what all did */
} ls_stepper;

/* Collective.  Computes the batch and brings the counters up to it.  *done: the parameters were updated; then
 * c->now holds the metrics of the whole update until the next batch is taken, and *lr the rate. */
ls_status ls_stepper_take(ls_stepper *s, ls_counters *c, const ls_batch *b, bool *done, double *lr,
                          ls_err *err) LS_MUST_CHECK;
void ls_stepper_release(ls_stepper *s);

#endif
