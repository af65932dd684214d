/* limit.h: memory.limit and train.recompute: what a rank may take, and what is done about it. */
#ifndef LS_TRAIN_LIMIT_H
#define LS_TRAIN_LIMIT_H

#include "train/outline.h"

/* The values of train.recompute. */
typedef enum ls_recompute_mode { LS_RECOMPUTE_NONE, LS_RECOMPUTE_UNIT, LS_RECOMPUTE_AUTO } ls_recompute_mode;
ls_recompute_mode ls_recompute_mode_of(ls_config *cfg);

/* Which units a session that is being opened computes again: with train.recompute=auto and a limit rank 0
 * finds it by compiling, and all do as it says.  Collective. */
ls_status ls_recompute_choose(ls_units *out, const ls_session *s, const ls_session_options *o,
                              ls_err *err) LS_MUST_CHECK;

/* memory.limit in bytes; 0: none.  LS_INVALID where it is no size. */
ls_status ls_memory_limit(ls_config *cfg, size_t *out, ls_err *err) LS_MUST_CHECK;

/* LS_INVALID, before anything is allocated, where a rank would take more than memory.limit: with
 * what is planned by kind, and which recompute, strategy or batch would fit, found by compiling them.
 * Without a limit it does nothing. */
ls_status ls_memory_check(const ls_trial *trial, ls_config *cfg, const ls_outline_options *o,
                          ls_err *err) LS_MUST_CHECK;

#endif
