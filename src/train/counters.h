/* counters.h: where a run stands: all that a checkpoint must hold besides the variables.
 *
 * Order of samples, dropout, noise and learning rates are functions of these numbers, so a run that has them
 * and the variables goes on bit for bit. */
#ifndef LS_TRAIN_COUNTERS_H
#define LS_TRAIN_COUNTERS_H

#include <jansson.h>

#include "lockstep/status.h"
#include "train/agenda.h"
#include "train/ledger.h"
#include "train/lr_schedule.h"

enum { LS_MAX_METRICS = 16, LS_METRIC_NAME = 64 };

/* Sums over samples since the beginning of an epoch or of an evaluation. */
typedef struct ls_metric_sums {
    int n;
    char name[LS_MAX_METRICS][LS_METRIC_NAME];
    double sum[LS_MAX_METRICS]; /* of value times samples */
    int64_t samples;
} ls_metric_sums;

typedef struct ls_counters {
    int64_t step;     /* updates done */
    int64_t epoch;    /* the epoch that goes on, from 0 */
    int64_t position; /* samples of it that are done */
    int64_t pending;  /* samples whose gradients wait for the next update */
    /* Samples of an epoch, and of an update when the run began: what settings in steps count.  0: not known
     * (a checkpoint of an older version). */
    int64_t epoch_samples, step_samples;
    /* Steps of which an update was left out, their samples, by which schedules are late, and the loss scale
     * of the newest step; 0: there is none. */
    int64_t skipped, skipped_samples;
    double loss_scale;
    int64_t validations;
    double seconds;      /* of wall time before this process */
    ls_ledger ledger;    /* where they went */
    ls_metric_sums sums; /* of the epoch that goes on */
    ls_metric_sums now;  /* of the update that goes on */
    ls_plateau plateau;
    bool has_best;
    double best;
    int64_t best_step, since_best; /* since_best: validations without a better one */
    unsigned
        owed; /* bits 1 << ls_due: what was due after the last update and was given up, to be done first */
    double last[LS_DUE_PERIODS]; /* minutes: when each thing happened last; -1: not known */
} ls_counters;

/* Adds up two sums. */
void ls_metric_join(ls_metric_sums *to, const ls_metric_sums *more);
/* Adds the value of one batch of `samples` samples, which the caller counts: a step has several metrics. */
void ls_metric_add(ls_metric_sums *m, const char *name, double value, int64_t samples);
bool ls_metric_all_finite(const ls_metric_sums *m);
/* The mean over samples; NaN for a name that was never added. */
double ls_metric_mean(const ls_metric_sums *m, const char *name);

/* To and from a checkpoint.  NULL when memory runs out; LS_DATA when something is missing or of the wrong
 * type, naming it.  Doubles survive exactly. */
json_t *ls_counters_save(const ls_counters *c);
ls_status ls_counters_load(ls_counters *c, const json_t *from, ls_err *err) LS_MUST_CHECK;

#endif
