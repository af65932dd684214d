/* session.c: device, variables and plans of a run. */
#include "train/session.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "exec/hash.h"
#include "exec/memory.h"
#include "exec/results.h"
#include "exec/state.h"
#include "graph/graph.h"
#include "train/batches.h"
#include "train/limit.h"
#include "train/outline.h"
#include "train/placement.h"
#include "train/prefetch.h"
#include "train/session_internal.h"
#include "train/shards.h"

enum { SHARE_AUTO, SHARE_ALWAYS, SHARE_NEVER }; /* values of parallel.share */

/* What the trial has recorded for batches of this size, and a copy of its graph for the passes. */
static ls_status find_record(ls_session *s, ls_build build, int64_t batch, ls_record **record, ls_graph **g,
                             ls_err *err)
{
    ls_status st = LS_OK;

    build.freeze = ls_config_text(s->cfg, "train.freeze");
    LS_TRY(ls_records_find(&s->records, s->trial, s->cfg, &build, batch, record, err));
    LS_TRY(ls_graph_clone(g, (*record)->graph, err));
out:
    return st;
}

ls_status ls_batch_plan_open(ls_batch_plan *p, ls_session *s, ls_build build, const ls_strategy *how,
                             int64_t batch, ls_state *state, ls_err *err)
{
    ls_comm_doing before = LS_COMM_AT_LENGTH;
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    /* Also within a step, where one rank alone may meet an odd batch: the others then wait for its compiler.
     */
    if (s->comm != NULL) before = ls_comm_set_doing(s->comm, LS_COMM_AT_LENGTH);
    *p = (ls_batch_plan){.mode = build.mode, .stage = how->stage, .batch = batch};
    LS_TRY(find_record(s, build, batch, &p->record, &g, err));
    p->step = p->record->step;
    LS_TRY(ls_plan_compile_as(&p->plan, g, how, s->dev, state, err));
    if (!s->dev->unbacked) ls_step_write_defaults(p->step, p->plan); /* there is nowhere to write */
out:
    if (s->comm != NULL) ls_comm_set_doing(s->comm, before);
    return st;
}

void ls_batch_plan_release(ls_batch_plan *p)
{
    ls_plan_destroy(p->plan);
    ls_record_release(p->record);
    *p = (ls_batch_plan){0};
}

static int64_t share_from(ls_config *cfg)
{
    return ls_config_int(cfg, "parallel.share") == SHARE_ALWAYS ? 0 : 1 << 20;
}

bool ls_session_shares(ls_config *cfg)
{
    return ls_config_int(cfg, "parallel.share") != SHARE_NEVER;
}

/* Shards are added up wherever they are computed: nothing else travels between ranks. */
ls_strategy ls_session_strategy(ls_config *cfg, bool ranks, int64_t update, ls_part part)
{
    const bool shards = part != LS_PART_ALL && ls_config_bool(cfg, "reproducible");
    ls_strategy how;

    ranks = ranks && !shards;
    how = (ls_strategy){.part = part,
                        .ranks = ranks,
                        .share_from = share_from(cfg),
                        .bucket_bytes = (int64_t)(ls_config_real(cfg, "parallel.bucket_mb") * (1 << 20)),
                        .sync_norm = ranks && ls_config_bool(cfg, "parallel.sync_batchnorm"),
                        .clip_norm = ls_config_real(cfg, "parallel.clip_norm"),
                        .update = update,
                        .shards = shards ? ls_config_int(cfg, "parallel.shards") : 0,
                        .compute = ls_session_compute(cfg)};
    ls_session_guard(cfg, &how);
    return how;
}

ls_status ls_session_plan(ls_session *s, ls_mode mode, int stage, int64_t n, ls_batch_plan **out, ls_err *err)
{
    ls_strategy how = ls_session_how(s, mode, stage);
    ls_batch_plan *p;
    ls_status st;

    for (int i = 0; i < s->n_plans; i++) {
        *out = &s->plans[i];
        if ((*out)->mode != mode || (*out)->stage != stage) continue;
        if ((*out)->batch == n) return LS_OK;
        how.turns = ls_plan_turns((*out)->plan); /* another rank may run that one */
    }
    /* Odd sizes only follow skipped samples; the last place is theirs in turn. */
    if (s->n_plans == LS_SESSION_PLANS) ls_batch_plan_release(&s->plans[--s->n_plans]);
    p = *out = &s->plans[s->n_plans];
    st = ls_batch_plan_open(p, s, (ls_build){.mode = mode}, &how, n, s->state, err);
    if (st == LS_OK)
        s->n_plans++;
    else
        ls_batch_plan_release(p);
    return st;
}

const ls_batch_plan *ls_session_usual(const ls_session *s, int stage)
{
    return s->shards != NULL ? ls_shards_usual(s->shards, stage) : &s->plans[stage];
}

