/* settings.h: the one table of what a training run can be told, beside what its model adds.
 *
 * Reading of experiment files, checks, help and docs/settings.md are all made from it. */
#ifndef LS_CONFIG_SETTINGS_H
#define LS_CONFIG_SETTINGS_H

#include "lockstep/trial.h"

/* Ended by a NULL key.  batch.per_rank, seed, optimizer.* and the model's own come from lockstep/trial.h. */
extern const ls_setting ls_train_settings[];

#endif
