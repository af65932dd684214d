/* update.c: how an update is made up of batches, ranks and shards. */
#include "train/placement.h"
#include "train/session.h"

ls_update ls_update_of(ls_config *cfg, int ranks)
{
    const int64_t accumulate = ls_config_int(cfg, "parallel.accumulate");
    ls_update u = {.global = ls_config_int(cfg, "batch.global") / accumulate};

    if (u.global == 0) u.global = ls_config_int(cfg, "batch.per_rank") * ranks;
    u.samples = u.global * accumulate;
    if (!ls_config_bool(cfg, "reproducible")) return u;
    u.shards =
        ls_config_int(cfg, "parallel.shards"); /* an update is cut into them, whatever the batches are */
    u.global = u.samples;
    return u;
}

ls_update ls_update_of_tests(ls_config *cfg, int ranks)
{
    ls_update u = ls_update_of(cfg, ls_config_bool(cfg, "reproducible") ? 1 : ranks);

    if (u.samples < u.shards) u.global = u.samples = u.shards; /* one each; settings that ranks train with */
    return u;
}

ls_session_options ls_update_options(const ls_update *u, ls_config *cfg)
{
    return (ls_session_options){.batch = u->shards > 0 ? u->samples : ls_config_int(cfg, "batch.per_rank"),
                                .update = u->samples,
                                .split = u->shards > 0 || u->samples > u->global,
                                .shards = u->shards};
}

int64_t ls_session_skips(ls_config *cfg)
{
    return ls_config_int(cfg, "data.on_error") == LS_ON_ERROR_SKIP ? ls_config_int(cfg, "data.max_skipped")
                                                                   : 0;
}

/* A shard's forward pass is over before anybody knows who computes the next one, and when: there is no moment
 * at which statistics of all samples are there for a norm to use.  Every shard has its own. */
ls_status ls_update_check_settings(const ls_update *u, ls_config *cfg, ls_err *err)
{
    const ls_status st = ls_placement_check(cfg, err);

    if (st != LS_OK || u->shards == 0 || !ls_config_bool(cfg, "parallel.sync_batchnorm")) return st;
    return ls_fail(err, LS_INVALID,
                   "reproducible=true computes shards one by one, so that batch norms cannot see all ranks; "
                   "set parallel.sync_batchnorm=false");
}

ls_status ls_update_check(const ls_update *u, ls_config *cfg, int ranks, int64_t samples, ls_err *err)
{
    if (u->shards > 0 && ls_config_int(cfg, "data.on_error") == LS_ON_ERROR_SKIP)
        return ls_fail(err, LS_INVALID,
                       "reproducible=true needs data.on_error=stop: a sample left out would move all others");
    if (u->samples <= samples) return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "an update takes %lld samples (batch.per_rank=%lld, ranks=%d, "
                   "parallel.accumulate=%lld), which is "
                   "more than the training set has (%lld)",
                   (long long)u->samples, (long long)ls_config_int(cfg, "batch.per_rank"), ranks,
                   (long long)ls_config_int(cfg, "parallel.accumulate"), (long long)samples);
}
