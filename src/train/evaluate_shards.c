/* evaluate_shards.c: evaluation in the reproducible mode: the metrics of every shard of every batch, each
 * from the one rank that computed it, added in one order. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "train/breaks.h"
#include "train/evaluate.h"
#include "train/shards.h"
#include "train/team.h"

typedef struct evaluation {
    ls_session *session;
    const ls_deal *deal;
    ls_gather *gather;
    const ls_batch *b;
    int64_t batch;
    double *values; /* LS_MAX_METRICS of every shard of every batch */
} evaluation;

static ls_status note_shard(void *ctx, int64_t shard, const ls_batch_plan *p, int64_t lo, int64_t hi,
                            ls_err *err)
{
    const evaluation *e = ctx;
    double *to = e->values + (e->batch * e->deal->n_shards + shard) * LS_MAX_METRICS;
    ls_metric_sums own = {0};
    ls_status st = LS_OK;

    (void)hi;
    LS_TRY(ls_collect_metrics(p->plan, 1, &own, err));
    for (int i = 0; i < own.n; i++) to[i] = own.sum[i];
    LS_TRY(ls_gather_take(e->gather, p, e->b->global_position + lo, err));
out:
    return st;
}

/* What there is to gather, also on a rank that has no samples. */
static ls_status prepare_gather(const evaluation *e, ls_err *err)
{
    ls_batch_plan *one;
    ls_status st = LS_OK;

    LS_TRY(ls_shards_plan(e->session->shards, 1, &one, err));
    LS_TRY(ls_gather_prepare(e->gather, one, err));
out:
    return st;
}

static ls_status run_batches(evaluation *e, const ls_dataset *data, ls_loader *loader, ls_err *err)
{
    const ls_session *s = e->session;
    const int64_t n = ls_loader_batches_per_epoch(loader);
    ls_breaks breaks = ls_breaks_begin(e->session);
    ls_status st = LS_OK;

    if (e->gather->rows != NULL) {
        e->gather->rows->room = e->deal->share * ((e->deal->n_shards + s->ranks - 1) / s->ranks);
        LS_TRY(prepare_gather(e, err));
    }
    for (e->batch = 0; e->batch < n; e->batch++) {
        ls_batch b;
        const ls_shard_work w = {
            .mode = LS_EVAL, .data = data, .b = &b, .seed = (uint64_t)ls_config_int(s->cfg, "seed")};
        LS_TRY(ls_loader_next(loader, &b, err));
        e->b = &b;
        LS_TRY(ls_shards_run(s->shards, &w, note_shard, e, err));
        LS_TRY(ls_gather_pass_on(e->gather, s->comm, err));
        LS_TRY(ls_breaks_after(&breaks, n - 1 - e->batch, err));
    }
    if (!e->gather->prepared) LS_TRY(prepare_gather(e, err)); /* fewer samples than shards, none here */
out:
    return st;
}

/* Rank by rank the values of other ranks are zero, so that sums over ranks are exact. */
static ls_status add_values(const evaluation *e, int64_t samples, int64_t n_batches, ls_metric_sums *sums,
                            ls_err *err)
{
    const int64_t shards = e->deal->n_shards, global = e->deal->share * shards, all = n_batches * shards;
    ls_batch_plan *one;
    ls_metric_sums names = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_team_add(e->session->comm, e->values, all * LS_MAX_METRICS, "adding up metrics", err));
    LS_TRY(ls_shards_plan(e->session->shards, 1, &one, err));
    ls_declare_metrics(one->plan, &names);
    for (int64_t k = 0; k < all; k++) {
        const int64_t left = samples - k / shards * global;
        int64_t lo, hi;
        ls_parallel_range(left < global ? left : global, (int)(k % shards), (int)shards, &lo, &hi);
        sums->samples += hi - lo;
        for (int i = 0; hi > lo && i < names.n; i++)
            ls_metric_add(sums, names.name[i], e->values[k * LS_MAX_METRICS + i], hi - lo);
    }
out:
    return st;
}

ls_status ls_shards_evaluate(ls_session *s, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                             ls_err *err)
{
    const ls_deal *d = ls_shards_dealt(s->shards);
    const ls_loader_options options = {.batch = d->share * (d->end - d->first),
                                       .n_workers = (int)ls_config_int(s->cfg, "data.workers"),
                                       .memory = ls_session_staging(s),
                                       .rank = s->rank,
                                       .n_ranks = s->ranks,
                                       .global = d->share * d->n_shards,
                                       .shards = d->n_shards};
    evaluation e = {.session = s, .deal = d, .gather = gather};
    ls_loader *loader = NULL;
    int64_t n;
    ls_status st = LS_OK;

    *sums = (ls_metric_sums){0};
    LS_TRY(ls_loader_create(&loader, data, &options, err));
    n = ls_loader_batches_per_epoch(loader);
    e.values = ls_alloc(LS_MEM_PLAN, sizeof *e.values * (size_t)(n * d->n_shards * LS_MAX_METRICS));
    if (e.values == NULL) {
        st = ls_fail(err, LS_NOMEM, "evaluation: no memory");
        goto out;
    }
    LS_TRY(run_batches(&e, data, loader, err));
    LS_TRY(add_values(&e, ls_dataset_count(data), n, sums, err));
out:
    ls_free(e.values);
    ls_loader_destroy(loader);
    return st;
}
