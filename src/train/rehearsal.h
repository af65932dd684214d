/* rehearsal.h: the training step of an experiment, for measuring.
 *
 * It is the step that `train` takes (stepper.h), on as many ranks, with the same plans and exchanges.  The
 * samples are made up once and lie in memory, or they come from the experiment's files through the loader
 * that trains; then an epoch ends with its last full batch, so that all steps are alike. */
#ifndef LS_TRAIN_REHEARSAL_H
#define LS_TRAIN_REHEARSAL_H

#include "bench/measure.h"
#include "config/experiment.h"
#include "data/loader.h"
#include "train/stepper.h"

typedef struct ls_rehearsal {
    ls_session session;
    ls_update update;
    ls_lr_schedule schedule;
    ls_ruler ruler;
    ls_stepper stepper;
    ls_counters c;
    ls_dataset *data;
    ls_loader *loader;               /* NULL: made-up samples, and `data` is there for its fields alone */
    void *fields[LS_SESSION_INPUTS]; /* the made-up samples */
    int n_fields;
    ls_underway before; /* the step that was begun last: its metrics come when the next is begun */
} ls_rehearsal;

/* Collective; release in any case.  `x` and `comm` (NULL: one rank) stay the caller's and live longer.
 * `real`: on the experiment's own data, which must be there. */
ls_status ls_rehearsal_open(ls_rehearsal *r, const ls_experiment *x, int threads, bool real, ls_comm *comm,
                            ls_err *err) LS_MUST_CHECK;
void ls_rehearsal_release(ls_rehearsal *r);

/* One update is begun, and the one before it is over, whose metrics are r->c.now; behind the last, both are.
 * On devices without queues it is over, too.  Collective.  `r` is an ls_rehearsal; for the rest see
 * ls_subject. */
ls_status ls_rehearsal_step(void *r, bool *last, ls_err *err) LS_MUST_CHECK;
ls_spent ls_rehearsal_spent(void *r);
/* Makes an update that was left to the next step.  Collective. */
ls_status ls_rehearsal_rest(void *r, ls_err *err) LS_MUST_CHECK;
/* Samples of this rank in a step. */
int64_t ls_rehearsal_samples(const ls_rehearsal *r);

#endif
