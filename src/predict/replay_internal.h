/* replay_internal.h: a program on ranks whose transfers have known costs: one rank, or all of them.
 *
 * All ranks do the same in the same order, so that all are taken through a deed before the next one.  A
 * transfer begins when the last rank has started it; transfers between machines follow one another, and so do
 * those within machines.  While they are under way they take a share of the processor where they have none of
 * their own: what a rank computes takes that much longer. */
#ifndef LS_PREDICT_REPLAY_INTERNAL_H
#define LS_PREDICT_REPLAY_INTERNAL_H

#include "predict/program.h"

typedef struct lsi_replay_args {
    const ls_program *program;
    const ls_transfer_cost *costs; /* of each transfer */
    const bool *inside;            /* of each transfer: it stays within machines */
    int32_t ranks, here;           /* that divide updates */
    int32_t copies;                /* ranks that are gone through: 1 where all are alike, else `ranks` */
    double crowding;               /* factor of what is computed */
    const double *jitter;          /* LS_JITTER_N percentiles of the same for a rank and step; NULL: none */
    const ls_machine *machine;     /* whose ranks are as unlike as it says; NULL: they are alike */
    uint64_t seed;
    int steps; /* that are counted, after as many of `settle` */
    int settle;
} lsi_replay_args;

typedef struct lsi_replay {
    double *step_s; /* of each counted step: between the ends of the last ranks; the caller's, `steps` long */
    double compute_s, core_s; /* of a step, the mean over ranks and counted steps */
    int64_t visits;           /* deeds of ranks that were gone through: what the replay costs */
    ls_predict_span *spans;   /* of the last step of rank 0, if not NULL: room for `most_spans` */
    int n_spans, most_spans;
} lsi_replay;

ls_status lsi_replay_run(const lsi_replay_args *a, lsi_replay *r, ls_err *err) LS_MUST_CHECK;
/* The factor of a rank in a step: drawn from percentiles, by its number, the step's and the seed alone. */
double lsi_replay_draw(const double *jitter, uint64_t seed, uint32_t step, uint32_t rank);

#endif
