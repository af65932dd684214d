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
    LS_SETTING_BOOL,   /* false or true */
    LS_SETTING_CHOICE, /* one of `choices`; its value is the position */
    LS_SETTING_TEXT,   /* any text */
    LS_SETTING_PERIOD  /* "1ep", "500st", "10000sa", "10min" or "none" */
} ls_setting_kind;

typedef struct ls_setting {
    const char *key; /* dotted: "model.classes" */
    ls_setting_kind kind;
    double value;        /* default */
    double lo, hi;       /* numbers: smallest and largest allowed */
    const char *choices; /* "sgd adam ..." */
    const char *help;
    const char *text; /* texts and periods: the default; else NULL */
} ls_setting;

typedef enum ls_period_unit {
    LS_PERIOD_NONE, /* never */
    LS_PERIOD_STEPS,
    LS_PERIOD_EPOCHS,
    LS_PERIOD_SAMPLES,
    LS_PERIOD_MINUTES
} ls_period_unit;

/* How often something happens, or how long it takes. */
typedef struct ls_period {
    double value; /* positive, except with LS_PERIOD_NONE */
    ls_period_unit unit;
} ls_period;

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
ls_status ls_trial_build_as(ls_step **out, const ls_trial *t, ls_config *cfg, const ls_build *how,
                            ls_err *err) LS_MUST_CHECK;

/* -- settings --------------------------------------------------------------------------------------------
 * Every trial has batch.per_rank, seed and optimizer.*; its own follow. */
ls_status ls_config_create(ls_config **out, const ls_trial *t, ls_err *err) LS_MUST_CHECK;
/* The same with the settings of `more` in front (a table ended by a NULL key). */
ls_status ls_config_create_with(ls_config **out, const ls_trial *t, const ls_setting *more,
                                ls_err *err) LS_MUST_CHECK;
void ls_config_destroy(ls_config *cfg); /* accepts NULL */
/* "key=value"; an unknown key or a value outside its range is LS_INVALID. */
ls_status ls_config_set(ls_config *cfg, const char *assignment, ls_err *err) LS_MUST_CHECK;
/* The same in two parts. */
ls_status ls_config_put(ls_config *cfg, const char *key, const char *value, ls_err *err) LS_MUST_CHECK;
int ls_config_count(const ls_config *cfg);
/* Setting i with its present value; `text` lives as long as the setting is not changed. */
ls_setting ls_config_at(const ls_config *cfg, int i);
/* Position of a key, or -1. */
int ls_config_find(const ls_config *cfg, const char *key);

#define LS_SETTING_SHOW_MAX 64
/* The value as a user writes it, exact: s->text, a part of `buf` (LS_SETTING_SHOW_MAX bytes) or a constant.
 */
const char *ls_setting_show(const ls_setting *s, char *buf);

/* Reading.  A key that is not in the trial's table is an error that stays in cfg and fails the build. */
int64_t ls_config_int(ls_config *cfg, const char *key);
double ls_config_real(ls_config *cfg, const char *key);
bool ls_config_bool(ls_config *cfg, const char *key);
/* Valid until the setting is changed; "" for an unknown key. */
const char *ls_config_text(ls_config *cfg, const char *key);
/* The name that is chosen, valid until the setting is changed. */
const char *ls_config_choice(ls_config *cfg, const char *key);
ls_period ls_config_period(ls_config *cfg, const char *key);
/* What optimizer.* says. */
ls_optimiser ls_config_optimiser(ls_config *cfg);
ls_status ls_config_status(const ls_config *cfg, ls_err *err);

#ifdef __cplusplus
}
#endif
#endif
