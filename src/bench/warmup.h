/* warmup.h: when steps count: the rule that ends a warm-up.
 *
 * Enough is at least 3 steps and half a second, and then until steps no longer get faster: time is cut into
 * slices of an eighth of a second (or one step, where that is longer), and the median step of a slice must
 * not be more than 2 % below that of the slice before it.  After 3 seconds it is enough in any case, so that
 * a restless machine does not keep it going for ever. */
#ifndef LS_BENCH_WARMUP_H
#define LS_BENCH_WARMUP_H

#include <stdbool.h>

#define LS_WARMUP_STEPS   3
#define LS_WARMUP_SECONDS 0.5
#define LS_WARMUP_SLICE   0.125
#define LS_WARMUP_FALL    0.02
#define LS_WARMUP_MOST    3.0

enum { LS_WARMUP_KEPT = 64 }; /* steps of a slice whose median is taken: its last ones */

/* Start with {.began = now, .slice = now}. */
typedef struct ls_warmup {
    double began, slice; /* clock at the beginning of it all, and of the slice */
    int steps;
    double kept[LS_WARMUP_KEPT];
    int n;         /* steps of the slice */
    double median; /* of the slice before; 0: there is none yet */
    bool steady;   /* the last whole slice was not faster than the one before it */
} ls_warmup;

/* A step that took so long has just ended. */
void ls_warmup_note(ls_warmup *w, double step_s, double now);
/* Whether the next step may be the last of the warm-up. */
bool ls_warmup_enough(const ls_warmup *w, double now);

#endif
