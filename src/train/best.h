/* best.h: the metric by which a run tells better from worse: for the best checkpoint, an early stop and a
 * rate that falls on a plateau. */
#ifndef LS_TRAIN_BEST_H
#define LS_TRAIN_BEST_H

#include "lockstep/trial.h"

typedef struct ls_best {
    const char *name; /* without "val/"; the setting's own text */
    bool larger;      /* is better */
} ls_best;

/* What train.best_metric and train.best_mode say.  LS_INVALID, with the metrics that the model's validation
 * has, when it is none of them; unless nothing depends on it and it is the default. */
ls_status ls_best_open(ls_best *b, const ls_trial *trial, ls_config *cfg, ls_err *err) LS_MUST_CHECK;

/* Whether more of a metric of that name is better.  Words of it that mean an error (loss, err, dist, ...) say
 * no, words that mean a success (acc, top, auc, f1, ...) say yes; without either, no. */
bool ls_best_is_larger(const char *name);
bool ls_best_better(const ls_best *b, double value, double than);

#endif
