/* outline.c: from settings to plans that can be looked at. */
#include <string.h>

#include "backend/backend.h"
#include "base/parallel.h"
#include "exec/memory.h"
#include "exec/state.h"
#include "graph/graph.h"
#include "train/outline_internal.h"
#include "train/placement.h"
#include "train/shards.h"

/* -- plans ------------------------------------------------------------------------------------------------
 */

/* The other ranks, and of shards this one itself. */
static ls_status meet(const lsi_outlining *o, ls_err *err)
{
    ls_outline *x = o->x;
    ls_peers_options how = {.wire = (ls_wire)ls_config_int(o->cfg, "parallel.wire"),
                            .share = o->u.shards == 0 && o->place.sharding == LS_SHARD_NOTHING &&
                                     ls_session_shares(o->cfg),
                            .shard_group = o->place.group == LS_GROUP_SHARD ? o->place.pieces : 0};
    ls_deal deal;
    ls_status st = LS_OK;

    if (o->u.shards > 0) {
        const int threads = x->dev->backend->queues != NULL ? 1 : o->threads;
        LS_TRY(ls_shards_deal(&deal, o->u.shards, o->u.samples, threads, 0, x->ranks, err));
        how.first_shard = deal.first;
        how.end_shard = deal.end;
        how.lanes = x->lanes = deal.lanes;
    }
    if (o->place.group == LS_GROUP_SHARD && x->ranks % x->here != 0)
        return ls_fail(
            err, LS_INVALID,
            "parallel.strategy=hybrid: %d ranks do not make up machines of %d, and each must have as "
            "many groups as the others",
            x->ranks, x->here);
    if (x->here % (how.shard_group > 0 ? how.shard_group : 1) != 0)
        return ls_fail(
            err, LS_INVALID,
            "parallel.shard_group=%d: %d ranks%s do not make up groups of so many; set it to a number "
            "that divides them",
            how.shard_group, x->here, x->here < x->ranks ? " of a machine" : "");
    if (x->ranks > 1 || o->u.shards > 0)
        LS_TRY(ls_peers_create_absent(&x->peers, x->ranks, x->here, &how, err));
    ls_state_set_peers(x->state, x->peers);
out:
    return st;
}

/* Passes rewrite what they are given: every plan has a copy of the record. */
static ls_status compile_plan(ls_plan **out, ls_outline *x, const ls_graph *record, const ls_strategy *how,
                              ls_err *err)
{
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_graph_clone(&g, record, err));
    LS_TRY(ls_plan_compile_as(out, g, how, x->dev, x->state, err));
out:
    return st;
}

static ls_status add_plan(ls_outline *x, const ls_strategy *how, const char *part, int64_t runs, ls_err *err)
{
    ls_outline_plan *p = &x->plans[x->n_plans];
    ls_status st = LS_OK;

    if (x->n_plans == LS_OUTLINE_PLANS)
        return ls_fail(err, LS_UNSUPPORTED, "the step is of more than %d plans", LS_OUTLINE_PLANS);
    *p = (ls_outline_plan){.part = part, .stage = how->stage, .runs = runs};
    LS_TRY(compile_plan(&p->plan, x, runs > 0 ? x->record : x->evaluation, how, err));
    x->n_plans++;
out:
    return st;
}

ls_strategy lsi_outline_strategy(const lsi_outlining *o, ls_part part, int stage, const ls_units *again)
{
    ls_strategy how = ls_placement_strategy(o->cfg, &o->place, o->x->ranks > 1, o->u.samples, part);

    how.stage = stage;
    how.recompute = *again;
    return how;
}

static bool is_split(const lsi_outlining *o)
{
    return ls_update_options(&o->u, o->cfg).split;
}

