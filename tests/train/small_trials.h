/* small_trials.h: every built-in trial at a size that trains in a moment, for tests that go through all. */
#ifndef LS_TESTS_TRAIN_SMALL_TRIALS_H
#define LS_TESTS_TRAIN_SMALL_TRIALS_H

#include <stdbool.h>

#include "graph/graph.h"

enum { SMALL_SETTINGS = 3 };

typedef struct small_trial {
    const char *trial;
    const char *like;                     /* not trained: it differs from that trial in sizes only */
    const char *settings[SMALL_SETTINGS]; /* that make it small; NULL after the last */
    const char *metric;                   /* its loss; NULL: there are batch norms, so ranks change it */
    bool large;                           /* even so */
} small_trial;

/* Those that are trained; the last one's trial is NULL. */
extern const small_trial small_trials[];

/* What it records for a training step of two samples, or of as many as are wanted; the caller's. */
ls_graph *small_trial_record(const small_trial *t);
ls_graph *small_trial_record_of(const small_trial *t, int64_t batch);

/* Checks that every trial of this build has a line, trained or like another. */
void small_trials_check(void);

#endif
