/* session.h: what a run works with: the device, the variables and the plans over them.
 *
 * Plans are static, so every batch size needs its own: the full batch, what is left over at the end of an
 * epoch, and whatever a skipped sample leaves; for training and for evaluation.  They are made when they are
 * first needed, and all of them share one set of variables.  Where several batches make one update, a plan
 * for training ends with the sum of the gradients, and one more plan makes the update; a model that trains in
 * stages (lockstep/nn.h) has both for each of them. */
#ifndef LS_TRAIN_SESSION_H
#define LS_TRAIN_SESSION_H

#include <signal.h>

#include "comm/comm.h"
#include "data/data.h"
#include "data/loader.h"
#include "exec/compile.h"
#include "exec/peers.h"
#include "lockstep/trial.h"
#include "train/agenda.h"
#include "train/records.h"

/* A plan for batches of one size. */
typedef struct ls_batch_plan {
    ls_record *record;
    ls_step *step; /* the record's */
    ls_plan *plan;
    ls_mode mode;
    int stage;
    int64_t batch;
} ls_batch_plan;

enum {
    LS_SESSION_STAGES = 6, /* most stages of a step */
    LS_SESSION_PLANS = 16, /* plans that are kept */
    LS_SESSION_LRS = 16,   /* most optimisers with a rate of their own */
    LS_SESSION_INPUTS = 16 /* most inputs with data */
};

/* What ranks keep in pieces: of how many, and which of them do (train/placement.h). */
typedef struct ls_placement {
    ls_sharding sharding;
    int pieces;
    ls_group group;
    int prefetch; /* units of weights that are gathered ahead of the one in use */
    ls_regather regather;
    bool carry; /* updates of whole steps are left to the next one (passes/carry.c) */
} ls_placement;

/* What was chosen of that for the plan of a step, and why (train/prefetch.h). */
typedef struct ls_prefetch_choice {
    bool ahead_chosen, regather_chosen; /* else a setting said so */
    bool lowered;                       /* more units ahead would be better, but for memory.limit */
    int prefetch, gathers;              /* units ahead; gathers of a run of the plan */
    ls_regather regather;
    double bytes_s, flops_s;      /* what a rank gathers and computes in a second */
    double exposed, exposed_none; /* seconds of a run, and without gathering ahead */
    double wire;                  /* seconds of all gathers */
    bool kept_again;              /* a rank that keeps all weights would have to compute activations again */
    size_t limit, kept; /* memory.limit, and what a rank would take that keeps all weights; 0: not asked */
} ls_prefetch_choice;

typedef struct ls_session {
    const ls_trial *trial;
    ls_config *cfg;
    ls_records records;
    ls_device *dev;
    ls_state *state;
    ls_comm *comm;   /* NULL: one rank */
    ls_comm *self;   /* shards of one rank are added up by it; NULL: not needed */
    ls_peers *peers; /* NULL: plans exchange nothing */
    int rank, ranks;
    ls_placement place;
    ls_prefetch_choice gathers;
    int threads;
    int64_t update_samples;                /* of all ranks; 0: not known */
    ls_units recompute;                    /* of training steps: rank 0 has chosen, the others follow */
    size_t limit, planned;                 /* memory.limit (0: none), and what a rank takes of it at most */
    bool tests_only;                       /* it has no plans that train, and no variables for that */
    bool split;                            /* gradients and update are plans of their own */
    bool in_step;                          /* also plans for gradients exchange something */
    int n_stages;                          /* 1 unless split */
    ls_batch_plan plans[LS_SESSION_PLANS]; /* without shards the first n_stages are for the usual batch */
    int n_plans;
    ls_batch_plan updates[LS_SESSION_STAGES]; /* when split */
    double tell_at;                           /* when the user is told how far compiling is: */
    int nodes_done, nodes_all;
    int64_t batch;            /* the usual one */
    struct ls_shards *shards; /* the reproducible mode's; NULL: not in use */
    /* Becomes 1 when evaluations are to be given up (breaks.h); NULL, on all ranks: they are not. */
    const volatile sig_atomic_t *stop;
    bool unlabelled;           /* the data have no labels: zeros take their place, for evaluations alone */
    bool given_up;             /* the newest one was, on all ranks alike */
    double lr[LS_SESSION_LRS]; /* the optimisers' own rates, in the order of the plan's lr inputs */
} ls_session;

