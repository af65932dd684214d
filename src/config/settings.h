/* settings.h: the one table of what a training run can be told, beside what its model adds.
 *
 * Reading of experiment files, checks, help, manual page, shell completion and docs/settings.md are all made
 * from it. */
#ifndef LS_CONFIG_SETTINGS_H
#define LS_CONFIG_SETTINGS_H

#include "lockstep/trial.h"

/* Ended by a NULL key.  batch.per_rank, seed, optimizer.* and the model's own come from lockstep/trial.h. */
extern const ls_setting ls_train_settings[];

typedef enum ls_setting_group { LS_SETTINGS_RUN, LS_SETTINGS_COMMON, LS_SETTINGS_MODEL } ls_setting_group;

/* `model` is NULL except in the group of a model; `from_model` says that the default is the model's, so that
 * s->value is only an example. */
typedef void (*ls_setting_visit)(void *arg, ls_setting_group group, const ls_trial *model, bool from_model,
                                 const ls_setting *s);
/* Every setting there is: the run's, those of every model, then each model's own, which may share keys. */
ls_status ls_settings_each(ls_setting_visit visit, void *arg, ls_err *err) LS_MUST_CHECK;

#endif
