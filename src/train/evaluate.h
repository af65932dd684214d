/* evaluate.h: opening the data of an experiment and loading them, and the exact mean of every metric over a
 * data set. */
#ifndef LS_TRAIN_EVALUATE_H
#define LS_TRAIN_EVALUATE_H

#include "config/experiment.h"
#include "data/loader.h"
#include "train/counters.h"
#include "train/gather.h"
#include "train/session.h"

/* Which samples of an experiment. */
typedef enum ls_split { LS_SPLIT_TRAIN, LS_SPLIT_TEST, LS_SPLIT_VAL } ls_split;

/* Whether there are validation samples apart from those of the test. */
bool ls_train_has_val(ls_config *cfg);

/* The experiment's training set, its test set, or its validation set, where it has one.  Made-up data take
 * their fields from the model's inputs, and labels must be in the range the model gives its input "label". */
ls_status ls_train_data(const ls_experiment *x, const ls_needs *needs, ls_split split, ls_dataset **out,
                        ls_err *err) LS_MUST_CHECK;

/* The batches of this rank, in the order of training, from sample number `first` on (of all epochs);
 * `full_only`: an epoch ends with its last full batch.  `data` must outlive the loader. */
ls_status ls_train_loader(const ls_session *s, const ls_update *u, const ls_dataset *data, int64_t first,
                          bool full_only, ls_loader **out, ls_err *err) LS_MUST_CHECK;

/* Every sample of `data` once, in stored order, through evaluation plans; sums->samples says how many.
 * `gather` keeps what the trial's outputs are; NULL: they are not kept.  LS_CANCELLED, with s->given_up, when
 * a rank was asked to stop (breaks.h).  Collective. */
ls_status ls_evaluate(ls_session *s, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                      ls_err *err) LS_MUST_CHECK;

/* Makes sure that sums has every scalar result of the plan: ranks without samples must know them, too. */
void ls_declare_metrics(const ls_plan *p, ls_metric_sums *sums);
/* Adds all scalar results of a plan that has just run on n samples, and counts these. */
ls_status ls_collect_metrics(ls_plan *p, int64_t n, ls_metric_sums *sums, ls_err *err) LS_MUST_CHECK;
/* The same of that run (exec/results.h), which may have to be waited for. */
ls_status ls_collect_results(ls_plan *p, uint64_t run, int64_t n, ls_metric_sums *sums,
                             ls_err *err) LS_MUST_CHECK;

#endif