/* The whole step, or where several batches or shards make an update the two plans of every stage. */
static ls_status add_plans(const lsi_outlining *o, const ls_units *again, ls_err *err)
{
    const int64_t shards = (o->u.shards + o->x->ranks - 1) / o->x->ranks; /* of this rank */
    const int64_t runs = o->u.shards > 0 ? shards : o->u.samples / o->u.global;
    ls_strategy how = lsi_outline_strategy(o, LS_PART_ALL, 0, again);
    ls_status st = LS_OK;

    o->x->n_stages = 1;
    if (!is_split(o)) return add_plan(o->x, &how, "step", 1, err);
    for (int stage = 0; stage < o->x->n_stages; stage++) {
        how = lsi_outline_strategy(o, LS_PART_GRADIENTS, stage, again);
        LS_TRY(add_plan(o->x, &how, "gradients", runs, err));
        o->x->n_stages = ls_plan_stages(o->x->plans[o->x->n_plans - 1].plan);
        how = lsi_outline_strategy(o, LS_PART_UPDATE, stage, again);
        LS_TRY(add_plan(o->x, &how, "update", 1, err));
    }
out:
    return st;
}

/* Batches of one more size: in training a plan for every stage. */
static ls_status add_odd(const lsi_outlining *o, const ls_outline_odd *odd, const ls_units *again,
                         ls_err *err)
{
    const bool trains = odd->size.mode == LS_TRAIN;
    ls_outline *x = o->x;
    ls_status st = LS_OK;

    for (int stage = 0; stage < (trains ? x->n_stages : 1); stage++) {
        ls_strategy how =
            lsi_outline_strategy(o, trains && is_split(o) ? LS_PART_GRADIENTS : LS_PART_ALL, stage, again);
        if (!trains) how = ls_placement_evaluation(&how);
        if (x->n_odd_plans == LS_OUTLINE_ODD)
            return ls_fail(err, LS_UNSUPPORTED, "the run has more than %d plans", LS_OUTLINE_ODD);
        x->odd_lanes[x->n_odd_plans] = !odd->size.images;
        LS_TRY(compile_plan(&x->odd_plans[x->n_odd_plans], x, odd->record, &how, err));
        x->n_odd_plans++;
    }
out:
    return st;
}

static void drop_plans(ls_outline *x)
{
    for (int i = 0; i < x->n_plans; i++) ls_plan_destroy(x->plans[i].plan);
    for (int i = 0; i < x->n_odd_plans; i++) ls_plan_destroy(x->odd_plans[i]);
    x->n_plans = x->n_odd_plans = 0;
    ls_state_destroy(x->state);
    ls_peers_destroy(x->peers);
    x->state = NULL;
    x->peers = NULL;
}

/* The model's own variables, whatever an evaluation needs of them. */
static ls_status bind_model(const lsi_outlining *o, ls_err *err)
{
    const ls_strategy train = lsi_outline_strategy(o, LS_PART_ALL, 0, &(ls_units){0}),
                      how = ls_placement_model(&train);
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_graph_clone(&g, o->x->record, err));
    LS_TRY(ls_plan_bind_model_take(g, &how, o->x->state, err));
out:
    return st;
}

/* Plans for batches of which samples are left out, beside those that are known: as many as the session keeps.
 */
static int count_spare(const ls_outline *x, int64_t skips)
{
    const int trains = x->tests_only ? 0 : x->n_stages;
    int taken = 0;

    for (int k = 0; k < x->n_plans; k++) taken += strcmp(x->plans[k].part, "update") != 0;
    for (int k = 0; k < x->n_odd_plans; k++) taken += x->odd_lanes[k];
    if (skips >= x->batch) skips = x->batch - 1;                      /* sizes of a batch, */
    skips = (skips - 1) * (trains + (x->evaluation != NULL ? 1 : 0)); /* of which one is among the odd */
    return skips > LS_SESSION_PLANS - taken ? LS_SESSION_PLANS - taken : (int)skips;
}

