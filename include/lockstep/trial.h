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
#pragma GCC visibility push(default)

/* A configuration: the values of a trial's settings, each of the type and within the bounds that its table
 * gives.  `build` reads it by key and cannot change it. */
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

/* Rows of a table of settings: key, default, smallest, largest, help. */
/* clang-format off */
#define ls_int_setting(key, value, lo, hi, help)  {key, LS_SETTING_INT, value, lo, hi, NULL, help, NULL}
#define ls_real_setting(key, value, lo, hi, help) {key, LS_SETTING_REAL, value, lo, hi, NULL, help, NULL}
#define ls_bool_setting(key, value, help)         {key, LS_SETTING_BOOL, value, 0, 1, NULL, help, NULL}
/* `choices`: "sgd adam ..."; the first one is the default. */
#define ls_choice_setting(key, choices, help) {key, LS_SETTING_CHOICE, 0, 0, 0, choices, help, NULL}
#define ls_text_setting(key, value, help)     {key, LS_SETTING_TEXT, 0, 0, 0, NULL, help, value}
#define ls_period_setting(key, value, help)   {key, LS_SETTING_PERIOD, 0, 0, 0, NULL, help, value}
#define ls_settings_end                       {NULL, LS_SETTING_INT, 0, 0, 0, NULL, NULL, NULL}
/* clang-format on */

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

/* -- plug-ins --------------------------------------------------------------------------------------------
 * A trial outside of Lockstep is a shared object that an experiment names (`model.trial: ./mine.so`).  It
 * ends with LS_TRIAL_PLUGIN(trial), is compiled with -shared -fPIC, and is linked with nothing: what it calls
 * is in the program that loads it.  `lockstep new NAME` writes one.
 *
 * LS_TRIAL_API is the version of everything in these headers that a plug-in can see.  A plug-in loads where
 * the number is the one it was compiled with.  The number rises when something is removed, or changes its
 * meaning, its arguments or its layout; it stays when something is added.  Rebuilding is then enough unless
 * the notes of the release say more. */
#define LS_TRIAL_API 2

/* The sizes of what a plug-in lays out, in one number: headers that changed although LS_TRIAL_API did not are
 * noticed. */
#define LS_TRIAL_LAYOUT                                                                                      \
    (LS_SIZES3(ls_trial, ls_setting, ls_optimiser) + 7 * LS_SIZES3(ls_shape, ls_value, ls_at) +              \
     11 * LS_SIZES3(ls_conv_args, ls_linear_args, ls_batchnorm_args) +                                       \
     13 * LS_SIZES3(ls_pool_args, ls_embedding_args, ls_attention_args) +                                    \
     17 * LS_SIZES3(ls_init_rule, ls_period, ls_err))
#define LS_SIZES3(a, b, c) (sizeof(a) + 3 * sizeof(b) + 5 * sizeof(c))

/* What a plug-in shows.  The first two stay in their places in every version. */
typedef struct ls_trial_plugin {
    int api;
    size_t layout;
    const ls_trial *trial;
} ls_trial_plugin;

/* The one symbol that is looked for.  A plug-in defines it. */
extern const ls_trial_plugin lockstep_trial_plugin;
#define LS_TRIAL_PLUGIN(trial)                                                                               \
    const ls_trial_plugin lockstep_trial_plugin = {LS_TRIAL_API, LS_TRIAL_LAYOUT, &(trial)}

/* -- trials of a build -------------------------------------------------------------------------------- */

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

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
