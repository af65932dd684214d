/* rehearsal.h: the training step of an experiment on made-up data, for measuring.
 *
 * It is the step that `train` takes (stepper.h), on as many ranks, with the same plans and exchanges; only
 * the samples are made up once and lie in memory. */
#ifndef LS_TRAIN_REHEARSAL_H
#define LS_TRAIN_REHEARSAL_H

#include "config/experiment.h"
#include "train/stepper.h"

typedef struct ls_rehearsal {
    ls_session session;
    ls_update update;
    ls_schedule schedule;
    ls_stepper stepper;
    ls_counters c;
    ls_dataset *data; /* for what it says of the fields */
    void *fields[LS_SESSION_INPUTS];
    int n_fields;
} ls_rehearsal;

/* Collective; release in any case.  `x` and `comm` (NULL: one rank) stay the caller's and live longer. */
ls_status ls_rehearsal_open(ls_rehearsal *r, const ls_experiment *x, const char *device, int threads,
                            ls_comm *comm, ls_err *err) LS_MUST_CHECK;
void ls_rehearsal_release(ls_rehearsal *r);

/* One update; r->c.now are its metrics.  Collective.  `r` is an ls_rehearsal; for the rest see ls_subject. */
ls_status ls_rehearsal_step(void *r, bool *last, ls_err *err) LS_MUST_CHECK;
double ls_rehearsal_exposed_s(void *r);

#endif