/* The rates as the trial's optimisers gave them. */
static ls_status remember_lrs(ls_session *s, ls_err *err)
{
    const ls_plan *p = s->split ? s->updates[0].plan : s->plans[0].plan;
    int n = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < ls_plan_input_count(p) && n < LS_SESSION_LRS; i++) {
        const ls_tensor *t = ls_plan_input_at(p, i);
        if (lsi_session_is_rate(t->name)) LS_TRY(ls_tensor_read_scalar(t, &s->lr[n++], err));
    }
out:
    return st;
}

/* Plans for all other batches that ranks will meet.  Each would time their kernels when it comes to them, and
 * on a machine that is busy with the others choose otherwise than these, or than the next run. */
static ls_status choose_for_odd_batches(ls_session *first, const ls_session *s, const ls_session_options *o,
                                        ls_err *err)
{
    const ls_update u = o->tests_only ? ls_update_of_tests(s->cfg, s->ranks) : ls_update_of(s->cfg, s->ranks);
    ls_batch_size sizes[LS_BATCH_SIZES + 1];
    ls_batch_plan *p;
    int n = ls_batches_odd(sizes, &u, o->batch, s->ranks, &o->sets);
    ls_status st = LS_OK;

    if (o->evaluates) sizes[n++] = (ls_batch_size){.mode = LS_EVAL, .n = o->batch};
    for (int i = 0; i < n; i++) {
        const int stages = sizes[i].mode == LS_TRAIN ? first->n_stages : 1;
        if (sizes[i].images || (o->tests_only && sizes[i].mode == LS_TRAIN)) continue;
        for (int stage = 0; stage < stages; stage++)
            LS_TRY(ls_session_plan(first, sizes[i].mode, stage, sizes[i].n, &p, err));
    }
out:
    return st;
}

/* Weights that are gathered in 16 bits are other operands than those that a rank alone has. */
static ls_status choose_for_gathered(const ls_session *s, const ls_session_options *o, ls_err *err)
{
    const ls_outline_options how = {.ranks = s->ranks,
                                    .here = ls_comm_local_size(o->comm),
                                    .threads = o->threads,
                                    .evaluates = o->evaluates,
                                    .tests_only = o->tests_only,
                                    .sets = o->sets};
    ls_outline x = {0};
    const ls_status st = ls_outline_open(&x, s->trial, s->cfg, &how, err);

    ls_outline_release(&x);
    return st;
}

/* Kernels are chosen by timing them, once per machine; ranks that do so all at the same time would disturb
 * one another.  So the first rank of each machine compiles the plans for itself before the others begin. */
static ls_status choose_kernels(const ls_session *s, const ls_session_options *o, ls_err *err)
{
    const ls_session_options alone = {.threads = o->threads,
                                      .batch = o->batch,
                                      .update = o->update,
                                      .split = o->split,
                                      .stop = o->stop,
                                      .tell = o->tell,
                                      .tests_only = o->tests_only,
                                      .compile_only = true};
    ls_session first = {0};
    ls_status st = LS_OK;

    if (ls_comm_local_rank(o->comm) == 0) {
        st = ls_session_open(&first, s->trial, s->cfg, &alone, err);
        if (st == LS_OK) st = choose_for_odd_batches(&first, s, o, err);
    }
    ls_session_release(&first); /* what was chosen is in the file of choices */
    if (st == LS_OK && ls_comm_local_rank(o->comm) == 0 && s->place.sharding == LS_SHARD_WEIGHTS &&
        ls_session_compute(s->cfg) != LS_F32)
        st = choose_for_gathered(s, o, err);
    return st == LS_OK ? ls_comm_barrier(o->comm, "choosing kernels", err) : st;
}

#define TELL_FIRST_S 3.0
#define TELL_AGAIN_S 10.0

/* Kernels are timed the first time that a machine meets a shape: nobody should wait in silence. */
static void tell_progress(void *arg, int done, int all)
{
    ls_session *s = arg;
    const double now = ls_clock_seconds();

    if (done >= 0) {
        s->nodes_done = done;
        s->nodes_all = all;
    }
    if (now < s->tell_at) return;
    s->tell_at = now + TELL_AGAIN_S;
    fprintf(stderr,
            "lockstep: compiling the step for batches of %lld samples: at node %d of %d; Ctrl-C ends it\n",
            (long long)s->batch, s->nodes_done + 1, s->nodes_all);
}

/* Shards are added up also where there is one rank.  A device with queues works by itself: one thread feeds
 * it. */
