/* kept.h: the batches of an update that later stages of the step need again.
 *
 * The loader's memory is its own again with the next batch, so what is needed later is copied.  Copies take
 * as much as the samples of one update (of this rank), once for the whole run. */
#ifndef LS_TRAIN_KEPT_H
#define LS_TRAIN_KEPT_H

#include "data/loader.h"
#include "train/session.h"

typedef struct ls_kept_batch {
    ls_batch b;      /* `fields` are the copies; there are no indices */
    int64_t pending; /* samples of the update before it */
    void *copies[LS_SESSION_INPUTS];
    int64_t room; /* samples that the copies have room for */
} ls_kept_batch;

/* Start with {0}. */
typedef struct ls_kept {
    ls_kept_batch **batches;
    int n, cap;  /* used; made */
    size_t room; /* for pointers to them */
} ls_kept;

/* Adds a copy of b and of the first `samples` samples in it. */
ls_status ls_kept_add(ls_kept *k, const ls_dataset *data, const ls_batch *b, int64_t samples, int64_t pending,
                      ls_err *err) LS_MUST_CHECK;
/* Forgets all batches; their memory stays for the next. */
void ls_kept_clear(ls_kept *k);
void ls_kept_release(ls_kept *k);

#endif
