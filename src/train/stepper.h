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
#include "train/found.h"
#include "train/kept.h"
#include "train/lr_schedule.h"
#include "train/session.h"
#include "train/trace.h"

/* An update whose metrics are still on their way. */
typedef struct ls_underway {
    ls_plan *plan; /* NULL: none */
    uint64_t run;
    int64_t samples; /* of all ranks */
    int64_t update;  /* with those that were damaged */
    int64_t batch;  /* of this one: another batch may be another plan's, for which this one may be given up */
    ls_found found; /* when they have come */
} ls_underway;

typedef struct ls_stepper {
    ls_session *session;
    const ls_lr_schedule *schedule;
    const ls_dataset *data;
    uint64_t seed;
    int64_t update; /* samples of a full update */
    const ls_ruler *ruler;
    ls_trace *trace;                /* NULL: none; the stepper's own */
    ls_profile *profile;            /* NULL: none; borrowed, and in the place of a trace */
    ls_kept kept;                   /* batches of the update that goes on, when there are stages */
    ls_control control;             /* in: what this rank tells; out, after an update: what all did */
    int64_t damaged, damaged_epoch; /* samples of all ranks that were left out, and in which epoch */
    int64_t skips;  /* of the variable LS_SKIPPED_VAR: as far as the host knows; at first what it holds */
    int64_t begun;  /* samples of the newest update, of which the host may not know whether it was left out */
    double again;   /* the rate that the newest update had if so */
    double carried; /* the newest update's rate, by which the next run makes it if it was left to that */
    ls_found found; /* of the newest update that is over */
    const char *overflows; /* for tests (fault.h); NULL: none */
    bool ahead; /* the caller looks at metrics when it has begun the next step; else they are waited for */
    ls_underway left; /* then: of the newest update, on a device with queues; its settling is the caller's */
} ls_stepper;

/* Collective.  Computes the batch and brings the counters up to it.  *done: the parameters were updated; then
 * c->now holds the metrics of the whole update until the next batch is taken, and *lr the rate.  With s->left
 * they are not there: c->now and c->sums have nothing of them. */
ls_status ls_stepper_take(ls_stepper *s, ls_counters *c, const ls_batch *b, bool *done, double *lr,
                          ls_err *err) LS_MUST_CHECK;
/* Collective.  Makes the newest update if it was left to the next step (passes/carry.c): before anybody looks
 * at variables. */
ls_status ls_stepper_complete(ls_stepper *s, ls_err *err) LS_MUST_CHECK;
/* Waits for them, and adds them to `now`; the counters get to know whether the update was left out.  Before
 * the session is asked for a plan for another batch, and before the step after the next. */
ls_status ls_stepper_settle(ls_stepper *s, ls_underway *u, ls_counters *c, ls_metric_sums *now,
                            ls_err *err) LS_MUST_CHECK;
/* Adds a step's metrics to those of an epoch; not those of guarded steps that are not finite. */
void ls_stepper_join(const ls_stepper *s, ls_metric_sums *sums, const ls_metric_sums *now);
/* What the variable says, which a checkpoint may have brought. */
ls_status ls_stepper_count_skips(ls_stepper *s, ls_err *err) LS_MUST_CHECK;
void ls_stepper_release(ls_stepper *s);

#endif
