/* experiment.h: from a file, its bases, overrides and references to a trial with all settings.
 *
 * Files are YAML: groups of keys (optimizer: {lr: 0.1} is optimizer.lr), `defaults: [base.yaml]` for files
 * that are read first, ${a.b}, ${env:VAR} and ${env:VAR:-otherwise} for values from elsewhere ($${ is a
 * plain ${), null for the default.  docs/experiments.md describes them for users. */
#ifndef LS_CONFIG_EXPERIMENT_H
#define LS_CONFIG_EXPERIMENT_H

#include <stdio.h>

#include "base/alloc.h"
#include "lockstep/trial.h"

typedef struct ls_experiment {
    const ls_trial *trial; /* lives as long as the process */
    ls_config *cfg;        /* ls_train_settings, then those of lockstep/trial.h, then the trial's */
    uint64_t plugin_xxh3;  /* hash of the file that holds the trial; 0: it is one of this build */
} ls_experiment;

/* `name`: a path to a file (it has a '/' or ends in .yaml or .yml); or a file NAME.yaml in
 * $LOCKSTEP_EXPERIMENTS, the installed or the source tree's experiments/; or a trial, with its defaults: one
 * of this build, or a plug-in (it ends in .so); or NULL: the overrides are all there is, model.trial among
 * them. `overrides`: n times "key=value", where value is YAML.  Whatever is wrong with either is LS_INVALID
 * and says where: `a.yaml:3:8: unknown key "optimizer.lrr"; did you mean "optimizer.lr"?`.
 *
 * Exactly one of batch.per_rank and batch.global counts: the one set last.  Afterwards both are consistent:
 * with a global batch, batch.per_rank is its share for `ranks` and parallel.accumulate; without, batch.global
 * is 0.  Release in any case. */
ls_status ls_experiment_load(ls_experiment *out, const char *name, const char *const *overrides, int n,
                             ls_err *err) LS_MUST_CHECK;
void ls_experiment_release(ls_experiment *x); /* frees and zeroes */

/* Names of files in the settings, which are relative to the working directory, become absolute, so
 * that what is written of the experiment holds in any other.  (Plug-ins are so from the beginning.)
 */
ls_status ls_experiment_settle_paths(ls_experiment *x, ls_err *err) LS_MUST_CHECK;

/* Writes all values as a file that loads to the same ones.  Errors are left in `file` (ferror). */
void ls_experiment_write(const ls_experiment *x, FILE *file);

/* The trial of this build that `name` means: also with underscores, and by two older names.  LS_INVALID with
 * the nearest name when there is none. */
ls_status ls_experiment_trial(const ls_trial **out, const char *name, ls_err *err) LS_MUST_CHECK;

/* Whether `name` is a file among the experiments or a trial of this build. */
bool ls_experiment_is_known(const char *name);

/* The experiments that can be given by name, in the order of the alphabet, each once: names from `arena`, *n
 * of them. */
ls_status ls_experiment_names(ls_arena *arena, const char *const **names, int *n, ls_err *err) LS_MUST_CHECK;

/* batch.per_rank of so many ranks where batch.global is set: where they do not divide it, some take a sample
 * less.  0: it is not set, or cannot be shared (LS_INVALID says so). */
ls_status ls_experiment_share(ls_config *cfg, int64_t ranks, int64_t *share, ls_err *err) LS_MUST_CHECK;

/* data.train_range, data.test_range or data.val_range: false when it is not set (all samples). */
bool ls_experiment_range(const ls_experiment *x, const char *key, int64_t *first, int64_t *end);

#endif
