/* shards.h: the reproducible mode: the same bits for any number of ranks and threads.
 *
 * An update's samples are cut into a fixed number of shards.  Each shard is computed by itself, by one thread
 * with kernels that follow from the problem alone; its plan ends with the leaf that it gives to the tree over
 * all shards, and the plan of the update begins with the sum (passes/leaves.c, parallel.c).  Who computes a
 * shard (which rank, which thread, when) therefore changes nothing.  Here shards are dealt to the threads of
 * a rank, which compute them side by side, each in a "lane": plans and buffers of its own beside the shared
 * parameters. */
#ifndef LS_TRAIN_SHARDS_H
#define LS_TRAIN_SHARDS_H

#include "data/loader.h"
#include "train/counters.h"
#include "train/gather.h"
#include "train/session.h"

typedef struct ls_shards ls_shards;

/* Which shards are whose. */
typedef struct ls_deal {
    int64_t n_shards, first, end; /* all, and this rank's */
    int64_t update, share;        /* samples of a full update, and most of a shard */
    int lanes;                    /* that this rank computes side by side */
} ls_deal;
/* Of updates of `update` samples, on `threads` threads of this rank (0: a default). */
ls_status ls_shards_deal(ls_deal *out, int64_t n_shards, int64_t update, int threads, int rank, int ranks,
                         ls_err *err) LS_MUST_CHECK;

/* The session is split and has one thread. */
ls_status ls_shards_create(ls_shards **out, ls_session *s, const ls_deal *deal, ls_err *err) LS_MUST_CHECK;
void ls_shards_destroy(ls_shards *x); /* accepts NULL */
const ls_deal *ls_shards_dealt(const ls_shards *x);

/* Makes a plan for shards of `batch` samples for every stage of the session, which has its variables; and
 * those plans. */
ls_status ls_shards_open_usual(ls_shards *x, ls_mode mode, int64_t batch, ls_err *err) LS_MUST_CHECK;
const ls_batch_plan *ls_shards_usual(const ls_shards *x, int stage);
/* Makes the plans of full updates, which otherwise the first step makes. */
ls_status ls_shards_prepare(ls_shards *x, ls_err *err) LS_MUST_CHECK;
/* Adds what lanes take: plans and variables. */
void ls_shards_add_memory(const ls_shards *x, ls_plan_memory *m);

/* What is computed of a batch; b holds this rank's samples (loader option `shards`). */
typedef struct ls_shard_work {
    ls_mode mode;
    int stage;
    const ls_dataset *data;
    const ls_batch *b;
    uint64_t seed;
    int64_t step;
    bool faults, overflows; /* for tests: gradients may be made infinite, and are (fault.h) */
} ls_shard_work;
/* Told of every shard that has samples, in their order: its plan has run, and its samples are [lo, hi) of the
 * global batch. */
typedef ls_status (*ls_shard_note)(void *ctx, int64_t shard, const ls_batch_plan *p, int64_t lo, int64_t hi,
                                   ls_err *err);
/* All shards of this rank.  `note` may be NULL. */
ls_status ls_shards_run(ls_shards *x, const ls_shard_work *w, ls_shard_note note, void *ctx,
                        ls_err *err) LS_MUST_CHECK;
/* A plan for evaluating n samples, as lanes have them. */
ls_status ls_shards_plan(ls_shards *x, int64_t n, ls_batch_plan **out, ls_err *err) LS_MUST_CHECK;

/* The means of all metrics over `data`; what plans gather goes to `gather`, which the caller finishes
 * (evaluate_shards.c). */
ls_status ls_shards_evaluate(ls_session *s, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                             ls_err *err) LS_MUST_CHECK;

#endif
