/* init.h: weights that a run starts from, or that are evaluated: read by rank 0, the same on all ranks. */
#ifndef LS_TRAIN_INIT_H
#define LS_TRAIN_INIT_H

#include <jansson.h>

#include "train/session.h"

/* What train.init, train.init_skip and train.init_strict say, into the variables of rank 0 (the others do
 * nothing): parameters and buffers; optimiser state and counters stay as they are.  *note receives what was
 * loaded, {path, xxh3, loaded, kept}, for the summary: NULL where train.init is not set.  Shared with the
 * other ranks by whoever shares the variables next.  LS_INVALID when it does not fit the model. */
ls_status ls_init_weights(ls_session *s, json_t **note, ls_err *err) LS_MUST_CHECK;

/* All parameters and buffers from `path`, a checkpoint or a safetensors file, on all ranks; collective. */
ls_status ls_init_to_evaluate(ls_session *s, const char *path, ls_err *err) LS_MUST_CHECK;

#endif
