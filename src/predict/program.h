/* program.h: a rank's step as a list of what it does one after the other, and its replay on many ranks. */
#ifndef LS_PREDICT_PROGRAM_H
#define LS_PREDICT_PROGRAM_H

#include "predict/collective.h"
#include "predict/machine.h"

/* Who takes part in a transfer, or divides an update. */
typedef enum ls_scope {
    LS_SCOPE_ALL,
    LS_SCOPE_GROUP, /* ranks that have pieces of the same whole (parallel.shard_group) */
    LS_SCOPE_NODE,  /* ranks of a machine that keep variables once */
    LS_SCOPE_N
} ls_scope;

typedef enum ls_deed_kind { LS_DEED_RUN, LS_DEED_START, LS_DEED_WAIT } ls_deed_kind;

/* Nodes that are computed one after the other are one LS_DEED_RUN. */
typedef struct ls_deed {
    ls_deed_kind kind;
    double seconds;             /* LS_DEED_RUN: of what does not change with the number of ranks */
    double owned_s[LS_SCOPE_N]; /* LS_DEED_RUN: of what such ranks divide, were one to do it all */
    int32_t transfer;           /* LS_DEED_START, LS_DEED_WAIT */
    int32_t plan, first, n;     /* the nodes that it comes from, in document `plan`; n 0: none */
} ls_deed;

typedef struct ls_program_transfer {
    ls_transfer_kind kind;
    ls_scope scope;
    int32_t bucket;
    bool carried; /* its wait is at the start of the next step, and what was started last goes first */
    bool narrow;  /* between machines it has the wire's format */
    /* The tensors that travel, whole, and what an element takes: from them follow the bytes of the vector. */
    int32_t n_tensors;
    int64_t *counts;
    int32_t *sizes;
} ls_program_transfer;

typedef struct ls_program {
    ls_arena *arena;
    ls_deed *deeds;
    int32_t n_deeds;
    ls_program_transfer *transfers;
    int32_t n_transfers;
    int64_t samples;         /* of a rank in a step */
    int64_t batch;           /* that its nodes have at a time */
    int32_t ranks, here;     /* that its plans were compiled for; 0: nobody has said */
    int32_t shard_group;     /* 0: all ranks are one */
    double wire_ratio;       /* of narrow transfers between machines */
    double rest_s;           /* of a step in no node */
    double found[LS_COST_N]; /* seconds by how they were found */
    double error;            /* relative, of the sum */
    double given_s;          /* what a rank computes in a step, by ls_program_take; 0: what its nodes take */
    double scale;            /* by how much nodes were multiplied for it */
    bool own_exchange;
} ls_program;

typedef struct ls_program_args {
    const ls_document *plans; /* of a step, in their order, compiled for `ranks` ranks, `here` on a machine */
    int n_plans;
    int32_t ranks, here; /* here 0: all on one */
    int32_t shard_group; /* 0: all ranks are one */
    double wire_ratio;   /* bytes on the wire over those of fp32: 1, or 0.5 for 16 bits */
    bool overlap;        /* false: a transfer begins where it is waited for */
} ls_program_args;

/* Release in any case. */
ls_status ls_program_make(ls_program *p, const ls_program_args *a, const ls_machine *m,
                          ls_err *err) LS_MUST_CHECK;
void ls_program_release(ls_program *p); /* frees and zeroes */
/* What one rank computes in a step is known as a whole, from where it ran: all nodes are multiplied so that
 * they add up to it.  What ranks of a machine do to one another is in it, and so is no error of nodes: one
 * that the figure has goes into all predictions alike.  LS_INVALID where nothing is computed. */
ls_status ls_program_take(ls_program *p, double seconds, ls_err *err) LS_MUST_CHECK;

/* Ranks that take part in a scope, of so many, `here` of them on a machine. */
int32_t ls_program_members(const ls_program *p, ls_scope scope, int32_t ranks, int32_t here);
/* Bytes of a transfer's vector among so many members, as plans lay it out: in fp32 or what is gathered. */
double ls_program_bytes(const ls_program *p, int32_t transfer, int32_t members);
/* Bytes that a rank sends in a step, the mean over ranks, were each on a machine of its own
 * (ls_plan_traffic). */
double ls_program_traffic(const ls_program *p, int32_t ranks);
/* Seconds that a rank computes in a step; a rank alone does all of an update. */
double ls_program_compute(const ls_program *p, int32_t ranks, int32_t here);

typedef enum ls_engine { LS_ENGINE_CLOSED, LS_ENGINE_REPLAY, LS_ENGINE_SHARED, LS_ENGINE_N } ls_engine;

const char *ls_engine_name(ls_engine e);
bool ls_engine_from(const char *name, ls_engine *out);

typedef struct ls_predict_args {
    const ls_program *program;
    const ls_machine *machine;
    const ls_network *network;
    ls_job_placement placement; /* with ranks, ranks_per_node; `node` may be NULL for contiguous */
    ls_algorithm algorithm;
    int64_t samples; /* of all ranks in a step; 0: as many of each as `program` has */
    double alone_s;  /* that a rank alone takes for its share of them; 0: by `program` */
    int engine;      /* an ls_engine, or -1: by rule */
    int replays;     /* steps that are replayed; 0: 21 */
    uint64_t seed;   /* of the jitter that is drawn */
} ls_predict_args;

/* Where the time of a step goes: they add up to `mid`. */
typedef struct ls_predict_parts {
    double compute_s;  /* nodes, with crowding, and what lies around them */
    double core_s;     /* that computing takes longer because exchanges take the processor */
    double exposed_s;  /* waiting for bytes */
    double straggle_s; /* more, because ranks are not equally fast in a step */
} ls_predict_parts;

/* A moment of the step's timeline. */
typedef struct ls_predict_span {
    const char *lane;       /* "compute", "wait", "exchange" */
    int32_t deed, transfer; /* of "compute" and "wait"; of "wait" and "exchange" (-1: none) */
    double begin_s, end_s;
} ls_predict_span;

typedef struct ls_prediction {
    int32_t ranks, nodes;
    double lo, mid, hi;               /* seconds of a step: the 90 % band */
    double samples_per_s, efficiency; /* against one rank alone, of the same batch a rank */
    double wire_bytes;                /* that the busiest machine sends in a step */
    double error_fit, error_together, error_spread, error_extrapolated; /* relative: what the band is of */
    ls_engine engine;
    const char *why; /* that engine */
    ls_predict_parts parts;
} ls_prediction;

/* LS_INVALID where the program is of another kind of job: plans of one rank have no transfers, those for one
 * rank a machine are not those for several, and a hybrid of one group is fsdp. */
ls_status ls_predict(ls_prediction *out, const ls_predict_args *a, ls_err *err) LS_MUST_CHECK;
/* The same with the moments of one rank's step (without jitter): *spans is the caller's to ls_free. */
ls_status ls_predict_timeline(const ls_predict_args *a, ls_predict_span **spans, int *n,
                              ls_err *err) LS_MUST_CHECK;

#endif
