/* batches.h: the sizes of all batches that a run meets, known before it begins.
 *
 * A plan is for batches of one size.  Beside the usual one there are those at the ends of epochs and of the
 * sets that are evaluated, those of ranks that get fewer samples than others or none at all, and that of
 * pictures.  What follows from damaged samples that are left out, nobody knows before. */
#ifndef LS_TRAIN_BATCHES_H
#define LS_TRAIN_BATCHES_H

#include "train/session.h"

typedef struct ls_batch_size {
    ls_mode mode;
    bool images; /* of pictures */
    int64_t n;
} ls_batch_size;

enum { LS_BATCH_SIZES = 16 };

/* Those beside batches of `usual` samples (in the reproducible mode: a shard's), each once; returns their
 * number.  They are those of all ranks: one rank alone may meet fewer. */
int ls_batches_odd(ls_batch_size out[LS_BATCH_SIZES], const ls_update *u, int64_t usual, int ranks,
                   const ls_run_sets *sets);

#endif
