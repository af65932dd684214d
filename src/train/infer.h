/* infer.h: what a model says of every sample of a data set, in a file, and for classifiers the classes
 * counted. */
#ifndef LS_TRAIN_INFER_H
#define LS_TRAIN_INFER_H

#include "train/evaluate.h"
#include "train/train.h"

typedef struct ls_infer_options {
    const char *weights; /* a checkpoint or a safetensors file */
    ls_split split;
    const char *out;    /* FILE.csv or FILE.npy; NULL: nothing is written */
    const char *output; /* the one that is wanted; NULL: all */
    bool probabilities; /* a classifier's scores go through a softmax before they are written */
} ls_infer_options;

/* LS_INVALID, before anything else is done, when `out` has another ending or cannot be written where it is.
 */
ls_status ls_infer_check(const ls_infer_options *o, ls_err *err) LS_MUST_CHECK;

/* *result, to be released by json_decref: the metrics, `samples`, `outputs` {name: values per sample}, of a
 * classifier `classification` (train/confusion.h).  NULL on ranks that do not lead.  Collective. */
ls_status ls_train_infer(const ls_experiment *x, const ls_train_options *o, const ls_infer_options *how,
                         json_t **result, ls_err *err) LS_MUST_CHECK;

#endif
