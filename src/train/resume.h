/* resume.h: going on with a run: what its settings were, what they are now, and what must not change. */
#ifndef LS_TRAIN_RESUME_H
#define LS_TRAIN_RESUME_H

#include "config/experiment.h"

/* A setting that differs. */
typedef struct ls_change {
    const char *key;
    char before[LS_SETTING_SHOW_MAX], now[LS_SETTING_SHOW_MAX];
} ls_change;

/* Goes through the settings that differ: *at is where to look from, 0 at first, and false means that there
 * are no more.  Where both have a global batch, the share of a rank follows from it and is none of them. */
bool ls_resume_next_change(ls_config *before, ls_config *now, int *at, ls_change *out);

/* LS_INVALID, with the reason and the way out, when a setting differs without which the run's counters and
 * variables mean nothing: the model's, the seed, what makes up the training set. */
ls_status ls_resume_check(const ls_experiment *before, const ls_experiment *now, ls_err *err) LS_MUST_CHECK;

/* Writes config.yaml of the run in `folder`: the settings in force.  Where it held others, those are kept as
 * config.1.yaml, config.2.yaml, ... */
ls_status ls_resume_write_config(const ls_experiment *x, const char *folder, ls_err *err) LS_MUST_CHECK;

#endif
