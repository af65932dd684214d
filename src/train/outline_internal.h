/* outline_internal.h: what the files of outlines share. */
#ifndef LS_TRAIN_OUTLINE_INTERNAL_H
#define LS_TRAIN_OUTLINE_INTERNAL_H

#include "exec/kernel_times.h"
#include "train/outline.h"

/* What one compilation after the other needs. */
typedef struct lsi_outlining {
    ls_outline *x;
    ls_config *cfg;
    ls_update u;
    ls_placement place;
    int threads;
    bool compares;
    int64_t skips;          /* ls_run_sets.skips */
    ls_kernel_times *times; /* of this machine; NULL: nobody wants to know how long a step takes */
} lsi_outlining;

/* How a part of the step is made with these units computed again. */
ls_strategy lsi_outline_strategy(const lsi_outlining *o, ls_part part, int stage, const ls_units *again);
/* Compiles all plans anew; `odd`: also those for batches of other sizes than the usual. */
ls_status lsi_outline_compile(const lsi_outlining *o, const ls_units *again, bool odd,
                              ls_err *err) LS_MUST_CHECK;
/* What plans for odd batches take beside the others. */
size_t lsi_outline_odd_bytes(const ls_outline *x);
/* Compiles what the settings say, with the choice of what is computed again (outline_recompute.c). */
ls_status lsi_outline_choose(lsi_outlining *o, ls_err *err) LS_MUST_CHECK;

#endif
