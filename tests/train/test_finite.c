/* test_finite.c: what a diverged run says, and that nothing else is taken for one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "lockstep/trial.h"
#include "tensors.h"
#include "train/finite.h"

static char folder[] = "/tmp/lockstep-finite-XXXXXX";

static void metrics(void)
{
    const ls_finite_place at = {41, 0.25, folder, false, false};
    ls_metric_sums m = {0};
    ls_err err = {0};

    CHECK_EQ_INT(ls_finite_metrics(&m, &at, &err), LS_OK);
    ls_metric_add(&m, "loss", 1e30, 64);
    ls_metric_add(&m, "acc", 0, 64);
    m.samples = 64;
    CHECK_EQ_INT(ls_finite_metrics(&m, &at, &err), LS_OK);
    ls_metric_add(&m, "acc", -INFINITY, 64);
    CHECK_EQ_INT(ls_finite_metrics(&m, &at, &err), LS_DIVERGED);
    CHECK_CONTAINS(err.text, "step 41: acc is infinite at learning rate 0.25");
    CHECK_CONTAINS(err.text, "there is no checkpoint yet");
    CHECK_CONTAINS(err.text, "lr.warmup");
}

static void the_last_checkpoint_is_named(void)
{
    const ls_finite_place at = {7, 1, folder, false, false};
    ls_metric_sums m = {0};
    char path[256];
    ls_err err = {0};

    snprintf(path, sizeof path, "%s/last", folder);
    REQUIRE(symlink("step-00000005", path) == 0);
    ls_metric_add(&m, "loss", NAN, 1);
    m.samples = 1;
    CHECK_EQ_INT(ls_finite_metrics(&m, &at, &err), LS_DIVERGED);
    CHECK_CONTAINS(err.text, "step 7: loss is not a number");
    CHECK_CONTAINS(err.text, "/step-00000005, stays");
    unlink(path);
}

static void variables(void)
{
    const ls_finite_place at = {7, 1, folder, false, false};
    const ls_trial *trial;
    ls_config *cfg = NULL;
    ls_step *step = NULL;
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *plan = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_trial_find(&trial, "mnist", &err), &err);
    REQUIRE_OK(ls_config_create(&cfg, trial, &err), &err);
    REQUIRE_OK(ls_trial_build(&step, trial, cfg, LS_TRAIN, &err), &err);
    REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&plan, ls_step_graph_take(step), dev, state, &err), &err);
    init_state(state, 1);
    CHECK_EQ_INT(ls_finite_state(state, &at, &err), LS_OK);
    tensor_put(ls_state_find(state, "fc1.weight"), 123, (double)INFINITY);
    CHECK_EQ_INT(ls_finite_state(state, &at, &err), LS_DIVERGED);
    CHECK_CONTAINS(err.text, "step 7: fc1.weight is infinite");
    /* What is left to be seen after a loss that was not finite. */
    ls_err trouble = {LS_DIVERGED, "step 7: loss is not a number"};
    REQUIRE_OK(ls_finite_explain(state, plan, NULL, &trouble, &err), &err);
    CHECK_CONTAINS(trouble.text, "step 7: loss is not a number; of ");
    CHECK_CONTAINS(trouble.text, " variables 1 is no longer finite, \"fc1.weight\" first");
    CHECK(strstr(trouble.text, "batch") == NULL);
    tensor_put(ls_plan_input(plan, "image"), 5, (double)NAN);
    REQUIRE_OK(ls_finite_explain(state, plan, NULL, &trouble, &err), &err);
    CHECK_CONTAINS(trouble.text, "; the batch of rank 0 is not finite in \"image\"");
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(dev);
    ls_step_destroy(step);
    ls_config_destroy(cfg);
}

int main(void)
{
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(metrics);
    CHECK_RUN(the_last_checkpoint_is_named);
    CHECK_RUN(variables);
    rc = CHECK_DONE();
    return rmdir(folder) == 0 ? rc : 1;
}
