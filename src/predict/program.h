/* program.h: a rank's step as a list of what it does one after the other, and its replay on many ranks. */
#ifndef LS_PREDICT_PROGRAM_H
#define LS_PREDICT_PROGRAM_H

#include "predict/collective.h"
#include "predict/machine.h"

typedef enum ls_act_kind { LS_ACT_RUN, LS_ACT_START, LS_ACT_WAIT } ls_act_kind;

typedef struct ls_act {
    ls_act_kind kind;
    double seconds;   /* LS_ACT_RUN: of what does not change with the number of ranks */
    double owned_s;   /* LS_ACT_RUN: of what is divided among the ranks of a group (an owner's update) */
    int32_t transfer; /* LS_ACT_START, LS_ACT_WAIT */
    int32_t node;     /* that it comes from, of document `plan`; -1: none */
    int32_t plan;
} ls_act;

/* Who takes part in a transfer. */
typedef enum ls_scope {
    LS_SCOPE_ALL,
    LS_SCOPE_GROUP, /* ranks that have pieces of the same whole (parallel.shard_group) */
    LS_SCOPE_ACROSS /* ranks that have the same piece, of all groups */
} ls_scope;

typedef struct ls_program_transfer {
    ls_transfer_kind kind;
    ls_scope scope;
    double bytes; /* of the whole vector, in the wire's format, whatever the number of ranks */
    int32_t bucket;
    bool carried; /* its wait is at the start of the next step */
} ls_program_transfer;

typedef struct ls_program {
    ls_arena *arena;
    ls_act *acts;
    int32_t n_acts;
    ls_program_transfer *transfers;
    int32_t n_transfers;
    int64_t samples;         /* of a rank in a step */
    int32_t shard_group;     /* 0: all ranks are one */
    double found[LS_COST_N]; /* seconds by how they were found */
    double error;            /* relative, of the sum */
    bool own_exchange;
} ls_program;

typedef struct ls_program_args {
    const ls_document *plans; /* of a step, in their order, compiled for `ranks` ranks */
    int n_plans;
    int32_t ranks, shard_group;
    double wire_ratio; /* bytes on the wire over those of fp32: 1, or 0.5 for 16 bits */
    bool sharded;      /* bytes of collectives are those of pieces of `ranks` (zero1, fsdp) */
    bool overlap;      /* false: a transfer is waited for where it starts */
} ls_program_args;

/* Release in any case. */
ls_status ls_program_make(ls_program *p, const ls_program_args *a, const ls_machine *m,
                          ls_err *err) LS_MUST_CHECK;
void ls_program_release(ls_program *p); /* frees and zeroes */

typedef enum ls_engine { LS_ENGINE_CLOSED, LS_ENGINE_REPLAY, LS_ENGINE_SHARED, LS_ENGINE_N } ls_engine;

typedef struct ls_predict_args {
    const ls_program *program;
    const ls_machine *machine;
    const ls_network *network;
    ls_placement placement; /* with ranks, ranks_per_node; `node` may be NULL for contiguous */
    ls_algorithm algorithm;
    int engine;    /* an ls_engine, or -1: by rule */
    int replays;   /* steps that are replayed; 0: 21 */
    uint64_t seed; /* of the jitter that is drawn */
} ls_predict_args;

/* Where the time of a step goes, of the median rank: they add up to `mid`. */
typedef struct ls_predict_parts {
    double compute_s, core_s /* of the processor, for exchanges */, exposed_s /* waiting for bytes */,
        straggle_s /* waiting for slower ranks */;
} ls_predict_parts;

/* A moment of the step's timeline. */
typedef struct ls_predict_span {
    const char *lane; /* "compute", "exchange" */
    int32_t act, transfer;
    double begin_s, end_s;
} ls_predict_span;

typedef struct ls_prediction {
    int32_t ranks, nodes;
    double lo, mid, hi;                                 /* seconds of a step: the 90 % band */
    double samples_per_s, efficiency;                   /* against one rank alone, of the same batch a rank */
    double wire_bytes;                                  /* that the busiest machine sends in a step */
    double error_fit, error_spread, error_extrapolated; /* relative: what the band consists of */
    ls_engine engine;
    const char *why; /* that engine */
    ls_predict_parts parts;
} ls_prediction;

ls_status ls_predict(ls_prediction *out, const ls_predict_args *a, ls_err *err) LS_MUST_CHECK;
/* The same with the moments of one rank's step (without jitter): *spans is the caller's to ls_free. */
ls_status ls_predict_timeline(const ls_predict_args *a, ls_predict_span **spans, int *n,
                              ls_err *err) LS_MUST_CHECK;

#endif
