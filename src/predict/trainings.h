/* trainings.h: trainings that were measured, and how many updates an accuracy takes at a batch.
 *
 * Nothing is said of a batch but what was measured at it, or between two neighbours that both reached the
 * accuracy with every seed. */
#ifndef LS_PREDICT_TRAININGS_H
#define LS_PREDICT_TRAININGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/interval.h"
#include "lockstep/status.h"

enum { LS_TRAININGS_NAME = 64, LS_TRAININGS_MAX = 4096 };

/* One of them. */
typedef struct ls_training {
    int64_t batch; /* samples of an update, of all ranks */
    int64_t seed;
    double best; /* the highest accuracy of any of its validations, 0 to 1 */
    bool reached;
    int64_t steps; /* that it took to get there */
    bool at_most;  /* nobody wrote down when: those of the whole training */
} ls_training;

/* Starts with `target` and `samples` alone. */
typedef struct ls_trainings {
    double target;   /* accuracy, 0 to 1 */
    int64_t samples; /* of an epoch; 0: not known */
    char from[512];  /* files and folders, for messages */
    ls_training *of;
    int n;
    size_t cap;
} ls_trainings;

void ls_trainings_release(ls_trainings *t); /* frees and zeroes */

/* Adds the rows of a CSV with the columns series, ranks, seed, batch, steps, end, epoch_1, best and final
 * (the file of bench/large_batch.py): those of `series`, which may be "" where the file has but one.
 * LS_INVALID, naming file, line, value and remedy: also for runs that are no whole epochs of t->samples,
 * which belong to other data. */
ls_status ls_trainings_csv(ls_trainings *t, const char *text, size_t n, const char *path, const char *series,
                           ls_err *err) LS_MUST_CHECK;
/* FILE.csv, or FILE.csv:SERIES. */
ls_status ls_trainings_open(ls_trainings *t, const char *word, ls_err *err) LS_MUST_CHECK;
/* One more; from a folder of `scale --train`: study/trained.h. */
ls_status ls_trainings_add(ls_trainings *t, const ls_training *one, ls_err *err) LS_MUST_CHECK;
/* Names where they come from. */
void ls_trainings_name(ls_trainings *t, const char *path);

/* How many seeds a batch was trained with, and how many of these reached the accuracy (with every training).
 */
typedef struct ls_seeds {
    int all, reached;
} ls_seeds;
ls_seeds ls_trainings_seeds(const ls_trainings *t, int64_t batch);
/* The largest batch that all of its seeds reached the accuracy with; 0: none. */
int64_t ls_trainings_limit(const ls_trainings *t);
/* The next larger batch that was measured; 0: none.  After 0: the smallest. */
int64_t ls_trainings_next(const ls_trainings *t, int64_t batch);

typedef enum ls_reach { LS_REACH_UNKNOWN, LS_REACH_MEASURED, LS_REACH_INTERPOLATED } ls_reach;

typedef struct ls_reached {
    ls_reach how;
    ls_interval steps;    /* the least, the median and the most of all seeds */
    bool at_most;         /* fewer may do */
    int64_t below, above; /* the neighbours of one that is interpolated */
    int seeds;
    char why[768]; /* of one that is not known */
} ls_reached;

void ls_trainings_ask(const ls_trainings *t, int64_t batch, ls_reached *out);

#endif
