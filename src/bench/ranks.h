/* ranks.h: the times of all ranks together.
 *
 * A step of a job lasts from when the last rank has begun it until the last rank has ended it: what one rank
 * alone sees says little of the others, and rank 0 times the number of ranks is not a measurement.  Every
 * rank's own figures are kept, too, so that the slow one can be found. */
#ifndef LS_BENCH_RANKS_H
#define LS_BENCH_RANKS_H

#include "bench/measure.h"
#include "comm/comm.h"

enum { LS_RANK_HOST_MAX = 64 };

/* What a rank says of its steps. */
typedef struct ls_rank_times {
    char host[LS_RANK_HOST_MAX];
    ls_spread step_s;   /* from begin to end, waiting for others included */
    ls_spread rate;     /* its own samples per second */
    double own_s;       /* median of the step less waiting for others: by this ranks are slow or fast */
    double exposed_s;   /* median */
    double data_wait_s; /* mean: a loader falls behind now and then, which a median would hide */
    double allocs_per_step;
    double stolen; /* of its machine's processors */
} ls_rank_times;

/* Iterations as other benchmarks print them: so many consecutive steps. */
enum { LS_ITERATION_STEPS = 10 };

/* Of all ranks, the same on all of them. */
typedef struct ls_job_times {
    int ranks, slowest, fastest;
    ls_rank_times *of; /* by rank */
    int steps;
    double *step_s;    /* of all ranks, one by one */
    ls_spread spread;  /* of these */
    ls_estimate mean;  /* by batches */
    int iterations;    /* steps / LS_ITERATION_STEPS; 1 with all steps, where there are fewer than those */
    double *iteration; /* the sum over ranks of each one's own samples per second */
    /* The largest of any rank. */
    double exposed_s, data_wait_s, allocs_per_step, stolen;
} ls_job_times;

/* Collective; `comm` NULL: one rank.  `samples`: of this rank in a step.  Release in any case. */
ls_status ls_job_times_gather(ls_job_times *out, const ls_measure *m, double samples, ls_comm *comm,
                              ls_err *err) LS_MUST_CHECK;
void ls_job_times_release(ls_job_times *t); /* frees and zeroes */

/* For ls_measure_args: collective; the moment from which all ranks count.  Ranks of one machine share a
 * clock; those of several count from a barrier, which they leave within microseconds of one another. */
ls_status ls_job_zero(ls_comm *comm, double *zero, ls_err *err) LS_MUST_CHECK;

/* How full the machines are. */
typedef struct ls_crowd {
    int hosts;
    int cores;           /* usable on the machine of rank 0 */
    bool oversubscribed; /* somewhere there are more threads than cores */
} ls_crowd;

/* Collective.  `threads`: of this rank; `cores`: usable on this machine, or 0 where this process knows only
 * its own (a batch system has bound it): then those of all its ranks count. */
ls_status ls_crowd_look(ls_crowd *out, ls_comm *comm, int threads, int cores, ls_err *err) LS_MUST_CHECK;

#endif