static ls_status meet_shards(ls_session *s, const ls_session_options *o, ls_deal *deal, ls_err *err)
{
    const int threads = ls_session_staging(s).alloc != NULL ? 1 : o->threads;
    ls_peers_options how;
    ls_status st = LS_OK;

    LS_TRY(ls_shards_deal(deal, o->shards, o->batch, threads, s->rank, s->ranks, err));
    how = (ls_peers_options){.overlap = ls_config_bool(s->cfg, "parallel.overlap"),
                             .first_shard = deal->first,
                             .end_shard = deal->end,
                             .lanes = deal->lanes};
    if (s->comm == NULL) LS_TRY(ls_comm_open_self(&s->self, err));
    LS_TRY(ls_peers_create(&s->peers, s->comm != NULL ? s->comm : s->self, &how, err));
out:
    return st;
}

static ls_status meet(ls_session *s, const ls_session_options *o, ls_err *err)
{
    const bool alone = o->comm == NULL || ls_comm_size(o->comm) == 1;
    ls_peers_options how;
    ls_status st = LS_OK;

    s->comm = alone ? NULL : o->comm;
    s->rank = alone ? 0 : ls_comm_rank(o->comm);
    s->ranks = alone ? 1 : ls_comm_size(o->comm);
    LS_TRY(ls_session_place(s, o->shards, err));
    if (alone || o->shards > 0) return LS_OK; /* of shards kernels are fixed, and sums are made otherwise */
    LS_TRY(choose_kernels(s, o, err));
    how = (ls_peers_options){.wire = (ls_wire)ls_config_int(s->cfg, "parallel.wire"),
                             .overlap = ls_config_bool(s->cfg, "parallel.overlap"),
                             .share = s->place.sharding == LS_SHARD_NOTHING && ls_session_shares(s->cfg)};
    LS_TRY(ls_peers_create(&s->peers, s->comm, &how, err));
out:
    return st;
}

/* The model's own variables, as a training step would have them. */
static ls_status bind_model(ls_session *s, int64_t batch, ls_err *err)
{
    const ls_strategy train = ls_session_part(s, LS_PART_ALL), how = ls_placement_model(&train);
    ls_record *record = NULL;
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(find_record(s, (ls_build){.mode = LS_TRAIN}, batch, &record, &g, err));
    LS_TRY(ls_plan_bind_model_take(g, &how, s->state, err));
out:
    ls_record_release(record);
    return st;
}

/* Shards are computed by lanes, whose plans have variables beside the session's: here are the variables
 * alone. */
static ls_status bind_stage(ls_session *s, int stage, int64_t batch, ls_err *err)
{
    const ls_strategy how = ls_session_how(s, LS_TRAIN, stage);
    ls_record *record = NULL;
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(find_record(s, (ls_build){.mode = LS_TRAIN}, batch, &record, &g, err));
    LS_TRY(ls_plan_bind_take(g, &how, s->state, &s->n_stages, err));
out:
    ls_record_release(record);
    return st;
}

static ls_status open_stage(ls_session *s, int stage, int64_t batch, ls_err *err)
{
    ls_batch_plan *p;
    ls_status st;

    if (s->shards != NULL) return bind_stage(s, stage, batch, err);
    st = ls_session_plan(s, LS_TRAIN, stage, batch, &p, err);
    if (st == LS_OK) s->n_stages = ls_plan_stages(p->plan);
    return st;
}

static ls_status open_test_plan(ls_session *s, int64_t batch, ls_err *err)
{
    ls_batch_plan *p;
    ls_status st = LS_OK;

    s->n_stages = 1;
    LS_TRY(bind_model(s, batch, err));
    LS_TRY(s->shards != NULL ? ls_shards_open_usual(s->shards, LS_EVAL, batch, err)
                             : ls_session_plan(s, LS_EVAL, 0, batch, &p, err));
out:
    return st;
}

/* For every stage the plan for the usual batch, and that of its update where there are two. */
static ls_status open_plans(ls_session *s, int64_t batch, ls_err *err)
{
    ls_strategy update = ls_session_part(s, LS_PART_UPDATE);
    ls_status st = LS_OK;

    s->n_stages = 1;
    for (int i = 0; i < s->n_stages; i++) {
        LS_TRY(open_stage(s, i, batch, err));
        if (s->n_stages > LS_SESSION_STAGES)
            return ls_fail(
                err, LS_UNSUPPORTED,
                "the model trains in %d stages, of which gradients of several batches can be added "
                "up for %d; use parallel.accumulate=1 and reproducible=false",
                s->n_stages, LS_SESSION_STAGES);
    }
    if (s->shards != NULL) LS_TRY(ls_shards_open_usual(s->shards, LS_TRAIN, batch, err));
    for (update.stage = 0; s->split && update.stage < s->n_stages; update.stage++)
        LS_TRY(ls_batch_plan_open(&s->updates[update.stage], s, (ls_build){.mode = LS_TRAIN}, &update, batch,
                                  s->state, err));
out:
    return st;
}

