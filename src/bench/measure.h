/* measure.h: timing steps the way results are quoted: warm up, keep every sample, give the spread.
 *
 * Several subjects are timed in turns, a few steps each, so that what else the machine does strikes all of
 * them.  Where ranks measure together they take the same number of steps, without a word between them beyond
 * what their steps exchange anyway: a step carries the wish of a rank to stop to all others. */
#ifndef LS_BENCH_MEASURE_H
#define LS_BENCH_MEASURE_H

#include <stdbool.h>

#include "bench/stats.h"
#include "lockstep/status.h"

typedef struct ls_subject {
    /* One step.  *last: in, whether this rank has had enough; out, whether any rank has. */
    ls_status (*step)(void *ctx, bool *last, ls_err *err);
    /* Seconds of its steps up to now in which it did nothing but wait for other ranks; NULL: none. */
    double (*exposed_s)(void *ctx);
    void *ctx;
} ls_subject;

typedef struct ls_measure_args {
    int steps;      /* timed steps of each subject; 0: as many as fit `seconds`, at least 5 */
    double seconds; /* of all subjects together; 0: 5 */
    /* Called between steps, outside the timing, with the phase ("warm-up", "timing"), the steps done and
     * the planned number (0: unknown); may be NULL. */
    void (*progress)(void *ctx, const char *phase, int done, int planned);
    void *ctx;
} ls_measure_args;

typedef struct ls_measure {
    int warmup_steps, steps;
    ls_spread step_s;
    ls_spread exposed_s;    /* of a step */
    double allocs_per_step; /* allocations of the whole process during the timed steps of all subjects */
} ls_measure;

/* Warms up each subject for at least 3 steps and half a second, then times steps one by one; out[i] is for
 * subject i. */
ls_status ls_measure_subjects(const ls_subject *subjects, int n, const ls_measure_args *args, ls_measure *out,
                              ls_err *err) LS_MUST_CHECK;

#endif
