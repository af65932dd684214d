/* loader.h: batches of samples, read ahead by threads.
 *
 * A loader walks a data set epoch after epoch without end.  Worker threads fill a ring of batches; the caller
 * takes them in order.  What is in a batch follows from the options and from its number alone: not from the
 * number of workers, nor from timing.  One thread at a time may call a loader. */
#ifndef LS_DATA_LOADER_H
#define LS_DATA_LOADER_H

#include "data/data.h"

typedef enum ls_on_error {
    LS_ON_ERROR_STOP, /* a damaged sample ends the loading */
    LS_ON_ERROR_SKIP, /* it is named in the log and left out; the batch is shorter by one */
} ls_on_error;

/* Where a loader has the memory of its batches from.  Zeroed and aligned to 64 bytes; NULL: there is none. */
typedef struct ls_loader_memory {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *p);
    void *ctx;
} ls_loader_memory;

/* Start with {0}. */
typedef struct ls_loader_options {
    int64_t batch; /* samples per rank and step, at least 1 */
    int n_workers; /* 0: ls_loader_next reads by itself */
    int depth;     /* batches made ahead of the one in use; 0: 4 */
    int held;      /* batches before the one in use that stay as they are, for a device that reads late */
    ls_loader_memory memory; /* alloc NULL: the host's */
    bool shuffle;            /* order by ls_order_at, else as stored */
    bool augment;            /* for training: the set's random changes, keyed by seed, epoch and position */
    uint64_t seed;
    /* A global batch is n_ranks * batch consecutive positions of the epoch (fewer at its end, unless
     * drop_last).  Each rank takes one contiguous part of it, cut as by ls_parallel_range: full batches give
     * rank r the positions from r * batch on, the last one is shared out evenly. */
    int rank, n_ranks; /* n_ranks 0: 1 */
    int64_t global;    /* samples of a global batch; 0: n_ranks * batch.  `batch` must hold any rank's part */
    /* 0, or: a global batch is cut evenly into so many shards, and a rank takes whole shards: a contiguous
     * range, as even as can be. */
    int64_t shards;
    /* Where to begin: samples passed by all ranks together over all epochs, epoch * count + position.  The
     * first global batch starts right there. */
    int64_t first;
    bool drop_last; /* leave out the short batch at the end of an epoch */
    ls_on_error on_error;
    int64_t max_skipped; /* more skipped samples in one epoch than this are an error all the same */
} ls_loader_options;

typedef struct ls_batch {
    void *const *fields; /* per field of the set: `batch` samples, of which n are filled and the rest zero */
    const int64_t *indices;  /* the n samples' indices in the set */
    int64_t n;               /* valid samples; 0 is possible at the end of an epoch and after skips */
    int64_t epoch, position; /* of the rank's first sample; position within the epoch */
    int64_t global_position; /* of the global batch's first sample within the epoch */
    int64_t global_n;        /* samples of all ranks (skipped ones included) */
} ls_batch;

typedef struct ls_loader ls_loader;

/* The samples [*lo, *hi) of a global batch of n that belong to a rank, and with `shards` (0: none) the shards
 * [*first, *end) they are; first and end may be NULL. */
void ls_loader_share(int64_t n, int64_t shards, int rank, int n_ranks, int64_t *lo, int64_t *hi,
                     int64_t *first, int64_t *end);

/* `d` must outlive the loader. */
ls_status ls_loader_create(ls_loader **out, const ls_dataset *d, const ls_loader_options *options,
                           ls_err *err) LS_MUST_CHECK;
/* At any moment; waits for the workers.  Accepts NULL. */
void ls_loader_destroy(ls_loader *l);

/* The next batch; its contents stay valid until options.held more were asked for, and then until the next
 * call.  After a failure every call fails alike. */
ls_status ls_loader_next(ls_loader *l, ls_batch *batch, ls_err *err) LS_MUST_CHECK;

/* The value of options.first with which a new loader would continue after the batch given last. */
int64_t ls_loader_position(const ls_loader *l);
/* Global batches in a whole epoch. */
int64_t ls_loader_batches_per_epoch(const ls_loader *l);
/* Time that ls_loader_next has spent waiting for data since the loader was made. */
double ls_loader_wait_seconds(const ls_loader *l);
/* Damaged samples this rank has left out; one that is met again in a later epoch counts again. */
int64_t ls_loader_skipped(const ls_loader *l);

#endif
