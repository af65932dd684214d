/* limit.h: memory.limit and train.recompute: what a rank may take, and what is done about it. */
#ifndef LS_TRAIN_LIMIT_H
#define LS_TRAIN_LIMIT_H

#include "train/outline.h"

/* The values of train.recompute. */
typedef enum ls_recompute_mode { LS_RECOMPUTE_NONE, LS_RECOMPUTE_UNIT, LS_RECOMPUTE_AUTO } ls_recompute_mode;
ls_recompute_mode ls_recompute_mode_of(ls_config *cfg);

/* memory.limit in bytes; 0: none.  LS_INVALID where it is no size. */
ls_status ls_memory_limit(ls_config *cfg, size_t *out, ls_err *err) LS_MUST_CHECK;

/* What a session may take of its device, and which units it computes again. */
typedef struct ls_memory_choice {
    size_t limit, planned; /* 0: none; what a rank takes of it at most */
    ls_units recompute;
} ls_memory_choice;

/* Before a session that is being opened allocates anything: where there is a memory.limit, rank 0 compiles
 * all plans that the run will have, for the machines as they are, chooses units by train.recompute, and all
 * do as it says.  LS_INVALID, on all ranks, where a rank would take more than the limit: with what is planned
 * by kind, and which recompute, strategy or batch would fit, found by compiling them.  Collective. */
ls_status ls_memory_settle(ls_memory_choice *out, const ls_session *s, const ls_session_options *o,
                           ls_err *err) LS_MUST_CHECK;

#endif