/* Anew each time: variables and exchanges are those of the plans that there are. */
ls_status lsi_outline_compile(const lsi_outlining *o, const ls_units *again, bool odd, ls_err *err)
{
    ls_status st = LS_OK;

    drop_plans(o->x);
    LS_TRY(ls_state_create(&o->x->state, o->x->dev, err));
    LS_TRY(meet(o, err));
    LS_TRY(o->x->tests_only ? bind_model(o, err) : add_plans(o, again, err));
    if (o->x->evaluation != NULL) {
        const ls_strategy train = lsi_outline_strategy(o, LS_PART_ALL, 0, again),
                          how = ls_placement_evaluation(&train);
        LS_TRY(add_plan(o->x, &how, "evaluation", 0, err));
    }
    for (int i = 0; odd && i < o->x->n_odd; i++) LS_TRY(add_odd(o, &o->x->odd[i], again, err));
    if (odd && o->skips > 0) o->x->spare = count_spare(o->x, o->skips);
out:
    return st;
}

/* -- the outline ------------------------------------------------------------------------------------------
 */

static ls_status record(ls_graph **out, const ls_trial *trial, ls_config *cfg, const ls_batch_size *size,
                        ls_err *err)
{
    const ls_build build = {
        .mode = size->mode, .images = size->images, .freeze = ls_config_text(cfg, "train.freeze")};
    ls_step *step = NULL;
    const ls_status st = ls_records_build(&step, trial, cfg, &build, size->n, err);

    if (st == LS_OK) *out = ls_step_graph_take(step);
    ls_step_destroy(step);
    return st;
}

static ls_status record_all(const lsi_outlining *o, const ls_trial *trial, const ls_outline_options *how,
                            ls_err *err)
{
    const ls_batch_size usual = {.mode = LS_EVAL, .n = o->x->batch};
    ls_batch_size sizes[LS_BATCH_SIZES];
    ls_outline *x = o->x;
    int n;
    ls_status st = LS_OK;

    if (how->evaluates) LS_TRY(record(&x->evaluation, trial, o->cfg, &usual, err));
    n = ls_batches_odd(sizes, &o->u, x->batch, x->ranks, &how->sets);
    for (int i = 0; i < n; i++) {
        x->odd[i] = (ls_outline_odd){.size = sizes[i]};
        LS_TRY(record(&x->odd[i].record, trial, o->cfg, &sizes[i], err));
        x->n_odd = i + 1;
    }
out:
    return st;
}

ls_status ls_outline_open(ls_outline *x, const ls_trial *trial, ls_config *cfg, const ls_outline_options *how,
                          ls_err *err)
{
    const ls_build build = {.mode = LS_TRAIN, .freeze = ls_config_text(cfg, "train.freeze")};
    lsi_outlining o = {.x = x,
                       .cfg = cfg,
                       .u = how->tests_only ? ls_update_of_tests(cfg, how->ranks)
                                            : ls_update_of(cfg, how->ranks),
                       .compares = how->compares,
                       .skips = how->sets.skips};
    ls_status st = LS_OK;

    *x = (ls_outline){.ranks = how->ranks,
                      .here = how->here > 0 && how->here < how->ranks ? how->here : how->ranks,
                      .tests_only = how->tests_only,
                      .batch = ls_config_int(cfg, "batch.per_rank")};
    /* As if the ranks of a machine were on this one: kernels and what they take follow from threads. */
    o.threads = how->threads > 0 ? how->threads : ls_parallel_default_threads(x->here);
    if (!how->tests_only) LS_TRY(ls_update_check_settings(&o.u, cfg, err));
    o.place = how->as != NULL ? *how->as : ls_placement_of(cfg, how->ranks, x->here, o.u.shards);
    /* Shards are smaller than a rank's batch, which the settings name. */
    if (o.u.shards > 0) x->batch = (o.u.samples + o.u.shards - 1) / o.u.shards;
    LS_TRY(ls_records_build(&x->step, trial, cfg, &build, x->batch, err));
    x->record = ls_step_graph_take(x->step);
    LS_TRY(record_all(&o, trial, how, err));
    LS_TRY(ls_device_open(&x->dev, ls_config_text(cfg, "device"), o.u.shards > 0 ? 1 : o.threads, err));
    x->dev->unbacked = true;
    x->dev->untimed = how->untimed;
    x->dev->tf32 = ls_session_rounds(cfg);
    /* As the run will do it: kernels that are chosen by rule are others than those that were timed. */
    x->dev->fixed = o.u.shards > 0;
    ls_parallel_set_wait_policy(x->dev->threads);
    LS_TRY(lsi_outline_choose(&o, err));
out:
    return st;
}

