/* measure.h: timing steps the way results are quoted: warm up, keep every sample, give the spread.
 *
 * Several subjects are timed in turns, a few steps each, so that what else the machine does strikes all of
 * them.  Where ranks measure together they take the same number of steps, without a word between them beyond
 * what their steps exchange anyway: a step carries the wish of a rank to stop to all others. */
#ifndef LS_BENCH_MEASURE_H
#define LS_BENCH_MEASURE_H

#include <stdbool.h>

#include "base/stats.h"
#include "lockstep/status.h"

/* Seconds of all steps of a subject up to now in which its rank did not compute. */
typedef struct ls_spent {
    double exposed_s; /* with the exchange and nothing else */
    double waiting_s; /* of these: until other ranks had come that far */
    double data_s;    /* waiting for samples */
} ls_spent;

typedef struct ls_subject {
    /* One step.  *last: in, whether this rank has had enough; out, whether any rank has. */
    ls_status (*step)(void *ctx, bool *last, ls_err *err);
    ls_spent (*spent)(void *ctx); /* NULL: nothing is spent so */
    void *ctx;
    /* Ends what steps have left under way, before another subject's turn; NULL: they leave nothing. */
    ls_status (*rest)(void *ctx, ls_err *err);
} ls_subject;

enum { LS_TURN_MAX = 1000 };

typedef struct ls_measure_args {
    int steps;      /* timed steps of each subject; 0: as many as fit `seconds`, at least 5 */
    double seconds; /* of all subjects together; 0: 5 */
    int turn;       /* steps of a subject in a row where there are several; 0: 4; at most LS_TURN_MAX.  The
                     * same on all ranks */
    /* Called between steps, outside the timing, with the phase ("warm-up", "timing"), the steps done and
     * the planned number (0: unknown); may be NULL. */
    void (*progress)(void *ctx, const char *phase, int done, int planned);
    /* Called once, when timing is about to start: brings the ranks together and sets *zero to the moment of
     * this rank's clock from which all of them count.  NULL: now. */
    ls_status (*start)(void *ctx, double *zero, ls_err *err);
    void *ctx;
} ls_measure_args;

/* The timed steps of this rank, one by one, in seconds. */
typedef struct ls_measure {
    int warmup_steps, steps;
    double *begin_s, *end_s; /* since `zero` */
    double *exposed_s, *waiting_s, *data_s;
    double allocs_per_step; /* allocations of the whole process during the timed steps of all subjects */
    double stolen;          /* share of the machine's processors that its host gave to others meanwhile
                               (base/machine.h) */
    double *room;           /* all of the above lie there */
} ls_measure;

/* Warms up each subject (bench/warmup.h), then times steps one by one; out[i] is for subject i.  Release them
 * in any case. */
ls_status ls_measure_subjects(const ls_subject *subjects, int n, const ls_measure_args *args, ls_measure *out,
                              ls_err *err) LS_MUST_CHECK;
void ls_measure_release(ls_measure *m); /* frees and zeroes */

#endif
