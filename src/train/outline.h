/* outline.h: the training plans of one rank, compiled and not to be run.
 *
 * They are those that a run would have, with kernels, order and lifetimes, but the other ranks are not there,
 * and memory is counted and not taken (ls_device.unbacked).  So questions can be answered before anything
 * begins: what a step computes, what it takes, and what would fit. */
#ifndef LS_TRAIN_OUTLINE_H
#define LS_TRAIN_OUTLINE_H

#include "exec/peers.h"
#include "passes/lower.h"
#include "train/batches.h"

enum { LS_OUTLINE_PLANS = 13, LS_OUTLINE_ODD = 48 };

typedef struct ls_outline_plan {
    ls_plan *plan;
    const char *part; /* "step", or "gradients" and "update"; and "evaluation" */
    int stage;
    int64_t runs; /* in a step */
} ls_outline_plan;

/* What is computed again in the backward pass, and what that means. */
typedef struct ls_recompute_choice {
    ls_units units;
    int n_units, n_chosen;    /* that the model has, and that are computed again */
    bool by_limit;            /* train.recompute=auto with a memory.limit */
    size_t bytes_kept;        /* of all, if nothing were computed again; 0: nobody has asked */
    double flops_kept;        /* of a step, the same */
    double extra_time;        /* of a step, as a share of what it would take without; 0: nobody has asked */
    const char *first, *last; /* names of the first and the last of them; the step's */
} ls_recompute_choice;

typedef struct ls_outline_options {
    int ranks;
    int here;               /* of them on each machine; 0: all on one */
    int threads;            /* of each; 0: a default as if those of a machine were on this one */
    bool untimed;           /* kernels that were never timed here are taken by rule */
    bool compares;          /* also what it would be if nothing were computed again, and how much faster */
    bool evaluates;         /* with the plan of an evaluation, which a run that validates holds as well */
    bool tests_only;        /* that alone, and no more variables than it needs; with `evaluates` */
    ls_run_sets sets;       /* with plans for all odd batches that a run over these meets; {0}: none */
    const ls_placement *as; /* what ranks keep in pieces; NULL: as the settings say */
} ls_outline_options;

/* What a trial records for batches of another size than the usual. */
typedef struct ls_outline_odd {
    ls_batch_size size;
    ls_graph *record;
} ls_outline_odd;

typedef struct ls_outline {
    ls_device *dev;
    ls_state *state;
    ls_peers *peers; /* NULL: plans exchange nothing */
    ls_step *step;
    ls_graph *record;
    ls_graph *evaluation;                    /* the record of an evaluation; NULL: none */
    ls_outline_plan plans[LS_OUTLINE_PLANS]; /* in the order in which they run */
    int n_plans, n_stages;
    ls_outline_odd odd[LS_BATCH_SIZES];
    int n_odd;
    ls_plan *odd_plans[LS_OUTLINE_ODD]; /* of them, which only take memory */
    bool odd_lanes[LS_OUTLINE_ODD];     /* lanes have each their own */
    int n_odd_plans;
    int ranks, here; /* in all, and of a machine */
    bool tests_only;
    int spare;     /* places for plans of sizes that nobody knows before */
    int lanes;     /* of the reproducible mode: threads that have plans for gradients of their own; else 0 */
    int64_t batch; /* samples that a plan is for */
    ls_recompute_choice recompute;
} ls_outline;

/* What the settings say, for `o->ranks` ranks.  Release in any case. */
ls_status ls_outline_open(ls_outline *x, const ls_trial *trial, ls_config *cfg, const ls_outline_options *o,
                          ls_err *err) LS_MUST_CHECK;
void ls_outline_release(ls_outline *x);

/* Of a rank: all plans with their variables and exchanges. */
ls_plan_memory ls_outline_memory(const ls_outline *x);
/* The part of it that variables take, this rank's: what is there between steps. */
size_t ls_outline_persistent(const ls_outline *x);
/* Of the host, beside a device that has memory of its own. */
size_t ls_outline_staging(const ls_outline *x);
/* Of a whole step. */
double ls_outline_flops(const ls_outline *x);

#endif
