/* test_lower.c: one record makes every part of a step: for each trial and each strategy the first half of the
 * passes leaves plain ops in an order in which inputs come first, and the record as it was; and memory that
 * runs out on the way is reported. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "faults.h"
#include "lockstep/trial.h"
#include "ops/macros.h"
#include "passes/lower.h"
#include "small_trials.h"

/* -- every trial in every way -----------------------------------------------------------------------------
 */

/* What the trainer itself writes before an update. */
static bool is_of_update(const char *input)
{
    static const char *const known[] = {"loss_scale",   "rank.weight",   "control",    "metrics",
                                        LS_SKIPS_KNOWN, LS_GUARD_BEFORE, LS_GUARD_RANK};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(input, known[i]) == 0) return true;
    if (strncmp(input, LS_RATE_AGAIN, strlen(LS_RATE_AGAIN)) == 0) input += strlen(LS_RATE_AGAIN);
    return strncmp(input, "lr", 2) == 0;
}

static void check_program(const ls_graph *g, const ls_strategy *how)
{
    int sums = 0, collectives = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_op *op = g->nodes[i]->op;
        CHECK(op != &ls_op_gradients && op != &ls_op_update && op != &ls_op_keep);
        for (int k = 0; k < g->nodes[i]->n_in; k++) CHECK(g->values[g->nodes[i]->in[k]]->node < i);
        collectives += (op->flags & LS_OP_COLLECTIVE) != 0;
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (how->part == LS_PART_UPDATE && g->values[i]->kind == LS_VALUE_INPUT)
            CHECK(is_of_update(g->values[i]->name));
    for (int32_t i = 0; i < g->n_vars; i++) sums += g->vars[i]->role == LS_VAR_ACCUMULATED;
    CHECK((sums > 0) == (how->part != LS_PART_ALL && how->shards == 0));
    if (how->shards > 0 || (how->ranks && how->part != LS_PART_GRADIENTS)) CHECK(collectives >= 1);
    if (!how->ranks && how->shards == 0) CHECK_EQ_INT(collectives, 0);
}

/* -- leaves and the sums of them --------------------------------------------------------------------------
 */

enum { BUCKETS = 64, TENSORS = 256 };

/* What travels in each bucket: lengths of its tensors. */
typedef struct cargo {
    int n[BUCKETS];
    int64_t length[BUCKETS][TENSORS];
} cargo;

static void load(const ls_graph *g, ls_coll_op phase, cargo *to)
{
    const int first = phase == LS_COLL_OP_LEAF ? 2 : 1;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!(n->op->flags & LS_OP_COLLECTIVE) || n->op->coll_op != phase) continue;
        const int bucket = ((const ls_collective_attr *)n->attr)->bucket;
        REQUIRE(bucket < BUCKETS && n->n_in - first <= TENSORS);
        CHECK_EQ_INT(to->n[bucket], 0); /* a bucket travels once in an update */
        for (int k = first; k < n->n_in; k++)
            to->length[bucket][to->n[bucket]++] = ls_shape_count(*ls_node_in_shape(g, n, k));
    }
}

static cargo *leaves, *starts;

static void note_cargo(const ls_graph *g, const ls_strategy *how)
{
    if (how->shards == 0 || leaves == NULL) return;
    if (how->part == LS_PART_GRADIENTS) load(g, LS_COLL_OP_LEAF, leaves);
    if (how->part == LS_PART_UPDATE) load(g, LS_COLL_OP_START, starts);
}

/* Lowers a copy; returns the number of stages. */
static int lower(const ls_graph *record, const char *trial, ls_strategy how)
{
    ls_graph *g = NULL;
    int n_stages;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_clone(&g, record, &err), &err);
    ls_passes_lower(g, &how);
    if (!CHECK(ls_graph_status(g, &err) == LS_OK))
        printf("  %s, part %d, stage %d: %s\n", trial, (int)how.part, how.stage, err.text);
    check_program(g, &how);
    note_cargo(g, &how);
    n_stages = g->n_stages;
    ls_graph_destroy(g);
    return n_stages;
}

/* What the shards of a step give is what its updates take, tensor by tensor. */
static void leaves_are_what_updates_add_up(const ls_graph *record, const char *trial)
{
    ls_strategy how = {.clip_norm = 1, .update = 4, .shards = 4, .guard = LS_GUARD_SKIP};
    cargo given = {.n = {0}}, taken = {.n = {0}};
    int n_stages = 1, filled = 0;

    leaves = &given;
    starts = &taken;
    for (; how.stage < n_stages; how.stage++) {
        how.part = LS_PART_GRADIENTS;
        n_stages = lower(record, trial, how);
        how.part = LS_PART_UPDATE;
        CHECK_EQ_INT(lower(record, trial, how), n_stages);
    }
    leaves = starts = NULL;
    for (int i = 0; i < BUCKETS; i++) {
        filled += given.n[i] > 0;
        CHECK_EQ_INT(given.n[i], taken.n[i]);
        CHECK(memcmp(given.length[i], taken.length[i], sizeof given.length[i]) == 0);
    }
    CHECK(filled >= 2); /* gradients, and the rest */
}