/* A plan of its own over `state`, for batches of one size; release in any case.  What `build` leaves alone
 * comes from the settings. */
ls_status ls_batch_plan_open(ls_batch_plan *p, ls_session *s, ls_build build, const ls_strategy *how,
                             int64_t batch, ls_state *state, ls_err *err) LS_MUST_CHECK;
void ls_batch_plan_release(ls_batch_plan *p);

/* The input and the result by which ranks tell one another what comes after the update. */
#define LS_CONTROL "control"
/* The same for what each rank has collected of the batches of an update. */
#define LS_METRICS "metrics"

/* Evaluations draw random numbers as if in this step, each sample by its place in the set: they do not depend
 * on when they happen or how many ranks there are, and no training step draws the same. */
#define LS_EVAL_STEP UINT32_MAX

/* How many samples a run goes through: the sizes of all its batches follow from that (train/batches.h). */
typedef struct ls_run_sets {
    int64_t train, test, val; /* 0: none */
    int64_t pictures;         /* samples that pictures show */
    bool anywhere;            /* the run may go on from any place in the training set */
    bool single;              /* every rank has a plan for one sample, whatever the sets are */
    int64_t skips;            /* most samples of a set that may be left out, each from any batch */
} ls_run_sets;

typedef struct ls_session_options {
    int threads;    /* 0: a default from the cores at hand */
    int64_t batch;  /* the usual one */
    int64_t update; /* samples of an update, of all ranks; 0: not known */
    bool split;
    int64_t shards;    /* not 0: the reproducible mode with so many; `batch` is then that of an update */
    ls_comm *comm;     /* borrowed; NULL: one rank */
    bool compile_only; /* for kernels' sake: plans and variables have no memory */
    bool evaluates;    /* there will be evaluations: what they take counts against memory.limit */
    bool tests_only;   /* and nothing else: no plan trains, and the model's own variables are all there are */
    ls_run_sets sets;  /* what batches there will be, which count as well; {0}: the usual ones alone */
    const volatile sig_atomic_t *stop; /* becomes 1 when compiling is to end with LS_CANCELLED; may be NULL */
    bool tell;                         /* a line on standard error when compiling takes long */
} ls_session_options;

/* -- precision.c: the settings precision, fp16.* and train.on_nonfinite ------------------------------------
 */

/* The type in which a step computes (setting precision). */
ls_dtype ls_session_compute(ls_config *cfg);
/* Whether products that are fp32 in a plan may round their operands (ls_device.tf32): unless that is what was
 * asked for, also those that precision=bf16 leaves. */
bool ls_session_rounds(ls_config *cfg);
/* Whether the loss scale changes as training goes on. */
bool ls_session_scales(ls_config *cfg);
typedef enum ls_on_nonfinite { LS_NONFINITE_STOP, LS_NONFINITE_SKIP, LS_NONFINITE_WARN } ls_on_nonfinite;
ls_on_nonfinite ls_session_on_nonfinite(ls_config *cfg);
/* What they want of a plan that trains. */
void ls_session_guard(ls_config *cfg, ls_strategy *how);

/* How the settings want a training step spread, for updates of so many samples; `ranks`: there are several.
 */
ls_strategy ls_session_strategy(ls_config *cfg, bool ranks, int64_t update, ls_part part);
/* How a plan of the session for batches is to be made. */
ls_strategy ls_session_how(const ls_session *s, ls_mode mode, int stage);

/* Whether ranks of a machine may share variables. */
bool ls_session_shares(ls_config *cfg);

/* How an update is made up. */
typedef struct ls_update {
    int64_t global, samples; /* of all ranks, in a batch and in an update */
    int64_t shards;          /* of an update in the reproducible mode; else 0 */
} ls_update;
ls_update ls_update_of(ls_config *cfg, int ranks);
/* The same for a pass that only tests.  In the reproducible mode its batches are those of one rank, whatever
 * the ranks: a kernel may add up in another order for another number of samples. */
ls_update ls_update_of_tests(ls_config *cfg, int ranks);
/* The options that follow from it: batch, update, split and shards. */
ls_session_options ls_update_options(const ls_update *u, ls_config *cfg);
/* Most samples that a pass over a set may leave out, by data.on_error and data.max_skipped. */
int64_t ls_session_skips(ls_config *cfg);
/* LS_INVALID where the update cannot be what the settings say.  For all who compile a training step: what
 * evaluates asks nobody. */
