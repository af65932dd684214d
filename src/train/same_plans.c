/* same_plans.c: whether all ranks are about to run the same step.
 *
 * Plans are compared by the hash of what they compute (ls_plan_hash), which does not depend on devices,
 * threads or ranks, and by the order in which they wait for other ranks (ls_plan_waits): every stage, its
 * update where that is a plan of its own, and evaluation of whole batches and of single samples.  Batches of
 * other sizes come later and on single ranks; they are built from the same trial, and one sample is the
 * oddest that there can be: its step, and its evaluation, must have the collectives of the usual one, in
 * their order, or ranks would wait for each other for ever at the end of an epoch. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/hash.h"
#include "train/team.h"

enum { PLANS = 4 * LS_SESSION_STAGES + 3, NAME = 64 };

/* Hashes of plans do not know machines, but the order in which ranks wait for each other may. */
#define EXCHANGES "the order of exchanges"

typedef struct one_plan {
    char name[NAME];
    uint64_t hash;
} one_plan;

typedef struct all_plans {
    one_plan of[PLANS];
    int32_t n, unused; /* nothing that is sent is left to chance */
} all_plans;

static void add(all_plans *all, uint64_t hash, const char *what, int stage, int stages)
{
    one_plan *p = &all->of[all->n++];

    if (stages > 1)
        snprintf(p->name, sizeof p->name, "%s, stage %d of %d", what, stage + 1, stages);
    else
        snprintf(p->name, sizeof p->name, "%s", what);
    p->hash = hash;
}

/* Compiled when it is first needed, by each rank for as many samples as it has: here its graph is enough. */
static ls_status hash_evaluation(const ls_session *s, int64_t batch, uint64_t *hash, ls_err *err)
{
    const ls_build how = {.mode = LS_EVAL};
    ls_records own = {0};
    ls_record *x = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_records_find(&own, s->trial, s->cfg, &how, batch, &x, err));
    *hash = ls_plan_hash_of(x->graph);
    LS_TRY(ls_graph_status(x->graph, err));
out:
    ls_record_release(x);
    ls_records_release(&own);
    return st;
}

/* Looks whether a batch of n samples has the collectives of how->turns (0: any), as far as passes have to run
 * for that; *out are its own. */
static ls_status check_turns(const ls_session *s, const ls_build *build, const ls_strategy *how, int64_t n,
                             ls_turns *out, ls_err *err)
{
    ls_records own = {0};
    ls_record *x = NULL;
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_records_find(&own, s->trial, s->cfg, build, n, &x, err));
    LS_TRY(ls_graph_clone(&g, x->graph, err));
    LS_TRY(ls_plan_check_turns(g, how, s->dev, s->state, out, err));
out:
    ls_record_release(x);
    ls_records_release(&own);
    return st;
}

/* Training steps of one sample.  Shards have no collectives. */
static ls_status check_training(const ls_session *s, ls_err *err)
{
    const ls_build build = {.mode = LS_TRAIN, .freeze = ls_config_text(s->cfg, "train.freeze")};
    ls_status st = LS_OK;

    if (s->shards != NULL || s->tests_only || s->batch == 1) return LS_OK;
    for (int i = 0; i < s->n_stages; i++) {
        ls_strategy how = ls_session_how(s, LS_TRAIN, i);
        how.turns = ls_plan_turns(ls_session_usual(s, i)->plan);
        if (how.turns != 0) LS_TRY(check_turns(s, &build, &how, 1, NULL, err));
    }
out:
    return st;
}

/* Evaluation, where it gathers weights: a rank that has no samples left runs that of one. */
static ls_status check_evaluation(const ls_session *s, all_plans *all, ls_err *err)
{
    const ls_build build = {.mode = LS_EVAL};
    ls_strategy how = ls_session_how(s, LS_EVAL, 0);
    ls_turns usual;
    ls_status st = LS_OK;

    if (s->shards != NULL || s->place.sharding != LS_SHARD_WEIGHTS) return LS_OK;
    LS_TRY(check_turns(s, &build, &how, s->batch, &usual, err));
    add(all, usual.waits, EXCHANGES " of evaluation", 0, 1);
    how.turns = usual.turns;
    if (s->batch > 1) LS_TRY(check_turns(s, &build, &how, 1, NULL, err));
out:
    return st;
}

static ls_status list_plans(const ls_session *s, all_plans *all, ls_err *err)
{
    uint64_t whole, single;
    ls_status st = LS_OK;

    *all = (all_plans){.n = 0};
    for (int i = 0; i < s->n_stages; i++) {
        add(all, ls_plan_hash(ls_session_usual(s, i)->plan),
            s->tests_only ? "tests"
            : s->split    ? "gradients"
                          : "training",
            i, s->n_stages);
        add(all, ls_plan_waits(ls_session_usual(s, i)->plan), EXCHANGES, i, s->n_stages);
        if (!s->split) continue;
        add(all, ls_plan_hash(s->updates[i].plan), "update", i, s->n_stages);
        add(all, ls_plan_waits(s->updates[i].plan), EXCHANGES, i, s->n_stages);
    }
    LS_TRY(hash_evaluation(s, ls_config_int(s->cfg, "batch.per_rank"), &whole, err));
    LS_TRY(hash_evaluation(s, 1, &single, err));
    add(all, whole, "evaluation", 0, 1);
    add(all, single, "evaluation of single samples", 0, 1);
out:
    return st;
}

static ls_status compare(const all_plans *first, const all_plans *other, int rank, ls_err *err)
{
    for (int i = 0; i < first->n && i < other->n; i++) {
        const one_plan *a = &first->of[i], *b = &other->of[i];
        if (a->hash == b->hash && strncmp(a->name, b->name, NAME) == 0) continue;
        return ls_fail(err, LS_DISAGREE,
                       "rank %d has another plan for %.*s than rank 0 (%016llx, rank 0: %016llx); all ranks "
                       "need the same version of the program and of the model%s",
                       rank, NAME, a->name, (unsigned long long)b->hash, (unsigned long long)a->hash,
                       strncmp(a->name, EXCHANGES, sizeof EXCHANGES - 1) == 0
                           ? ", or machines with the same number of ranks and the same device"
                           : "");
    }
    if (first->n == other->n) return LS_OK;
    return ls_fail(err, LS_DISAGREE, "rank %d has %d plans, rank 0 has %d; all ranks need the same model",
                   rank, (int)other->n, (int)first->n);
}

ls_status ls_team_agree_on_plans(ls_comm *c, const ls_session *s, ls_err *err)
{
    all_plans mine, *all;
    ls_status st;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)ls_comm_size(c));
    st = all != NULL ? list_plans(s, &mine, err) : ls_fail(err, LS_NOMEM, "ranks: no memory");
    if (st == LS_OK) st = check_training(s, err);
    if (st == LS_OK) st = check_evaluation(s, &mine, err);
    LS_TRY(ls_team_fail_once(c, st, "comparing plans", err));
    LS_TRY(ls_comm_gather_all(c, &mine, sizeof mine, all, "comparing plans", err));
    for (int rank = 1; rank < ls_comm_size(c); rank++) LS_TRY(compare(&all[0], &all[rank], rank, err));
out:
    ls_free(all);
    return st;
}
