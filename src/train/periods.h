/* periods.h: lengths of a run: how far it is, and when something that happens every so often is due.
 *
 * What a run has done is measured in samples seen, so that it means the same after a resume with another
 * batch.  Settings in steps count steps of one fixed size, that of the run's first update. */
#ifndef LS_TRAIN_PERIODS_H
#define LS_TRAIN_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/trial.h"

/* The longest length that is counted, in steps or samples: integers up to it stay exact in a double. */
#define LS_PERIOD_MOST 1e15

/* What lengths are measured with: samples of an epoch, and of a step as settings mean it. */
typedef struct ls_ruler {
    int64_t epoch_samples, step_samples;
} ls_ruler;

/* How far a run is, in all units. */
typedef struct ls_moment {
    double steps;    /* ls_ruler_steps of the samples */
    int64_t samples; /* seen since the start of training */
    double minutes;  /* of wall time */
} ls_moment;

/* Steps of an epoch; the last one may be short. */
int64_t ls_ruler_epoch_steps(const ls_ruler *r);
/* Samples seen as steps: an epoch counts all its steps as whole ones, the epoch that goes on by samples.  A
 * run whose updates have the ruler's size has made just so many. */
double ls_ruler_steps(const ls_ruler *r, int64_t samples);
/* The fewest samples at which so many steps are reached: the inverse. */
int64_t ls_ruler_samples(const ls_ruler *r, double steps);
/* Updates of `update` samples that lead from the samples `from` to `to` or beyond; every epoch begins a new
 * one. */
int64_t ls_ruler_updates(const ls_ruler *r, int64_t from, int64_t to, int64_t update);

/* Whether a multiple of the period lies after `before` and not after `now`; epochs have epoch_samples
 * samples. For minutes `before` is the moment it last happened. */
bool ls_period_due(ls_period p, int64_t epoch_samples, ls_moment before, ls_moment now);

/* Whether the period has passed since `begun`. */
bool ls_period_over(ls_period p, int64_t epoch_samples, ls_moment begun, ls_moment now);

/* The period in steps of the ruler, rounded up; 0 for none.  Minutes have no steps: -1. */
int64_t ls_period_steps(ls_period p, const ls_ruler *r);

#endif
