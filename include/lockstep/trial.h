/* trial.h: a trial is a named model with its losses, optimisers and settings.
 *
 * Its `build` function writes the step with the calls of nn.h; what a user may change without a compiler is
 * in its table of settings, read back by key.  docs/add-a-trial.md shows a whole one. */
#ifndef LOCKSTEP_TRIAL_H
#define LOCKSTEP_TRIAL_H

#include "lockstep/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_config ls_config;

typedef enum ls_setting_kind {
    LS_SETTING_INT,
    LS_SETTING_REAL,
    LS_SETTING_BOOL,  /* false or true */
    LS_SETTING_CHOICE /* one of `choices`; its value is the position */
} ls_setting_kind;

typedef struct ls_setting {
    const char *key; /* dotted: "model.classes" */
    ls_setting_kind kind;
    double value;        /* default */
    double lo, hi;       /* numbers: smallest and largest allowed */
    const char *choices; /* "sgd adam ..." */
    const char *help;
} ls_setting;

typedef struct ls_trial {
    const char *name;
    const char *about;      /* one line */
    const char *networks;   /* "G D": parameters are counted by these first parts of their names; NULL: one
                               network, "model" */
    int64_t batch;          /* per rank, unless set otherwise */
    ls_optimiser optimiser; /* defaults of optimizer.* */
    const ls_setting *settings;                /* the trial's own, ended by a NULL key; NULL: none */
    void (*build)(ls_step *s, ls_config *cfg); /* errors are sticky in s and cfg */
} ls_trial;

/* The trials of this build, ended by NULL. */
extern const ls_trial *const ls_trials[];
/* LS_INVALID with the nearest name when there is none called `name`. */
ls_status ls_trial_find(const ls_trial **out, const char *name, ls_err *err) LS_MUST_CHECK;
/* Builds a step of batch.per_rank samples; the caller owns *out. */
ls_status ls_trial_build(ls_step **out, const ls_trial *t, ls_config *cfg, ls_mode mode,
                         ls_err *err) LS_MUST_CHECK;

/* -- settings --------------------------------------------------------------------------------------------
 * Every trial has batch.per_rank, seed and optimizer.*; its own follow. */
ls_status ls_config_create(ls_config **out, const ls_trial *t, ls_err *err) LS_MUST_CHECK;
void ls_config_destroy(ls_config *cfg); /* accepts NULL */
/* "key=value"; an unknown key or a value outside its range is LS_INVALID. */
ls_status ls_config_set(ls_config *cfg, const char *assignment, ls_err *err) LS_MUST_CHECK;
int ls_config_count(const ls_config *cfg);
/* Setting i with its present value. */
ls_setting ls_config_at(const ls_config *cfg, int i);

/* Reading.  A key that is not in the trial's table is an error that stays in cfg and fails the build. */
int64_t ls_config_int(ls_config *cfg, const char *key);
double ls_config_real(ls_config *cfg, const char *key);
bool ls_config_bool(ls_config *cfg, const char *key);
/* What optimizer.* says. */
ls_optimiser ls_config_optimiser(ls_config *cfg);
ls_status ls_config_status(const ls_config *cfg, ls_err *err);

#ifdef __cplusplus
}
#endif
#endif
