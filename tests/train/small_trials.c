/* small_trials.c: the table of trials, and that none is missing in it. */
#include "small_trials.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "lockstep/trial.h"

const small_trial small_trials[] = {
    {.trial = "mnist", .metric = "loss"},
    {.trial = "mnist-keras", .metric = "loss"},
    {.trial = "linear", .metric = "loss"},
    {.trial = "resnet18", .like = "resnet18-cifar"},
    {.trial = "resnet18-cifar", .large = true},
    {.trial = "resnet18-cifar-stem", .like = "resnet18-cifar"},
    {.trial = "vit", .like = "vit-tiny"},
    {.trial = "vit-b32", .like = "vit-tiny"},
    {.trial = "vit-tiny", .metric = "loss"},
    {.trial = "dcgan-d", .settings = {"model.size=32", "model.width=4"}},
    {.trial = "dcgan-g", .settings = {"model.size=32", "model.width=4"}},
    {.trial = "cosmogan", .settings = {"model.size=32", "model.width=4"}},
    {.trial = "wgan-gp", .metric = "loss_d"},
    {.trial = "aae", .settings = {"model.points=32", "model.sum_over=8"}, .metric = "loss_eg"},
    {.trial = "cyclegan", .settings = {"model.size=32", "model.blocks=0"}, .metric = "loss_d", .large = true},
    {.trial = "cyclegan-g", .settings = {"model.size=32", "model.blocks=1"}, .metric = "loss_g"},
    {.trial = NULL},
};

void small_trials_check(void)
{
    for (int i = 0; ls_trials[i] != NULL; i++) {
        bool found = false;
        for (const small_trial *t = small_trials; t->trial != NULL; t++)
            found = found || strcmp(t->trial, ls_trials[i]->name) == 0;
        if (!CHECK(found)) printf("  no line for the trial %s\n", ls_trials[i]->name);
    }
}

ls_graph *small_trial_record(const small_trial *small)
{
    return small_trial_record_of(small, 2);
}

ls_graph *small_trial_record_of(const small_trial *small, int64_t batch)
{
    char text[64];
    const ls_trial *t = NULL;
    ls_config *cfg = NULL;
    ls_step *s = NULL;
    ls_graph *g;
    ls_err err = {0};

    REQUIRE_OK(ls_trial_find(&t, small->trial, &err), &err);
    REQUIRE_OK(ls_config_create(&cfg, t, &err), &err);
    snprintf(text, sizeof text, "batch.per_rank=%lld", (long long)batch);
    REQUIRE_OK(ls_config_set(cfg, text, &err), &err);
    for (int i = 0; i < SMALL_SETTINGS && small->settings[i] != NULL; i++)
        REQUIRE_OK(ls_config_set(cfg, small->settings[i], &err), &err);
    REQUIRE_OK(ls_trial_build(&s, t, cfg, LS_TRAIN, &err), &err);
    g = ls_step_graph_take(s);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    ls_step_destroy(s);
    ls_config_destroy(cfg);
    return g;
}
