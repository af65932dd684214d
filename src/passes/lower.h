/* lower.h: the passes from the record to the program of one rank (list.h), and how a step is spread over
 * batches and ranks. */
#ifndef LS_PASSES_LOWER_H
#define LS_PASSES_LOWER_H

#include "graph/graph.h"

/* Which part of a step a plan is.  Where several batches make one update there are two: the gradients of one
 * batch, added up in variables "accumulated.<parameter>", and the update by what has been added up.  Input
 * "gradient.weight" multiplies a batch's gradients, and "gradient.keep" = 0 starts a new sum.  Where a loss
 * needs parameters after an earlier ls_minimise, the step has several stages, each with both parts: all
 * batches go through the first and its update is made, then all of them through the second. */
typedef enum ls_part { LS_PART_ALL, LS_PART_GRADIENTS, LS_PART_UPDATE } ls_part;

/* What of a model the ranks of a group keep in pieces, each rank one. */
typedef enum ls_sharding {
    LS_SHARD_NOTHING,
    LS_SHARD_STATE,  /* what optimisers remember; weights are whole everywhere */
    LS_SHARD_WEIGHTS /* weights, too: they are gathered where they are used */
} ls_sharding;

/* Whether gradients gather weights again, whose memory is then free in between. */
typedef enum ls_regather {
    LS_REGATHER_MOST, /* all but what was gathered last, with which gradients begin */
    LS_REGATHER_ALL,
    LS_REGATHER_NONE
} ls_regather;

/* What a plan does about gradients that are not finite (passes/guard.c). */
typedef enum ls_guard {
    LS_GUARD_NONE,   /* nothing: nobody looks at them */
    LS_GUARD_REPORT, /* the host gets to know */
    LS_GUARD_SKIP    /* and the update is left out, on all ranks alike */
} ls_guard;

/* Units of a record (ls_graph.units) by number.  Of more than LS_UNITS_LISTED only all can be meant. */
enum { LS_UNITS_LISTED = 1024 };
typedef struct ls_units {
    bool all;
    uint64_t bits[LS_UNITS_LISTED / 64];
} ls_units;
static inline bool ls_units_have(const ls_units *u, int32_t unit)
{
    if (unit < 1 || u->all) return u->all && unit > 0;
    return unit <= LS_UNITS_LISTED && (u->bits[(unit - 1) / 64] >> ((unit - 1) % 64) & 1) != 0;
}
static inline void ls_units_add(ls_units *u, int32_t unit)
{
    if (unit > 0 && unit <= LS_UNITS_LISTED) u->bits[(unit - 1) / 64] |= (uint64_t)1 << ((unit - 1) % 64);
}
static inline bool ls_units_any(const ls_units *u)
{
    uint64_t any = u->all;

    for (int i = 0; i < LS_UNITS_LISTED / 64; i++) any |= u->bits[i];
    return any != 0;
}

/* How a step is spread over batches and ranks; {0} is a whole step of one rank.  Nothing of it is known while
 * a trial is built, so that one record makes all plans of a shape. */
typedef struct ls_strategy {
    ls_part part;
    int stage; /* unless LS_PART_ALL: from 0 to below the graph's n_stages */
    /* Gradients, running statistics and scalar metrics become weighted sums over all ranks: input
     * "gradient.weight" is this rank's share of the samples (with LS_PART_UPDATE gradients are weighted
     * already, and "rank.weight" is for the rest).  The input "control", LS_CONTROL_SLOTS numbers of the
     * host's own, is summed without weight and fetched under the same name; so is "metrics" in the step's
     * last LS_PART_UPDATE, what the host has collected of the batches. */
    bool ranks;
    int64_t share_from;   /* ranks may share parameters of one ls_minimise that together have so many bytes */
    int64_t bucket_bytes; /* gradients are exchanged in buckets of about this size; 0: 8 MiB */
    /* Batch norms take their statistics over all ranks; inputs "rank.weight" (this rank's share of the
     * samples) and "rank.samples" (those of all). */
    bool sync_norm;
    double clip_norm; /* not 0: gradients of one ls_minimise are scaled down to this norm where theirs is
                         larger */
    int64_t update;   /* samples of an update, of all ranks; 0: not known */
    /* Not 0: an update's samples are so many shards, each with a plan for gradients of its own (input "shard"
     * is its number, "gradient.weight" its share of the samples), and sums follow the tree over them
     * (comm/collective.h).  `ranks` and `sync_norm` are then false, however many ranks there are. */
    int64_t shards;
    ls_sharding sharding; /* by rules that work element by element */
    int pieces;           /* that a tensor is cut into, one for each rank of the group; 1: nothing is cut */
    ls_group group;
    ls_regather regather;
    int prefetch;       /* units that are gathered ahead of the one in use */
    ls_units recompute; /* units whose activations are dropped and computed again in the backward pass */
    ls_dtype compute;   /* of products and what lies between them (passes/precision.c); LS_F32: everything */
    ls_guard guard;
    /* Losses are multiplied by it before they are differentiated, and gradients divided afterwards.  0: by
     * none.  Where scale_growth is not 0 it is the first one: halved after gradients that were not finite,
     * doubled after so many good steps in a row; then the guard is LS_GUARD_SKIP. */
    double loss_scale;
    int scale_growth;
    /* A run does not wait for sums of gradients that are on their way when it ends: the next one does, where
     * it needs the weights (passes/carry.c).  Of whole steps in which ranks keep all of a model. */
    bool carry;
    /* Not 0: the order of collectives of the plans that run beside it on other ranks (ls_graph.turns); a
     * plan that has another is refused. */
    uint64_t turns;
} ls_strategy;
enum { LS_CONTROL_SLOTS = 16, LS_METRIC_SLOTS = 16 };