static void scale(ls_strategy *how)
{
    how->compute = LS_F16;
    how->guard = LS_GUARD_SKIP;
    how->loss_scale = 65536;
    how->scale_growth = 2000;
}

static void every_strategy_leaves_plain_ops(void)
{
    for (const small_trial *l = small_trials; l->trial != NULL; l++) {
        ls_graph *record, *copy = NULL;
        ls_err err = {0};
        if (l->like != NULL) continue;
        record = small_trial_record(l);
        for (int way = 0; way < 4; way++) {
            const bool ranks = way % 2 != 0;
            ls_strategy how = {.ranks = ranks,
                               .share_from = 1,
                               .bucket_bytes = 50000,
                               .sync_norm = ranks,
                               .clip_norm = 1,
                               .update = 4};
            int n_stages = 1;
            if (way > 1) scale(&how);
            CHECK_EQ_INT(lower(record, l->trial, how), 1);
            for (; how.stage < n_stages; how.stage++) {
                how.part = LS_PART_GRADIENTS;
                n_stages = lower(record, l->trial, how);
                how.part = LS_PART_UPDATE;
                CHECK_EQ_INT(lower(record, l->trial, how), n_stages);
            }
            if (strcmp(l->trial, "aae") == 0) CHECK_EQ_INT(n_stages, 2); /* it judges with the new critic */
        }
        leaves_are_what_updates_add_up(record, l->trial);
        REQUIRE_OK(ls_graph_clone(&copy, record, &err), &err);
        CHECK(ls_graph_hash(copy) == ls_graph_hash(record));
        ls_graph_destroy(copy);
        ls_graph_destroy(record);
    }
}

/* -- no memory --------------------------------------------------------------------------------------------
 */

/* A batch norm, a pool, and a second loss that needs what the first has trained. */
static void build_all(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 3)), d, e;

    x = ls_replay(s, ls_batchnorm(s, x, "bn"), "pool", 4);
    d = ls_linear(s, x, "d", .out = 1);
    ls_minimise(s, ls_reduce_mean(ls_square(d), LS_ALL_AXES, false), "d.*",
                (ls_optimiser){.rule = LS_ADAM, .lr = 0.1});
    e = ls_linear(s, ls_linear(s, ls_batchnorm(s, x, "bn"), "e", .out = 3), "d", .out = 1);
    ls_minimise(s, ls_reduce_mean(e, LS_ALL_AXES, false), "e.*", (ls_optimiser){.rule = LS_SGD, .lr = 0.1});
    ls_metric(s, "e", ls_reduce_mean(e, LS_ALL_AXES, false));
}

static ls_status lower_one(void *arg, ls_err *err)
{
    ls_step *s = NULL;
    ls_graph *g = NULL, *copy = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_step_create(&s, 2, LS_TRAIN, err));
    build_all(s);
    LS_TRY(ls_step_status(s, err));
    g = ls_step_graph_take(s);
    LS_TRY(ls_graph_clone(&copy, g, err));
    ls_passes_lower(copy, arg);
    LS_TRY(ls_graph_status(copy, err));
out:
    ls_graph_destroy(copy);
    ls_graph_destroy(g);
    ls_step_destroy(s);
    return st;
}

static void memory_may_run_out(void)
{
    ls_strategy how = {.ranks = true, .share_from = 1, .bucket_bytes = 1, .sync_norm = true, .clip_norm = 1};

    scale(&how);
    check_faults("a whole step of several ranks", lower_one, &how);
    for (how.stage = 0; how.stage < 2; how.stage++) {
        how.part = LS_PART_GRADIENTS;
        check_faults("gradients of a stage", lower_one, &how);
        how.part = LS_PART_UPDATE;
        check_faults("the update of a stage", lower_one, &how);
    }
    how = (ls_strategy){.shards = 4};
    for (how.stage = 0; how.stage < 2; how.stage++) {
        how.part = LS_PART_GRADIENTS;
        check_faults("gradients of a shard", lower_one, &how);
        how.part = LS_PART_UPDATE;
        check_faults("the update by shards", lower_one, &how);
    }
}

int main(void)
{
    CHECK_RUN(every_strategy_leaves_plain_ops);
    CHECK_RUN(memory_may_run_out);
    return CHECK_DONE();
}
