/* experiment.c: from a command line to a plan that can be looked at. */
#include <stdio.h>

#include "backend/backend.h"
#include "base/parallel.h"
#include "cli.h"
#include "exec/state.h"
#include "graph/graph.h"
#include "train/placement.h"
#include "train/shards.h"

ls_status cli_experiment_configure(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x->experiment, args->model, args->settings, args->n_settings, err));
    x->trial = x->experiment.trial;
    x->cfg = x->experiment.cfg;
    x->ranks = (int)ls_config_int(x->cfg, "ranks");
    x->name = ls_config_text(x->cfg, "name");
    x->batch = ls_config_int(x->cfg, "batch.per_rank");
out:
    return st;
}

/* Shards are smaller than a rank's batch, which the settings name. */
static ls_status build(cli_experiment *x, ls_err *err)
{
    const ls_build how = {.mode = LS_TRAIN, .freeze = ls_config_text(x->cfg, "train.freeze")};

    return ls_records_build(&x->step, x->trial, x->cfg, &how, x->batch, err);
}

/* As if all ranks were on this machine. */
static ls_placement placement_of(const cli_experiment *x, const ls_update *u)
{
    return ls_placement_of(x->cfg, x->ranks, x->ranks, u->shards);
}

/* The other ranks, and of shards this one itself. */
static ls_status meet(cli_experiment *x, const ls_update *u, int threads, ls_err *err)
{
    const ls_placement place = placement_of(x, u);
    ls_peers_options how = {.share = u->shards == 0 && place.sharding == LS_SHARD_NOTHING &&
                                     ls_session_shares(x->cfg),
                            .shard_group = place.group == LS_GROUP_SHARD ? place.pieces : 0};
    ls_deal deal;
    ls_status st = LS_OK;

    if (u->shards > 0) {
        if (x->dev->backend->queues != NULL) threads = 1;
        LS_TRY(ls_shards_deal(&deal, u->shards, u->samples, threads, 0, x->ranks, err));
        how.first_shard = deal.first;
        how.end_shard = deal.end;
        how.lanes = x->lanes = deal.lanes;
    }
    if (x->ranks % (how.shard_group > 0 ? how.shard_group : 1) != 0)
        return ls_fail(
            err, LS_INVALID,
            "parallel.shard_group=%d: %d ranks do not make up groups of so many; set it to a number "
            "that divides them",
            how.shard_group, x->ranks);
    if (x->ranks > 1 || u->shards > 0) LS_TRY(ls_peers_create_absent(&x->peers, x->ranks, &how, err));
    ls_state_set_peers(x->state, x->peers);
out:
    return st;
}

/* Passes rewrite what they are given: every plan has a copy of the record. */
static ls_status add_plan(cli_experiment *x, const ls_graph *record, const ls_strategy *how, const char *part,
                          int64_t runs, ls_err *err)
{
    cli_plan_of *p = &x->plans[x->n_plans];
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    if (x->n_plans == CLI_PLANS)
        return ls_fail(err, LS_UNSUPPORTED, "the step is of more than %d plans", CLI_PLANS);
    LS_TRY(ls_graph_clone(&g, record, err));
    *p = (cli_plan_of){.part = part, .stage = how->stage, .runs = runs};
    LS_TRY(ls_plan_compile_as(&p->plan, g, how, x->dev, x->state, err));
    x->n_plans++;
    x->plan = x->plans[0].plan;
out:
    return st;
}

/* The whole step, or where several batches or shards make an update the two plans of every stage. */
static ls_status compile(cli_experiment *x, const ls_update *u, const ls_graph *record, ls_err *err)
{
    const bool split = ls_update_options(u, x->cfg).split;
    const int64_t shards = (u->shards + x->ranks - 1) / x->ranks; /* of this rank */
    const int64_t runs = u->shards > 0 ? shards : u->samples / u->global;
    const ls_placement place = placement_of(x, u);
    ls_strategy how = ls_placement_strategy(x->cfg, &place, x->ranks > 1, u->samples, LS_PART_ALL);
    int n_stages = 1;
    ls_status st = LS_OK;

    if (!split) return add_plan(x, record, &how, "step", 1, err);
    for (int stage = 0; stage < n_stages; stage++) {
        how = ls_placement_strategy(x->cfg, &place, x->ranks > 1, u->samples, LS_PART_GRADIENTS);
        how.stage = stage;
        LS_TRY(add_plan(x, record, &how, "gradients", runs, err));
        n_stages = ls_plan_stages(x->plans[x->n_plans - 1].plan);
        how = ls_placement_strategy(x->cfg, &place, x->ranks > 1, u->samples, LS_PART_UPDATE);
        how.stage = stage;
        LS_TRY(add_plan(x, record, &how, "update", 1, err));
    }
out:
    return st;
}

ls_status cli_experiment_open(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_graph *record = NULL;
    ls_update u;
    int threads;
    ls_status st = LS_OK;

    LS_TRY(cli_experiment_configure(x, args, err));
    LS_TRY(cli_device_check(args, ls_config_text(x->cfg, "device"), err));
    /* As if all ranks were on this machine: kernels and what they take follow from threads. */
    threads = args->threads > 0 ? args->threads : ls_parallel_default_threads(x->ranks);
    u = ls_update_of(x->cfg, x->ranks);
    LS_TRY(ls_update_check_settings(&u, x->cfg, err));
    if (u.shards > 0) x->batch = (u.samples + u.shards - 1) / u.shards;
    LS_TRY(build(x, err));
    record = ls_step_graph_take(x->step);
    LS_TRY(ls_device_open(&x->dev, ls_config_text(x->cfg, "device"), u.shards > 0 ? 1 : threads, err));
    x->dev->tf32 = ls_session_rounds(x->cfg);
    /* As the run will do it: kernels that are chosen by rule are others than those that were timed. */
    x->dev->fixed = u.shards > 0;
    ls_parallel_set_wait_policy(x->dev->threads);
    LS_TRY(ls_state_create(&x->state, x->dev, err));
    LS_TRY(meet(x, &u, threads, err));
    LS_TRY(compile(x, &u, record, err));
out:
    ls_graph_destroy(record);
    return st;
}

void cli_experiment_release(cli_experiment *x)
{
    for (int i = 0; i < x->n_plans; i++) ls_plan_destroy(x->plans[i].plan);
    ls_peers_destroy(x->peers);
    ls_state_destroy(x->state);
    ls_step_destroy(x->step);
    ls_device_close(x->dev);
    ls_experiment_release(&x->experiment);
    *x = (cli_experiment){0};
}
