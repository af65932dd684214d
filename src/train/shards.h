/* shards.h: the reproducible mode: the same bits for any number of ranks and threads.
 *
 * An update's samples are cut into a fixed number of shards.  Each shard is computed by itself, by one thread
 * with kernels that follow from the problem alone, into a "leaf": its gradients, running statistics and
 * metrics, times its share of the samples.  Leaves are added along one binary tree (comm/comm.h).  Who
 * computes a shard (which rank, which thread, when) therefore changes nothing.  Threads of a rank compute
 * shards side by side, each in a "lane": plans and buffers of its own beside the shared parameters. */
#ifndef LS_TRAIN_SHARDS_H
#define LS_TRAIN_SHARDS_H

#include "data/loader.h"
#include "train/counters.h"
#include "train/gather.h"
#include "train/session.h"

typedef struct ls_shards ls_shards;

/* For updates of `update` samples in n_shards shards, on `threads` threads of this rank (0: a default).  The
 * session is split and has one thread.  Collective. */
ls_status ls_shards_create(ls_shards **out, ls_session *s, int64_t n_shards, int64_t update, int threads,
                           ls_err *err) LS_MUST_CHECK;
void ls_shards_destroy(ls_shards *x); /* accepts NULL */
int ls_shards_threads(const ls_shards *x);
/* Bytes of what is added up in one stage of a step: gradients, statistics and metrics. */
size_t ls_shards_leaf_bytes(const ls_shards *x, int of_stage);

/* Makes the plans of full updates, which otherwise the first step makes. */
ls_status ls_shards_prepare(ls_shards *x, ls_err *err) LS_MUST_CHECK;
/* Adds what the shards take: plans and variables of lanes, leaves and their sums, exchanges. */
void ls_shards_add_memory(const ls_shards *x, ls_plan_memory *m);
size_t ls_shards_comm_bytes(const ls_shards *x); /* the exchanges alone */

/* The gradient of one stage of an update, ready for the session's plan of that update; b holds this rank's
 * samples (loader option `shards`).  *now receives the stage's metrics of all samples, *control (may be
 * NULL) the sum of all ranks'.  Collective. */
ls_status ls_shards_gradients(ls_shards *x, int of_stage, const ls_dataset *data, const ls_batch *b,
                              uint64_t seed, int64_t step, ls_metric_sums *now, ls_control *control,
                              ls_err *err) LS_MUST_CHECK;
/* The means of all metrics over `data`; what plans gather goes to `gather`, which the caller finishes. */
ls_status ls_shards_evaluate(ls_shards *x, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                             ls_err *err) LS_MUST_CHECK;

#endif
