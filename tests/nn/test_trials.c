/* test_trials.c: the built-in models have the parameters and the arithmetic of their specifications. */
#include <math.h>
#include <stdio.h>

#include "bench/flops.h"
#include "check.h"
#include "lockstep/trial.h"
#include "passes/lower.h"
#include "passes/passes.h"

typedef struct expectation {
    const char *trial, *pattern;
    int64_t params;
} expectation;

static const expectation params[] = {
    {"mnist", "*", 21840},         {"mnist-keras", "*", 1199882},     {"linear", "*", 30730},
    {"resnet18", "*", 11181642},   {"resnet18-cifar", "*", 11181642}, {"resnet18-cifar-stem", "*", 11173962},
    {"vit", "*", 85806346},        {"vit-b32", "*", 87462922},        {"dcgan-d", "*", 3583873},
    {"dcgan-g", "*", 12824449},    {"cosmogan", "G.*", 12824449},     {"cosmogan", "D.*", 3583873},
    {"aae", "E.*", 502272},        {"aae", "G.*", 10981965},          {"aae", "D.*", 369921},
    {"wgan-gp", "*", 369921},      {"cyclegan", "G_AB.*", 11378179},  {"cyclegan", "G_BA.*", 11378179},
    {"cyclegan-g", "*", 11378179}, {"cyclegan", "D_A.*", 2764737},    {"cyclegan", "D_B.*", 2764737},
    {"cyclegan", "*", 28285832},
};

typedef struct work {
    const char *trial;
    ls_mode mode;
    double flops; /* per sample */
} work;

/* Training steps as the specifications count them (products only, no gradient of the data inputs); where
 * they give forward multiply-adds only, an evaluation step must have twice as many operations. */
static const work works[] = {
    {"mnist", LS_EVAL, 2 * 480500.0},
    {"mnist", LS_TRAIN, 6 * 480500.0 - 2 * 144000.0},
    {"mnist-keras", LS_EVAL, 2 * 11992448.0},
    {"mnist-keras", LS_TRAIN, 6 * 11992448.0 - 2 * 26.0 * 26 * 32 * 9},
    {"resnet18", LS_EVAL, 2 * 1813.6e6},
    {"resnet18-cifar", LS_EVAL, 2 * 37.0e6},
    {"resnet18-cifar-stem", LS_EVAL, 2 * 555.4e6},
    {"vit", LS_EVAL, 2 * 17.56e9},
    {"vit", LS_TRAIN, 105e9},
    {"vit-b32", LS_EVAL, 2 * 4.41e9},
    {"vit-b32", LS_TRAIN, 26.3e9},
    {"dcgan-g", LS_EVAL, 5.10e9},
    {"dcgan-d", LS_EVAL, 2 * 4.67e9},
    {"dcgan-d", LS_TRAIN, 2 * 4.67e9 + 18.56e9},
    {"cosmogan", LS_TRAIN, 47.85e9},
    {"aae", LS_TRAIN, 6.96e9},
    {"cyclegan", LS_TRAIN, 2092.7e9},
    {"cyclegan-g", LS_EVAL, 113.6e9},
};

static ls_step *build(const char *name, ls_mode mode)
{
    const ls_trial *t = NULL;
    ls_config *cfg = NULL;
    ls_step *s = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_trial_find(&t, name, &err), &err);
    REQUIRE_OK(ls_config_create(&cfg, t, &err), &err);
    REQUIRE_OK(ls_config_set(cfg, "batch.per_rank=2", &err), &err);
    REQUIRE_OK(ls_trial_build(&s, t, cfg, mode, &err), &err);
    ls_config_destroy(cfg);
    return s;
}

static void parameter_counts(void)
{
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        ls_step *s = build(params[i].trial, LS_TRAIN);
        if (!CHECK_EQ_INT(ls_step_count_params(s, params[i].pattern), params[i].params))
            printf("  in %s %s\n", params[i].trial, params[i].pattern);
        ls_step_destroy(s);
    }
}

