/* pace.h: how fast each rank computes: a rank that is slow slows all of them, and only they can tell which.
 *
 * Every rank notes the time of its steps without what it spent with the exchange; now and then, and at the
 * end, all learn the means of all.  Rank 0 warns once of a rank that takes more than LS_PACE_SLOW times the
 * median, over LS_PACE_LEAST_S and more. */
#ifndef LS_TRAIN_PACE_H
#define LS_TRAIN_PACE_H

#include <jansson.h>

#include "comm/comm.h"

#define LS_PACE_SLOW 1.5
enum { LS_PACE_EVERY = 50 }; /* steps between two comparisons */
/* Seconds that a rank must have computed since the last comparison before it is called slow: below, an
 * interruption or two make the difference. */
#define LS_PACE_LEAST_S 1.0

typedef struct ls_pace {
    double recent_s, total_s; /* since the last comparison, and in all */
    int64_t recent, total;    /* steps */
    double *means;            /* of all ranks over all their steps, as of the last comparison; NULL: never */
    int ranks;
    bool warned;
} ls_pace;

void ls_pace_release(ls_pace *p);
/* A step in which this rank computed for so many seconds. */
void ls_pace_note(ls_pace *p, double compute_s);
/* Collective; with `comm` NULL it does nothing. */
ls_status ls_pace_compare(ls_pace *p, ls_comm *comm, ls_err *err) LS_MUST_CHECK;
/* The slowest of n ranks if it is slow, else -1; *factor: its time over the median.  `sorted`: room for n. */
int ls_pace_slow(const double *means, int n, double *sorted, double *factor);
/* [seconds of rank 0, ...]; empty before the first comparison. */
json_t *ls_pace_json(const ls_pace *p);

#endif
