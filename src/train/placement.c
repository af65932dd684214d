/* placement.c: which strategy is which placement. */
#include "train/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/fault.h"

enum { STRATEGY_DDP, STRATEGY_ZERO1, STRATEGY_FSDP, STRATEGY_HYBRID }; /* values of parallel.strategy */

/* Units that are gathered ahead, by the setting; -1: it is no number of them. */
static int prefetch_of(ls_config *cfg)
{
    const char *text = ls_config_text(cfg, "parallel.prefetch");
    char *end;
    long n;

    if (strcmp(text, "auto") == 0) return 1;
    n = strtol(text, &end, 10);
    return end != text && *end == '\0' && n >= 0 && n <= 1000 ? (int)n : -1;
}

/* The setting with which no update can be left to the next step; NULL: there is none.  All sums must be there
 * before an update where they are clipped or looked at, batches are added up, or exchanges wait for the end;
 * ranks that ask one another how many samples there are must have nothing on its way; and devices with queues
 * record a run as one. */
static const char *hindrance(ls_config *cfg)
{
    const char *device = ls_config_text(cfg, "device");
    ls_strategy guarded = {0};

    ls_session_guard(cfg, &guarded);
    if (ls_config_int(cfg, "parallel.strategy") != STRATEGY_DDP) return "parallel.strategy other than ddp";
    if (ls_config_bool(cfg, "reproducible")) return "reproducible=true";
    if (ls_config_real(cfg, "parallel.clip_norm") > 0) return "parallel.clip_norm";
    if (ls_config_int(cfg, "parallel.accumulate") > 1) return "parallel.accumulate";
    if (!ls_config_bool(cfg, "parallel.overlap")) return "parallel.overlap=false";
    if (guarded.loss_scale != 0) return "precision=fp16";
    if (guarded.guard != LS_GUARD_NONE)
        return "a look at all gradients (train.on_nonfinite, train.check_gradients)";
    if (ls_config_int(cfg, "data.on_error") == LS_ON_ERROR_SKIP) return "data.on_error=skip";
    if (strcmp(device, "cpu") != 0 && strcmp(device, "ref") != 0) return "device other than cpu";
    return NULL;
}

/* Whether steps leave their updates to the next one.  Where ranks of a machine keep weights once, there is a
 * barrier before every update, and nothing to be gained. */
static bool carries(ls_config *cfg, int ranks, int here, int64_t shards)
{
    enum { CARRY_AUTO, CARRY_ALWAYS, CARRY_NEVER };
    const int64_t want = ls_config_int(cfg, "parallel.carry");

    if (want == CARRY_NEVER || ranks < 2 || shards > 0 || hindrance(cfg) != NULL) return false;
    if (getenv(LS_FAULT_OVERFLOW) != NULL)
        return false; /* an injected scale is of one run, not of the next */
    if (here > 1 && strcmp(ls_config_choice(cfg, "parallel.share"), "always") == 0) return false;
    return want == CARRY_ALWAYS || here == 1;
}

/* Settings that contradict each other, or mean nothing. */
ls_status ls_placement_check(ls_config *cfg, ls_err *err)
{
    const int64_t strategy = ls_config_int(cfg, "parallel.strategy");

    if (strategy != STRATEGY_DDP && strcmp(ls_config_choice(cfg, "parallel.share"), "always") == 0)
        return ls_fail(err, LS_INVALID,
                       "parallel.share=always keeps a model once per machine, and parallel.strategy=%s in "
                       "pieces; set one of the two",
                       ls_config_choice(cfg, "parallel.strategy"));
    if (strcmp(ls_config_choice(cfg, "parallel.carry"), "always") == 0 && hindrance(cfg) != NULL)
        return ls_fail(
            err, LS_INVALID,
            "parallel.carry=always leaves updates to the next step, which %s does not allow; leave "
            "parallel.carry out, or the other",
            hindrance(cfg));
    if (prefetch_of(cfg) < 0)
        return ls_fail(err, LS_INVALID, "parallel.prefetch=%s: must be auto, or a number from 0 to 1000",
                       ls_config_text(cfg, "parallel.prefetch"));
    return LS_OK;
}

/* Every machine must have the same groups: all ranks look at the numbers of all. */
static ls_status check_group(const ls_session *s, int64_t ranks, ls_err *err)
{
    const int here = ls_comm_local_size(s->comm);
    double ends[2] = {here, -here};
    ls_status st = LS_OK;

    if (!ls_comm_absent(s->comm))
        LS_TRY(ls_comm_max(s->comm, ends, 2, "counting the ranks of machines", err));
    if (ends[0] != -ends[1])
        return ls_fail(
            err, LS_INVALID,
            "parallel.strategy=hybrid: machines have from %d to %d ranks, and each must have as many "
            "groups as the others; start as many ranks on each, or set parallel.strategy=fsdp",
            (int)-ends[1], (int)ends[0]);
    if (ranks > 0 && here % ranks != 0)
        return ls_fail(err, LS_INVALID,
                       "parallel.shard_group=%lld: a machine has %d ranks, which do not make up groups of so "
                       "many; set it to a number that divides them, or to 0 for all of a machine",
                       (long long)ranks, here);
out:
    return st;
}

/* Shards of the reproducible mode are computed by threads, side by side and as many as each rank has: nobody
 * gathers weights there, which are therefore whole on every rank. */