void ls_outline_release(ls_outline *x)
{
    drop_plans(x);
    ls_graph_destroy(x->record);
    ls_graph_destroy(x->evaluation);
    for (int i = 0; i < x->n_odd; i++) ls_graph_destroy(x->odd[i].record);
    ls_step_destroy(x->step);
    ls_device_close(x->dev);
    *x = (ls_outline){0};
}

/* Samples that are left out make batches of any size, each with a plan, until the session's places are full.
 * None has larger inputs and results than the largest odd one here. */
static void add_spare(const ls_outline *x, ls_plan_memory *m)
{
    const ls_plan *largest = NULL;
    size_t most = 0;

    for (int k = 0; k < x->n_odd_plans; k++) {
        ls_plan_memory one = {0};
        ls_memory_add_plan(&one, x->odd_plans[k]);
        if (!x->odd_lanes[k] || one.total < most) continue; /* pictures have none of those places */
        most = one.total;
        largest = x->odd_plans[k];
    }
    for (int i = 0; largest != NULL && i < x->spare; i++) ls_memory_add_plan(m, largest);
}

/* In the reproducible mode every thread has plans of its own for all but the update and pictures. */
static ls_plan_memory memory_of(const ls_outline *x, bool odd)
{
    ls_plan_memory m = {0};
    ls_plan *own[LS_OUTLINE_PLANS + LS_OUTLINE_ODD], *lanes[LS_OUTLINE_PLANS + LS_OUTLINE_ODD];
    int n_own = 0, n_lanes = 0;

    for (int k = 0; k < x->n_plans; k++)
        if (x->lanes > 0 && strcmp(x->plans[k].part, "update") != 0)
            lanes[n_lanes++] = x->plans[k].plan;
        else
            own[n_own++] = x->plans[k].plan;
    for (int k = 0; odd && k < x->n_odd_plans; k++)
        if (x->lanes > 0 && x->odd_lanes[k])
            lanes[n_lanes++] = x->odd_plans[k];
        else
            own[n_own++] = x->odd_plans[k];
    ls_memory_add_plans(&m, own, n_own);
    ls_memory_add_lanes(&m, lanes, n_lanes, x->lanes);
    ls_memory_add_state(&m, x->state);
    if (x->peers != NULL) ls_memory_add_comm(&m, ls_peers_bytes(x->peers));
    if (odd) add_spare(x, &m);
    return m;
}

ls_plan_memory ls_outline_memory(const ls_outline *x)
{
    return memory_of(x, true);
}

size_t lsi_outline_odd_bytes(const ls_outline *x)
{
    return memory_of(x, true).total - memory_of(x, false).total;
}

size_t ls_outline_persistent(const ls_outline *x)
{
    ls_plan_memory m = {0};

    ls_memory_add_state(&m, x->state);
    return m.total;
}

size_t ls_outline_staging(const ls_outline *x)
{
    size_t sum = 0;

    for (int k = 0; k < x->n_plans; k++) sum += ls_memory_staging(x->plans[k].plan);
    for (int k = 0; k < x->n_odd_plans; k++) sum += ls_memory_staging(x->odd_plans[k]);
    return sum;
}

double ls_outline_flops(const ls_outline *x)
{
    double sum = 0;

    for (int k = 0; k < x->n_plans; k++) sum += (double)x->plans[k].runs * ls_plan_flops(x->plans[k].plan);
    return sum;
}