static void tensor_counts(void)
{
    ls_step *s = build("mnist", LS_TRAIN);

    CHECK_EQ_INT(ls_step_param_tensors(s), 8);
    ls_step_destroy(s);
    s = build("resnet18", LS_TRAIN);
    CHECK_EQ_INT(ls_step_param_tensors(s), 62);
    ls_step_destroy(s);
}

static void flops_per_sample(void)
{
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        ls_step *s = build(works[i].trial, works[i].mode);
        ls_graph *g = ls_step_graph_take(s);
        double sum = 0;
        ls_passes_lower(g, &(ls_strategy){0});
        ls_pass_dead(g);
        for (int32_t k = 0; k < g->n_nodes; k++)
            if (!g->nodes[k]->dead)
                sum += ls_product_flops(g->nodes[k]->op->name, ls_node_flops(g, g->nodes[k]));
        if (!CHECK_NEAR(sum / 2, works[i].flops, 0.01 * works[i].flops))
            printf("  in %s, %s\n", works[i].trial, works[i].mode == LS_TRAIN ? "training" : "evaluation");
        ls_graph_destroy(g);
        ls_step_destroy(s);
    }
}

/* Every trial of the list builds in both modes, and its networks cover its parameters. */
static void all_build(void)
{
    for (int i = 0; ls_trials[i] != NULL; i++) {
        ls_step *s = build(ls_trials[i]->name, LS_EVAL);
        CHECK(ls_step_count_params(s, "*") > 0);
        ls_step_destroy(s);
        s = build(ls_trials[i]->name, LS_TRAIN);
        CHECK(ls_step_count_params(s, "*") > 0);
        ls_step_destroy(s);
    }
}

static void settings(void)
{
    const ls_trial *t = NULL;
    ls_config *cfg = NULL;
    ls_err err = {0};

    CHECK_STATUS(ls_trial_find(&t, "mnits", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "did you mean \"mnist\"");
    err = (ls_err){0};
    REQUIRE_OK(ls_trial_find(&t, "cosmogan", &err), &err);
    REQUIRE_OK(ls_config_create(&cfg, t, &err), &err);
    CHECK_EQ_INT(ls_config_int(cfg, "batch.per_rank"), 64);
    CHECK_NEAR(ls_config_optimiser(cfg).lr, 2e-4, 1e-12);
    CHECK_EQ_INT(ls_config_optimiser(cfg).form, LS_ADAM_TF);
    CHECK_OK(ls_config_set(cfg, "optimizer.name=lamb", &err), &err);
    CHECK_EQ_INT(ls_config_optimiser(cfg).rule, LS_LAMB);
    CHECK_OK(ls_config_set(cfg, "model.size=64", &err), &err);
    CHECK_EQ_INT(ls_config_int(cfg, "model.size"), 64);
    CHECK_STATUS(ls_config_set(cfg, "optimizer.lrr=1", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "did you mean \"optimizer.lr\"");
    err = (ls_err){0};
    CHECK_STATUS(ls_config_set(cfg, "optimizer.name=sdg", &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_config_set(cfg, "model.size=8", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "outside 16 to 1024");
    err = (ls_err){0};
    CHECK_STATUS(ls_config_set(cfg, "batch.per_rank=1.5", &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_config_set(cfg, "batch.per_rank=", &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_config_set(cfg, "optimizer.nesterov=yes", &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_config_set(cfg, "seed", &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_EQ_INT(ls_config_status(cfg, &err), LS_OK);
    CHECK_EQ_INT(ls_config_int(cfg, "model.sise"), 0);
    CHECK_STATUS(ls_config_status(cfg, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "model.sise");
    ls_config_destroy(cfg);
}

int main(void)
{
    CHECK_RUN(parameter_counts);
    CHECK_RUN(tensor_counts);
    CHECK_RUN(flops_per_sample);
    CHECK_RUN(all_build);
    CHECK_RUN(settings);
    return CHECK_DONE();
}
