/* measure.h: timing a plan the way results are quoted: warm up, keep every sample, give the spread. */
#ifndef LS_BENCH_MEASURE_H
#define LS_BENCH_MEASURE_H

#include "bench/stats.h"
#include "lockstep/nn.h"

typedef struct ls_measure_args {
    int steps;      /* timed steps; 0: as many as fit `seconds`, at least 5 */
    double seconds; /* 0: 5 */
    uint64_t seed;
    /* Called between steps, outside the timing, with the phase ("warm-up", "timing"), the steps done and
     * the planned number (0: unknown); may be NULL. */
    void (*progress)(void *ctx, const char *phase, int done, int planned);
    void *ctx;
} ls_measure_args;

typedef struct ls_measure {
    int warmup_steps, steps;
    ls_spread step_s;
    double allocs_per_step; /* allocations of the whole process during the timed steps */
} ls_measure;

/* Warms up for at least 3 steps and half a second, then times steps one by one.  Advances the random key
 * with every step. */
ls_status ls_measure_plan(ls_plan *p, const ls_measure_args *args, ls_measure *out,
                          ls_err *err) LS_MUST_CHECK;

#endif