ls_placement ls_placement_of(ls_config *cfg, int ranks, int here, int64_t shards)
{
    const int64_t strategy = ls_config_int(cfg, "parallel.strategy"),
                  group = ls_config_int(cfg, "parallel.shard_group");
    ls_placement p = {.pieces = 1,
                      .prefetch = prefetch_of(cfg),
                      .carry = carries(cfg, ranks, here, shards),
                      .regather = (ls_regather)ls_config_int(cfg, "parallel.reshard")};

    if (ranks < 2 || strategy == STRATEGY_DDP) return p;
    p.group = strategy == STRATEGY_HYBRID ? LS_GROUP_SHARD : LS_GROUP_ALL;
    p.pieces = p.group == LS_GROUP_ALL ? ranks : group > 0 ? (int)group : here;
    if (p.pieces == ranks) p.group = LS_GROUP_ALL; /* one group has nobody to be replicated by: it is fsdp */
    if (p.pieces > 1)
        p.sharding = strategy == STRATEGY_ZERO1 || shards > 0 ? LS_SHARD_STATE : LS_SHARD_WEIGHTS;
    return p;
}

const char *ls_placement_text(ls_config *cfg, const ls_placement *place, char *buf, size_t size)
{
    static const char *const again[] = {
        "gathered again for gradients but for the last unit, with which these begin",
        "gathered again for gradients", "kept for gradients, which costs their memory and saves a gather"};
    const bool weights = place->sharding == LS_SHARD_WEIGHTS;

    if (place->sharding == LS_SHARD_NOTHING)
        snprintf(buf, size, "every rank has all of the model");
    else if (weights)
        snprintf(
            buf, size,
            "weights and what optimisers remember in %d pieces; weights are gathered %d units ahead%s, %s",
            place->pieces, place->prefetch,
            strcmp(ls_config_text(cfg, "parallel.prefetch"), "auto") == 0 ? " (a run chooses by its wire)"
                                                                          : "",
            again[place->regather]);
    else
        snprintf(buf, size, "what optimisers remember in %d pieces%s", place->pieces,
                 ls_config_bool(cfg, "reproducible") ? "; weights are whole for shards that threads compute"
                                                     : "");
    return buf;
}

ls_status ls_session_place(ls_session *s, int64_t shards, ls_err *err)
{
    const int64_t group = ls_config_int(s->cfg, "parallel.shard_group");
    ls_status st = LS_OK;

    s->place = (ls_placement){.pieces = 1};
    if (s->comm == NULL) return LS_OK;
    s->place = ls_placement_of(s->cfg, s->ranks, ls_comm_local_size(s->comm), shards);
    /* Machines may have different numbers of ranks, and all must do the same. */
    s->place.carry = carries(s->cfg, s->ranks, ls_comm_hosts(s->comm) == s->ranks ? 1 : 2, shards);
    if (s->place.group != LS_GROUP_SHARD) return LS_OK;
    LS_TRY(check_group(s, group, err));
    ls_comm_set_shard_group(s->comm, (int)group);
out:
    return st;
}

ls_strategy ls_placement_strategy(ls_config *cfg, const ls_placement *place, bool ranks, int64_t update,
                                  ls_part part)
{
    ls_strategy how = ls_session_strategy(cfg, ranks, update, part);

    how.sharding = place->sharding;
    how.pieces = place->pieces;
    how.group = place->group;
    how.regather = place->regather;
    how.prefetch = place->prefetch;
    how.carry = place->carry && part == LS_PART_ALL;
    return how;
}

ls_strategy ls_session_part(const ls_session *s, ls_part part)
{
    return ls_placement_strategy(s->cfg, &s->place, s->peers != NULL, s->update_samples, part);
}

/* Evaluations of ranks are no business of one another, unless they have weights between them. */
ls_strategy ls_placement_evaluation(const ls_strategy *how)
{
    return (ls_strategy){.compute = how->compute,
                         .sharding = how->sharding == LS_SHARD_WEIGHTS ? how->sharding : LS_SHARD_NOTHING,
                         .pieces = how->pieces,
                         .group = how->group,
                         .bucket_bytes = how->bucket_bytes,
                         .prefetch = how->prefetch};
}

ls_strategy ls_placement_model(const ls_strategy *how)
{
    ls_strategy model = ls_placement_evaluation(how);

    model.ranks = how->ranks;
    model.share_from = how->share_from;
    if (how->sharding != LS_SHARD_NOTHING) model.sharding = how->sharding; /* then no machine keeps it once */
    return model;
}

ls_strategy ls_session_how(const ls_session *s, ls_mode mode, int stage)
{
    ls_strategy how = ls_session_part(s, mode == LS_TRAIN && s->split ? LS_PART_GRADIENTS : LS_PART_ALL);

    if (mode == LS_TRAIN)
        how.recompute = s->recompute;
    else
        how = ls_placement_evaluation(&how);
    how.stage = stage;
    return how;
}

double ls_session_traffic(const ls_session *s)
{
    const int64_t batches = s->split && s->shards == NULL ? ls_config_int(s->cfg, "parallel.accumulate") : 1;
    double sum = 0;

    for (int i = 0; s->comm != NULL && i < s->n_stages; i++) {
        sum += (double)batches * ls_plan_traffic(ls_session_usual(s, i)->plan);
        if (s->split) sum += ls_plan_traffic(s->updates[i].plan);
    }
    return sum;
}