/* Whether sums of gradients arrive in pieces; else every rank gets them whole, and takes its piece. */
static inline bool ls_strategy_scatters(const ls_strategy *how)
{
    return how->sharding != LS_SHARD_NOTHING && how->shards == 0 && how->ranks && how->group == LS_GROUP_ALL;
}

/* Bounds of a loss scale that changes. */
#define LS_SCALE_LEAST 1.0
#define LS_SCALE_MOST  16777216.0
/* Variables of a guarded step: checkpoints without them are no worse (ckpt/load.c). */
#define LS_SCALE_VAR   "loss_scale.scale"
#define LS_GOOD_VAR    "loss_scale.good" /* steps in a row without overflow, since the scale last changed */
#define LS_SKIPPED_VAR "updates.skipped" /* steps of which an update was left out */
/* Inputs: the rates that hold if one more step was left out than LS_SKIPS_KNOWN, with this before their
 * names. */
#define LS_RATE_AGAIN   "again."
#define LS_SKIPS_KNOWN  "skips.known"
#define LS_GUARD_BEFORE "guard.before" /* what stages before this one have found; 0: nothing */
#define LS_GUARD_RANK   "guard.rank"   /* LS_GUARD_SLOTS numbers that stand for this rank */
/* Fetched: f32 (LS_RESCALE_REPORT), of which 0 is the first parameter whose gradient is not finite, counted
 * from 1 over all calls of ls_minimise, or 0; and the sum of LS_GUARD_RANK over the ranks whose own gradients
 * are not. */
#define LS_GUARD_REPORT_NAME "guard"
enum { LS_GUARD_SLOTS = 16, LS_GUARD_UPDATES = 32 };

/* The first phase of the list: from the record to the program of one rank, without macros and dead nodes.
 * Errors are sticky in the graph, and name the line of the trial. */
void ls_passes_lower(ls_graph *g, const ls_strategy *how);

/* The same up to and with the pass called `last`, and in its phase. */
void ls_passes_lower_until(ls_graph *g, const ls_strategy *how, const char *last);

/* Parameters that the ranks of a machine may keep once. */
void ls_pass_homes(ls_graph *g, const ls_strategy *how);
/* Leaves what belongs to one part and stage of the step; counts the stages. */
void ls_pass_split(ls_graph *g, const ls_strategy *how);
/* In which types what is computed. */
void ls_pass_precision(ls_graph *g, const ls_strategy *how);
/* Losses times the loss scale. */
void ls_pass_loss_scale(ls_graph *g, const ls_strategy *how);
/* Batch norms over all ranks. */
void ls_pass_sync_norm(ls_graph *g);
/* Weights of which ranks have pieces, and gathers. */
void ls_pass_shard(ls_graph *g, const ls_strategy *how);
/* Expands `gradients`. */
void ls_pass_differentiate(ls_graph *g, const ls_strategy *how);
/* Clones of what units drop, for the backward pass. */
void ls_pass_recompute(ls_graph *g, const ls_strategy *how);
/* What a shard gives to the sums of all. */
void ls_pass_leaves(ls_graph *g, const ls_strategy *how);
/* Sums over ranks, in buckets. */
void ls_pass_parallel(ls_graph *g, const ls_strategy *how);
/* Expands `update` and `keep`: optimisers and what they remember. */
void ls_pass_optimise(ls_graph *g, const ls_strategy *how);
/* Updates that the next run makes. */
void ls_pass_carry(ls_graph *g, const ls_strategy *how);

#endif