ls_status ls_session_open(ls_session *s, const ls_trial *trial, ls_config *cfg, const ls_session_options *o,
                          ls_err *err)
{
    const int64_t batch = o->shards > 0 ? (o->batch + o->shards - 1) / o->shards : o->batch;
    ls_memory_choice choice;
    ls_deal deal;
    ls_status st = LS_OK;

    *s = (ls_session){.trial = trial,
                      .cfg = cfg,
                      .tests_only = o->tests_only,
                      .split = o->split && !o->tests_only,
                      .update_samples = o->update,
                      .batch = batch,
                      .tell_at = ls_clock_seconds() + TELL_FIRST_S};
    LS_TRY(meet(s, o, err));
    LS_TRY(ls_prefetch_settle(s, o, err));
    LS_TRY(ls_memory_settle(&choice, s, o, err));
    s->recompute = choice.recompute;
    s->limit = choice.limit;
    s->planned = choice.planned;
    s->in_step = s->peers != NULL && (ls_config_bool(cfg, "parallel.sync_batchnorm") ||
                                      s->place.sharding == LS_SHARD_WEIGHTS); /* which are gathered there */
    LS_TRY(ls_device_open_at(&s->dev, ls_config_text(cfg, "device"), o->shards > 0 ? 1 : o->threads,
                             o->comm != NULL ? ls_comm_local_rank(o->comm) : 0, err));
    s->dev->unbacked = o->compile_only;
    s->dev->limit = choice.limit;
    s->dev->fixed = o->shards > 0;
    s->dev->tf32 = ls_session_rounds(cfg);
    s->dev->stop = o->stop;
    if (o->tell) {
        s->dev->progress = tell_progress;
        s->dev->progress_arg = s;
    }
    if (s->peers != NULL && !s->dev->unbacked) LS_TRY(ls_peers_link(s->peers, s->dev, err));
    s->threads = s->dev->threads;
    ls_parallel_set_wait_policy(s->threads);
    if (o->shards > 0) LS_TRY(meet_shards(s, o, &deal, err));
    LS_TRY(ls_state_create(&s->state, s->dev, err));
    ls_state_set_peers(s->state, s->peers);
    if (o->shards > 0) LS_TRY(ls_shards_create(&s->shards, s, &deal, err));
    LS_TRY(o->tests_only ? open_test_plan(s, batch, err) : open_plans(s, batch, err));
    if (!o->tests_only) LS_TRY(remember_lrs(s, err));
    if (!o->compile_only) LS_TRY(ls_state_init(s->state, (uint64_t)ls_config_int(cfg, "seed"), err));
    if (s->comm != NULL) LS_TRY(ls_comm_barrier(s->comm, "initial values", err));
    if (o->shards > 0) s->threads = deal.lanes;
out:
    if (s->dev != NULL) { /* a run that goes on ends after a checkpoint, whatever it compiles until then */
        s->dev->stop = NULL;
        s->dev->progress = NULL;
    }
    return st;
}

void ls_session_release(ls_session *s)
{
    ls_shards_destroy(s->shards);
    for (int i = 0; i < s->n_plans; i++) ls_batch_plan_release(&s->plans[i]);
    for (int i = 0; i < LS_SESSION_STAGES; i++) ls_batch_plan_release(&s->updates[i]);
    ls_records_release(&s->records);
    ls_state_destroy(s->state);
    ls_peers_destroy(s->peers);
    ls_comm_close(s->self);
    ls_device_close(s->dev);
    *s = (ls_session){0};
}

int ls_session_recomputed(const ls_session *s, int *of)
{
    int n = 0;

    *of = (int)ls_session_usual(s, 0)->record->graph->n_units;
    for (int32_t u = 1; u <= *of; u++) n += ls_units_have(&s->recompute, u);
    return n;
}

ls_plan_memory ls_session_memory(const ls_session *s)
{
    ls_plan_memory m = {0};

    for (int i = 0; i < s->n_plans; i++) ls_memory_add_plan(&m, s->plans[i].plan);
    for (int i = 0; s->split && i < s->n_stages; i++) ls_memory_add_plan(&m, s->updates[i].plan);
    ls_memory_add_workspace(&m, s->state);
    ls_memory_add_state(&m, s->state);
    if (s->peers != NULL) ls_memory_add_comm(&m, ls_peers_bytes(s->peers));
    if (s->shards != NULL) ls_shards_add_memory(s->shards, &m);
    return m;
}

size_t ls_session_comm_bytes(const ls_session *s)
{
    size_t sum = 0;

    if (s->peers != NULL) sum += ls_peers_bytes(s->peers) + ls_state_shared_bytes(s->state);
    return sum;
}
