/* periods.h: when something that happens every so often is due. */
#ifndef LS_TRAIN_PERIODS_H
#define LS_TRAIN_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/trial.h"

/* How far a run is, in all units. */
typedef struct ls_moment {
    int64_t step, samples; /* done since the start of training */
    double minutes;        /* of wall time */
} ls_moment;

/* Whether a multiple of the period lies after `before` and not after `now`; epochs have epoch_samples
 * samples. For minutes `before` is the moment it last happened. */
bool ls_period_due(ls_period p, int64_t epoch_samples, ls_moment before, ls_moment now);

/* Whether the period has passed since `begun`. */
bool ls_period_over(ls_period p, int64_t epoch_samples, ls_moment begun, ls_moment now);

/* The period in steps of `batch` samples, rounded up; 0 for none.  Minutes have no steps: -1. */
int64_t ls_period_steps(ls_period p, int64_t epoch_samples, int64_t batch);

#endif
