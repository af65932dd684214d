/* alternatives.h: what a rank would take under other settings, found by compiling the step with them
 * (outline.h): strategies, batches, recompute. */
#ifndef LS_TRAIN_ALTERNATIVES_H
#define LS_TRAIN_ALTERNATIVES_H

#include "train/outline.h"

/* The settings of `cfg` but for these; NULL and 0: as they are.  Afterwards cfg is what it was. */
typedef struct ls_alternative {
    const ls_trial *trial;
    ls_config *cfg;
    ls_outline_options how; /* those who count bytes of several do not time kernels, whatever it says */
    const char *strategy, *recompute;
    int64_t batch; /* of a rank */
    int64_t width; /* model.width */
} ls_alternative;

/* Compiles it.  Release *x in any case. */
ls_status ls_alternative_open(const ls_alternative *a, ls_outline *x, ls_err *err) LS_MUST_CHECK;
/* Bytes of a rank; 0 where it cannot be compiled. */
size_t ls_alternative_bytes(const ls_alternative *a);
/* What a rank has of batch.global; 0: that is not set. */
int64_t ls_alternative_share(const ls_alternative *a);
/* The largest batch, of at most `most` samples, with which a rank takes no more than `limit`, and what it
 * takes then.  0: not even one sample, and *bytes is what that takes (0: it cannot be compiled). */
int64_t ls_alternative_largest(const ls_alternative *a, size_t limit, int64_t most, size_t *bytes);
/* The largest model.width (a multiple of model.heads where there are heads) with which a rank takes no more
 * than `limit`, all else as it is; 0: none does.  -1: the trial has no such setting. */
int64_t ls_alternative_widest(const ls_alternative *a, size_t limit);

/* The strategies that there are, separated by spaces, and the next of such a list; false at its end. */
const char *ls_alternative_strategies(ls_config *cfg);
bool ls_alternative_next(const char **list, char *name, size_t size);

#endif