ls_status ls_update_check_settings(const ls_update *u, ls_config *cfg, ls_err *err) LS_MUST_CHECK;
/* LS_INVALID, with the settings it follows from, where updates cannot be made of a training set of so many
 * samples. */
ls_status ls_update_check(const ls_update *u, ls_config *cfg, int ranks, int64_t samples,
                          ls_err *err) LS_MUST_CHECK;

/* Opens the device and compiles the plans for the usual batch; variables get their initial values
 * from the experiment's seed.  Collective.  Release in any case; config and trial stay the caller's. */
ls_status ls_session_open(ls_session *s, const ls_trial *trial, ls_config *cfg, const ls_session_options *o,
                          ls_err *err) LS_MUST_CHECK;
void ls_session_release(ls_session *s);

/* The plan for batches of n samples, in training for one stage; it is made when there is none. */
ls_status ls_session_plan(ls_session *s, ls_mode mode, int stage, int64_t n, ls_batch_plan **out,
                          ls_err *err) LS_MUST_CHECK;
/* The plan of a stage that trains with the usual batch, or computes a shard of the usual size; of a session
 * that only tests, the plan which does that. */
const ls_batch_plan *ls_session_usual(const ls_session *s, int stage);
/* How many units of the model are computed again, and of how many. */
int ls_session_recomputed(const ls_session *s, int *of);
/* Memory of this rank that all plans made so far take, with their variables and exchanges. */
ls_plan_memory ls_session_memory(const ls_session *s);
/* Bytes that a rank sends in a step (ls_plan_traffic). */
double ls_session_traffic(const ls_session *s);
/* The part of it that ranks exchange gradients in or share: it is not the allocator's. */
size_t ls_session_comm_bytes(const ls_session *s);
/* One sample of every input that takes data; returns their number. */
int ls_session_fields(const ls_session *s, ls_field fields[LS_SESSION_INPUTS]);

/* What a model takes of a data set, known before anything is compiled.  Release in any case. */
typedef struct ls_needs {
    ls_step *step;
    struct ls_graph *graph;
    ls_field fields[LS_SESSION_INPUTS];
    int n_fields;
    int64_t classes;      /* labels are below; 0: any */
    bool labels_optional; /* the caller's to set: does without them */
} ls_needs;
ls_status ls_needs_find(ls_needs *n, const ls_trial *trial, ls_config *cfg, ls_err *err) LS_MUST_CHECK;
void ls_needs_release(ls_needs *n);

/* Checks that the data set has what the plan's inputs need: name, type and shape of a sample. */
ls_status ls_session_check_data(const ls_session *s, const ls_dataset *data, ls_err *err) LS_MUST_CHECK;
/* Where loaders of data for the session's plans have their memory from. */
ls_loader_memory ls_session_staging(const ls_session *s);
/* Copies n samples of every field into the plan's inputs of the same name; labels that are no field are 0.
 * A device with queues does so later: `from` stays as it is until the next run of the plan is over.  Where
 * this or one of the next fails, the plan's next run says so. */
void ls_session_feed(const ls_batch_plan *p, const ls_field *fields, int n_fields, void *const *from);
/* Every optimiser's rate becomes its own times `factor`, in the plan that makes the update; where that is
 * guarded, times `again` if one more update was left out than the plan was told (LS_SKIPS_KNOWN). */
void ls_session_write_lr(const ls_session *s, const ls_batch_plan *p, double factor, double again);
/* Writes a scalar input where the plan has it. */
void ls_session_write_scalar(const ls_batch_plan *p, const char *name, double value);
/* The numbers of this rank before a step, and those of all after it; without others nothing changes. */
void ls_session_write_control(const ls_batch_plan *p, const ls_control *c);
ls_status ls_session_read_control(const ls_batch_plan *p, ls_control *c, ls_err *err) LS_MUST_CHECK;
/* Sums of gradients become zero, or so many times what they are. */
ls_status ls_session_clear_sums(const ls_session *s, ls_err *err) LS_MUST_CHECK;
ls_status ls_session_scale_sums(const ls_session *s, double factor, ls_err *err) LS_MUST_CHECK;

#endif
