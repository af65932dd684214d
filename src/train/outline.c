/* outline.c: from settings to plans that can be looked at. */
#include "train/outline.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "exec/memory.h"
#include "exec/state.h"
#include "graph/graph.h"
#include "passes/recompute.h"
#include "train/limit.h"
#include "train/placement.h"
#include "train/shards.h"

/* What one compilation after the other needs. */
typedef struct outlining {
    ls_outline *x;
    ls_config *cfg;
    ls_update u;
    ls_placement place;
    int threads;
    bool compares;
} outlining;

/* -- plans ------------------------------------------------------------------------------------------------
 */

/* The other ranks, and of shards this one itself. */
static ls_status meet(const outlining *o, ls_err *err)
{
    ls_outline *x = o->x;
    ls_peers_options how = {.share = o->u.shards == 0 && o->place.sharding == LS_SHARD_NOTHING &&
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
    if (x->ranks % (how.shard_group > 0 ? how.shard_group : 1) != 0)
        return ls_fail(
            err, LS_INVALID,
            "parallel.shard_group=%d: %d ranks do not make up groups of so many; set it to a number "
            "that divides them",
            how.shard_group, x->ranks);
    if (x->ranks > 1 || o->u.shards > 0) LS_TRY(ls_peers_create_absent(&x->peers, x->ranks, &how, err));
    ls_state_set_peers(x->state, x->peers);
out:
    return st;
}

/* Passes rewrite what they are given: every plan has a copy of the record. */
static ls_status add_plan(ls_outline *x, const ls_strategy *how, const char *part, int64_t runs, ls_err *err)
{
    const ls_graph *record = runs > 0 ? x->record : x->evaluation;
    ls_outline_plan *p = &x->plans[x->n_plans];
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    if (x->n_plans == LS_OUTLINE_PLANS)
        return ls_fail(err, LS_UNSUPPORTED, "the step is of more than %d plans", LS_OUTLINE_PLANS);
    LS_TRY(ls_graph_clone(&g, record, err));
    *p = (ls_outline_plan){.part = part, .stage = how->stage, .runs = runs};
    LS_TRY(ls_plan_compile_as(&p->plan, g, how, x->dev, x->state, err));
    x->n_plans++;
out:
    return st;
}

static ls_strategy strategy(const outlining *o, ls_part part, int stage, const ls_units *again)
{
    ls_strategy how = ls_placement_strategy(o->cfg, &o->place, o->x->ranks > 1, o->u.samples, part);

    how.stage = stage;
    how.recompute = *again;
    return how;
}

/* The whole step, or where several batches or shards make an update the two plans of every stage. */
static ls_status add_plans(const outlining *o, const ls_units *again, ls_err *err)
{
    const bool split = ls_update_options(&o->u, o->cfg).split;
    const int64_t shards = (o->u.shards + o->x->ranks - 1) / o->x->ranks; /* of this rank */
    const int64_t runs = o->u.shards > 0 ? shards : o->u.samples / o->u.global;
    ls_strategy how = strategy(o, LS_PART_ALL, 0, again);
    int n_stages = 1;
    ls_status st = LS_OK;

    if (!split) return add_plan(o->x, &how, "step", 1, err);
    for (int stage = 0; stage < n_stages; stage++) {
        how = strategy(o, LS_PART_GRADIENTS, stage, again);
        LS_TRY(add_plan(o->x, &how, "gradients", runs, err));
        n_stages = ls_plan_stages(o->x->plans[o->x->n_plans - 1].plan);
        how = strategy(o, LS_PART_UPDATE, stage, again);
        LS_TRY(add_plan(o->x, &how, "update", 1, err));
    }
out:
    return st;
}

static void drop_plans(ls_outline *x)
{
    for (int i = 0; i < x->n_plans; i++) ls_plan_destroy(x->plans[i].plan);
    x->n_plans = 0;
    ls_state_destroy(x->state);
    ls_peers_destroy(x->peers);
    x->state = NULL;
    x->peers = NULL;
}

/* Anew each time: variables and exchanges are those of the plans that there are. */
static ls_status compile(const outlining *o, const ls_units *again, ls_err *err)
{
    ls_status st = LS_OK;

    drop_plans(o->x);
    LS_TRY(ls_state_create(&o->x->state, o->x->dev, err));
    LS_TRY(meet(o, err));
    LS_TRY(add_plans(o, again, err));
    if (o->x->evaluation != NULL) {
        const ls_strategy train = strategy(o, LS_PART_ALL, 0, again), how = ls_placement_evaluation(&train);
        LS_TRY(add_plan(o->x, &how, "evaluation", 0, err));
    }
out:
    return st;
}

/* -- what is computed again -------------------------------------------------------------------------------
 */

/* A unit, and what a saved byte of it costs. */
typedef struct candidate {
    int32_t unit;
    double price;
} candidate;

static int by_price(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->price != y->price) return x->price < y->price ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Units that save something, the cheapest first; *list is the caller's to free. */
static ls_status find_candidates(const outlining *o, candidate **list, int *n, ls_err *err)
{
    const size_t most = (size_t)o->x->record->n_units + 1;
    const ls_strategy how = strategy(o, LS_PART_ALL, 0, &(ls_units){0});
    ls_unit_cost *cost = ls_alloc(LS_MEM_PLAN, sizeof *cost * most);
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    *list = ls_alloc(LS_MEM_PLAN, sizeof **list * most);
    *n = 0;
    if (cost == NULL || *list == NULL) {
        st = ls_fail(err, LS_NOMEM, "recompute: no memory");
        goto out;
    }
    LS_TRY(ls_graph_clone(&g, o->x->record, err));
    ls_recompute_costs(g, &how, cost);
    LS_TRY(ls_graph_status(g, err));
    for (int32_t i = 0; i < g->n_units && i < LS_UNITS_LISTED; i++)
        if (cost[i].bytes > 0) (*list)[(*n)++] = (candidate){i + 1, cost[i].flops / cost[i].bytes};
    qsort(*list, (size_t)*n, sizeof **list, by_price);
out:
    if (g != NULL) ls_graph_destroy(g);
    ls_free(cost);
    return st;
}

static ls_units first_of(const candidate *list, int n)
{
    ls_units set = {0};

    for (int i = 0; i < n; i++) ls_units_add(&set, list[i].unit);
    return set;
}

/* The shortest beginning of the list with which the plans fit, compiled; all of it where none does. */
static ls_status fit(const outlining *o, const candidate *list, int n, size_t limit, ls_units *out,
                     ls_err *err)
{
    int too_few = 0, enough = n;
    ls_status st = LS_OK;

    while (enough - too_few > 1) {
        const int middle = (too_few + enough) / 2;
        *out = first_of(list, middle);
        LS_TRY(compile(o, out, err));
        if (ls_outline_memory(o->x).total <= limit)
            enough = middle;
        else
            too_few = middle;
    }
    *out = first_of(list, enough);
    LS_TRY(compile(o, out, err));
out:
    return st;
}

/* With everything kept, to compare with. */
static ls_status compile_kept(const outlining *o, ls_err *err)
{
    const ls_status st = compile(o, &(ls_units){0}, err);

    if (st != LS_OK) return st;
    o->x->recompute.bytes_kept = ls_outline_memory(o->x).total;
    o->x->recompute.flops_kept = ls_outline_flops(o->x);
    return LS_OK;
}

static ls_status compile_to_fit(const outlining *o, size_t limit, ls_units *out, ls_err *err)
{
    candidate *list = NULL;
    int n;
    ls_status st = LS_OK;

    LS_TRY(compile_kept(o, err));
    if (o->x->recompute.bytes_kept <= limit) goto out;
    LS_TRY(find_candidates(o, &list, &n, err));
    if (n > 0) LS_TRY(fit(o, list, n, limit, out, err));
out:
    ls_free(list);
    return st;
}

/* What the choice is, for those who say it. */
static void describe(ls_outline *x, const ls_units *again)
{
    ls_recompute_choice *c = &x->recompute;

    c->units = *again;
    c->n_units = (int)x->record->n_units;
    c->n_chosen = 0;
    for (int32_t u = 1; u <= x->record->n_units; u++) {
        if (!ls_units_have(again, u)) continue;
        if (c->n_chosen++ == 0) c->first = ls_graph_unit(x->record, u);
        c->last = ls_graph_unit(x->record, u);
    }
}

static ls_status compile_as_set(const outlining *o, ls_err *err)
{
    const ls_recompute_mode mode = ls_recompute_mode_of(o->cfg);
    ls_units again = {.all = mode == LS_RECOMPUTE_UNIT};
    size_t limit = 0;
    ls_status st = LS_OK;

    LS_TRY(ls_memory_limit(o->cfg, &limit, err));
    if (mode == LS_RECOMPUTE_AUTO && limit > 0) {
        o->x->recompute.by_limit = true;
        LS_TRY(compile_to_fit(o, limit, &again, err));
    } else {
        if (o->compares && again.all) LS_TRY(compile_kept(o, err));
        LS_TRY(compile(o, &again, err));
    }
    describe(o->x, &again);
out:
    return st;
}

/* -- the outline ------------------------------------------------------------------------------------------
 */

static ls_status record_evaluation(ls_outline *x, const ls_trial *trial, ls_config *cfg, ls_err *err)
{
    const ls_build build = {.mode = LS_EVAL, .freeze = ls_config_text(cfg, "train.freeze")};
    ls_step *step = NULL;
    const ls_status st = ls_records_build(&step, trial, cfg, &build, x->batch, err);

    if (st == LS_OK) x->evaluation = ls_step_graph_take(step);
    ls_step_destroy(step);
    return st;
}

ls_status ls_outline_open(ls_outline *x, const ls_trial *trial, ls_config *cfg, const ls_outline_options *how,
                          ls_err *err)
{
    const ls_build build = {.mode = LS_TRAIN, .freeze = ls_config_text(cfg, "train.freeze")};
    outlining o = {.x = x, .cfg = cfg, .u = ls_update_of(cfg, how->ranks), .compares = how->compares};
    ls_status st = LS_OK;

    *x = (ls_outline){.ranks = how->ranks, .batch = ls_config_int(cfg, "batch.per_rank")};
    /* As if all ranks were on this machine: kernels and what they take follow from threads. */
    o.threads = how->threads > 0 ? how->threads : ls_parallel_default_threads(how->ranks);
    LS_TRY(ls_update_check_settings(&o.u, cfg, err));
    o.place = ls_placement_of(cfg, how->ranks, how->ranks, o.u.shards);
    /* Shards are smaller than a rank's batch, which the settings name. */
    if (o.u.shards > 0) x->batch = (o.u.samples + o.u.shards - 1) / o.u.shards;
    LS_TRY(ls_records_build(&x->step, trial, cfg, &build, x->batch, err));
    x->record = ls_step_graph_take(x->step);
    if (how->evaluates) LS_TRY(record_evaluation(x, trial, cfg, err));
    LS_TRY(ls_device_open(&x->dev, ls_config_text(cfg, "device"), o.u.shards > 0 ? 1 : o.threads, err));
    x->dev->unbacked = true;
    x->dev->untimed = how->untimed;
    x->dev->tf32 = ls_session_rounds(cfg);
    /* As the run will do it: kernels that are chosen by rule are others than those that were timed. */
    x->dev->fixed = o.u.shards > 0;
    ls_parallel_set_wait_policy(x->dev->threads);
    LS_TRY(compile_as_set(&o, err));
out:
    return st;
}

void ls_outline_release(ls_outline *x)
{
    drop_plans(x);
    ls_graph_destroy(x->record);
    ls_graph_destroy(x->evaluation);
    ls_step_destroy(x->step);
    ls_device_close(x->dev);
    *x = (ls_outline){0};
}

ls_plan_memory ls_outline_memory(const ls_outline *x)
{
    ls_plan_memory m = {0};
    ls_plan *gradients[LS_OUTLINE_PLANS];
    int n = 0;

    for (int k = 0; k < x->n_plans; k++) {
        const bool of_lanes = x->lanes > 0 && strcmp(x->plans[k].part, "gradients") == 0;
        if (of_lanes)
            gradients[n++] = x->plans[k].plan;
        else
            ls_memory_add_plan(&m, x->plans[k].plan);
    }
    ls_memory_add_lanes(&m, gradients, n, x->lanes);
    ls_memory_add_state(&m, x->state);
    if (x->peers != NULL) ls_memory_add_comm(&m, ls_peers_bytes(x->peers));
    return m;
}

size_t ls_outline_staging(const ls_outline *x)
{
    size_t sum = 0;

    for (int k = 0; k < x->n_plans; k++) sum += ls_memory_staging(x->plans[k].plan);
    return sum;
}

double ls_outline_flops(const ls_outline *x)
{
    double sum = 0;

    for (int k = 0; k < x->n_plans; k++) sum += (double)x->plans[k].runs * ls_plan_flops(x->plans[k].plan);
    return sum;
}
