/* tune.h: choosing among implementations by measurement, once, and remembering the choice.
 *
 * The same problem gets the same implementation in every later run on this machine, so results stay identical
 * from run to run: choices are kept in a small text file (choices.h), one line "problem <tab> implementation"
 * each, in $LOCKSTEP_CACHE, $XDG_CACHE_HOME/lockstep or ~/.cache/lockstep.  The file's name carries what a
 * choice depends on (device, processor, thread count, library versions).  With LOCKSTEP_TUNE=off nothing is
 * timed, read or written and the guess is taken.
 *
 * A choice is written as soon as it was made.  One that another process wrote in the meantime wins, since
 * somebody may run with it already; what this process has given out stays what it is.  Where a candidate
 * could not be tried for a reason that passes, the choice is this process's alone. */
#ifndef LS_BACKEND_TUNE_H
#define LS_BACKEND_TUNE_H

#include "backend/backend.h"
#include "base/alloc.h"

typedef struct lsi_tuner lsi_tuner;

/* The file's name begins with `device` ("cpu-2") and has a number made from `fingerprint` (instruction set,
 * library versions), the processor and our version; the caller owns *out. */
ls_status lsi_tuner_create(lsi_tuner **out, const char *device, const char *fingerprint,
                           ls_err *err) LS_MUST_CHECK;
/* Accepts NULL. */
void lsi_tuner_destroy(lsi_tuner *t);

typedef enum lsi_outcome {
    LSI_RAN,
    LSI_CANNOT,     /* now and later: the problem has no such implementation, or it fails with all it needs */
    LSI_CANNOT_NOW, /* there is no memory for it, or no compiler */
} lsi_outcome;

typedef struct lsi_candidates {
    const char *problem; /* text without tabs or newlines that identifies the problem */
    int n;
    const char *const *names;
    int guess;                            /* taken where nothing is timed */
    lsi_outcome (*run)(void *ctx, int i); /* candidate i once, timed by the caller of this function */
    void *ctx;
    const ls_device *dev; /* whose user may want it to end, or to hear of it; NULL: nobody's */
} lsi_candidates;

/* The index of the candidate to use: remembered, or measured now.  Never fails: the guess in the worst case.
 */
int lsi_tune(lsi_tuner *t, const lsi_candidates *c);

/* Whether lsi_tune has given out a choice for the problem that was measured, now or in an earlier run. */
bool lsi_tuned(const lsi_tuner *t, const char *problem);

/* Reads choices from text; lines that do not have the form are skipped.  Apart for tests and fuzzing. */
void lsi_tuner_parse(lsi_tuner *t, const char *text, size_t n);

/* Tensors for a trial.  Between two runs of a kernel in a step, other kernels go through the caches; a few
 * copies of each tensor, used in turn, stand for that: small problems stay as near as they would be, large
 * ones come from memory. */
typedef struct lsi_ring {
    float *base;
    int64_t count; /* of one copy */
    int copies;
} lsi_ring;

/* How many copies tensors of so many floats in all should have. */
int lsi_ring_copies(int64_t floats);
/* Filled with small numbers; false when there is no memory. */
bool lsi_ring_make(lsi_ring *r, int64_t count, int copies);
float *lsi_ring_at(const lsi_ring *r, int turn);
void lsi_ring_free(lsi_ring *r);

#endif
