/* test_recompute.c: activations that are dropped and computed again: the same bits in every variable and
 * metric of every trial (with the argument `all` also of large ones, in bf16, and two on far); less memory;
 * statistics that move on once; and clones that cannot begin before the gradient has arrived. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "exec/compile.h"
#include "exec/tensor.h"
#include "lockstep/trial.h"
#include "ops/ops.h"
#include "passes/recompute.h"
#include "small_trials.h"

enum { STEPS = 3, TENSORS = 1024 };

static bool all; /* the slow cases, too */

typedef struct outcome {
    uint64_t hash[TENSORS];
    int n;
    ls_plan_memory memory;
    double flops;
} outcome;

static void note(outcome *o, const ls_tensor *t)
{
    ls_err err = {0};

    REQUIRE(o->n < TENSORS);
    REQUIRE_OK(ls_tensor_hash(t, 0, &o->hash[o->n++], &err), &err);
}

/* -- the same bits ----------------------------------------------------------------------------------------
 */

typedef struct built {
    ls_config *cfg;
    ls_step *step;
    ls_graph *record;
} built;

static built build(const small_trial *t)
{
    const ls_trial *trial = NULL;
    built b = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_trial_find(&trial, t->trial, &err), &err);
    REQUIRE_OK(ls_config_create(&b.cfg, trial, &err), &err);
    REQUIRE_OK(ls_config_set(b.cfg, "batch.per_rank=4", &err), &err);
    for (int i = 0; i < SMALL_SETTINGS && t->settings[i] != NULL; i++)
        REQUIRE_OK(ls_config_set(b.cfg, t->settings[i], &err), &err);
    REQUIRE_OK(ls_trial_build(&b.step, trial, b.cfg, LS_TRAIN, &err), &err);
    b.record = ls_step_graph_take(b.step);
    return b;
}

static void release(built *b)
{
    ls_graph_destroy(b->record);
    ls_step_destroy(b->step);
    ls_config_destroy(b->cfg);
}

static void train(const built *b, const char *device, const ls_strategy *how, outcome *o)
{
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *plan = NULL;
    ls_graph *g = NULL;
    ls_err err = {0};

    *o = (outcome){.n = 0};
    REQUIRE_OK(ls_device_open(&dev, device, 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_graph_clone(&g, b->record, &err), &err);
    REQUIRE_OK(ls_plan_compile_as(&plan, g, how, dev, state, &err), &err);
    REQUIRE_OK(ls_state_init(state, 5, &err), &err);
    ls_step_write_defaults(b->step, plan);
    ls_step_write_synthetic(b->step, plan, 5);
    for (uint32_t i = 0; i < STEPS; i++) {
        ls_step_write_rng(plan, 5, i, 0);
        REQUIRE_OK(ls_plan_run(plan, &err), &err);
    }
    for (int i = 0; i < ls_state_count(state); i++) note(o, ls_state_at(state, i));
    for (int i = 0; i < ls_plan_fetch_count(plan); i++) note(o, ls_plan_fetch_at(plan, i));
    o->memory = ls_plan_memory_of(plan);
    o->flops = ls_plan_flops(plan);
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(dev);
}

static void check_same(const small_trial *t, const char *device, const outcome *a, const outcome *b)
{
    int differ = 0;

    for (int i = 0; i < a->n && i < b->n; i++) differ += a->hash[i] != b->hash[i];
    if (!CHECK(a->n == b->n && differ == 0))
        printf("  %s on %s: %d of %d tensors differ\n", t->trial, device, differ, a->n);
}

static void compare(const small_trial *t, const char *device, ls_strategy how)
{
    static outcome kept, again;
    built b = build(t);

    train(&b, device, &how, &kept);
    how.recompute.all = true;
    train(&b, device, &how, &again);
    check_same(t, device, &kept, &again);
    if (strcmp(t->trial, "linear") != 0 && !CHECK(again.flops > kept.flops))
        printf("  %s: nothing is computed again\n", t->trial);
    release(&b);
}

/* Reference kernels take long: of the device with memory of its own, a network with random layers and one
 * with attention. */
static bool runs_far(const small_trial *t)
{
    return strcmp(t->trial, "mnist") == 0 || strcmp(t->trial, "vit-tiny") == 0;
}

static void every_trial_has_the_same_bits(void)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++) {
        if (t->like != NULL || (t->large && !all)) continue;
        compare(t, "cpu", (ls_strategy){0});
        if (all) compare(t, "cpu", (ls_strategy){.compute = LS_BF16});
        if (all && runs_far(t)) compare(t, "far", (ls_strategy){.clip_norm = 1});
    }
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

/* A transformer of several blocks, whose activations are most of what a step takes. */
static void memory_is_saved(void)
{
    static const small_trial deep = {.trial = "vit-tiny", .settings = {"model.depth=8"}};
    static outcome kept, again;
    built b = build(&deep);

    train(&b, "cpu", &(ls_strategy){0}, &kept);
    train(&b, "cpu", &(ls_strategy){.recompute = {.all = true}}, &again);
    CHECK(again.memory.weights == kept.memory.weights && again.memory.optimizer == kept.memory.optimizer);
    if (!CHECK(2 * again.memory.activations < kept.memory.activations))
        printf("  activations: %zu, and %zu with recompute\n", kept.memory.activations,
               again.memory.activations);
    /* The forward pass of blocks once more, and no more than that: a third of forward and backward. */
    if (!CHECK(again.flops > 1.2 * kept.flops && again.flops < 1.34 * kept.flops))
        printf("  FLOPs: %g, and %g with recompute\n", kept.flops, again.flops);
    release(&b);
}

static ls_graph *lowered(const small_trial *t, const ls_strategy *how)
{
    ls_graph *g = small_trial_record(t);
    ls_err err = {0};

    ls_passes_lower(g, how);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    return g;
}

static const small_trial *named(const char *trial)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++)
        if (strcmp(t->trial, trial) == 0) return t;
    REQUIRE(false);
    return NULL;
}

/* Each clone waits for a gradient of its pass that another unit has made, and stands behind it. */
static void clones_wait_for_the_gradient(void)
{
    static const char *const trials[] = {"vit-tiny", "resnet18-cifar", "cosmogan", "wgan-gp", "cyclegan-g"};

    for (size_t k = 0; k < sizeof trials / sizeof trials[0]; k++) {
        ls_graph *g = lowered(named(trials[k]), &(ls_strategy){.recompute = {.all = true}});
        int clones = 0;
        for (int32_t i = 0; i < g->n_nodes; i++) {
            const ls_node *n = g->nodes[i];
            if (n->dead || n->after < 0) continue;
            const int32_t maker = g->values[n->after]->node;
            REQUIRE(maker >= 0 && n->unit > 0);
            CHECK(maker < i && !g->nodes[maker]->dead);
            CHECK(g->nodes[maker]->loss == n->loss && n->loss > 0 && g->nodes[maker]->unit != n->unit);
            clones++;
        }
        if (!CHECK(clones > 0)) printf("  %s has no clones\n", trials[k]);
        ls_graph_destroy(g);
    }
}

/* Statistics of a batch move the running ones once, whoever computes them again. */
static void running_statistics_move_once(void)
{
    ls_graph *g = lowered(named("resnet18-cifar"), &(ls_strategy){.recompute = {.all = true}});
    int tracking = 0, again = 0, n_buffers = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || n->op != &ls_op_batch_norm) continue;
        tracking += n->n_out == 5;
        again += n->n_out == 3;
        CHECK(n->n_out == 5 || n->after >= 0);
    }
    for (int32_t i = 0; i < g->n_vars; i++) n_buffers += g->vars[i]->role == LS_VAR_BUFFER;
    CHECK_EQ_INT(2 * tracking, n_buffers);
    CHECK(again > 0);
    ls_graph_destroy(g);
}

/* One unit of two: the other's values are kept. */
static void units_can_be_chosen(void)
{
    ls_strategy how = {0};
    ls_graph *g;
    ls_unit_cost cost[2];
    int first = 0, second = 0;

    ls_units_add(&how.recompute, 2);
    g = lowered(named("vit-tiny"), &how);
    REQUIRE(g->n_units == 2);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead || g->nodes[i]->after < 0) continue;
        first += g->nodes[i]->unit == 1;
        second += g->nodes[i]->unit == 2;
    }
    CHECK_EQ_INT(first, 0);
    CHECK(second > 0);
    ls_graph_destroy(g);
    g = small_trial_record(named("vit-tiny"));
    ls_recompute_costs(g, &(ls_strategy){0}, cost);
    CHECK(cost[0].bytes > 0 && cost[0].flops > 0);
    CHECK(cost[0].bytes == cost[1].bytes && cost[0].flops == cost[1].flops);
    ls_graph_destroy(g);
}

int main(int argc, char **argv)
{
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    if (setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1; /* speed is not tested */
    CHECK_RUN(clones_wait_for_the_gradient);
    CHECK_RUN(running_statistics_move_once);
    CHECK_RUN(units_can_be_chosen);
    CHECK_RUN(memory_is_saved);
    CHECK_RUN(every_trial_has_the_same_bits);
    return CHECK_DONE();
}
