/* nn_train.c: trains trials on both devices and compares what they report. */
#include "nn_train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lockstep/trial.h"
#include "tensors.h"

enum { STEPS = 2, MAX_METRICS = 8 };

typedef struct metrics {
    int n;
    char name[MAX_METRICS][32];
    double value[MAX_METRICS];
} metrics;

static ls_status train(const nn_train_case *c, const char *device, metrics *out, ls_err *err)
{
    ls_status st = LS_OK;
    const ls_trial *trial = NULL;
    ls_config *cfg = NULL;
    ls_step *step = NULL;
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *plan = NULL;

    LS_TRY(ls_trial_find(&trial, c->trial, err));
    LS_TRY(ls_config_create(&cfg, trial, err));
    for (int i = 0; c->settings[i] != NULL; i++) LS_TRY(ls_config_set(cfg, c->settings[i], err));
    LS_TRY(ls_trial_build(&step, trial, cfg, LS_TRAIN, err));
    LS_TRY(ls_device_open(&dev, device, 1, err));
    LS_TRY(ls_state_create(&state, dev, err));
    LS_TRY(ls_plan_compile_take(&plan, ls_step_graph_take(step), dev, state, err));
    LS_TRY(ls_state_init(state, 5, err));
    ls_step_write_defaults(step, plan);
    ls_step_write_synthetic(step, plan, 5);
    for (uint32_t i = 0; i < STEPS; i++) {
        ls_step_write_rng(plan, 5, i, 0);
        LS_TRY(ls_plan_run(plan, err));
    }
    out->n = ls_plan_fetch_count(plan);
    for (int i = 0; i < out->n && i < MAX_METRICS; i++) {
        snprintf(out->name[i], sizeof out->name[i], "%s", ls_plan_fetch_at(plan, i)->name);
        out->value[i] = tensor_get(ls_plan_fetch_at(plan, i), 0);
    }
out:
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_step_destroy(step);
    ls_device_close(dev);
    ls_config_destroy(cfg);
    return st;
}

/* The value called `name`; NaN when there is none. */
static double find(const metrics *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->name[i], name) == 0) return m->value[i];
    return NAN;
}

void nn_devices_agree(const nn_train_case *cases, size_t n)
{
    REQUIRE(setenv("LOCKSTEP_TUNE", "off", 1) ==
            0); /* rounding, and so the verdict, must not hang on timing */
    for (size_t k = 0; k < n; k++) {
        metrics ref = {0}, cpu = {0};
        ls_err err = {0};
        REQUIRE_OK(train(&cases[k], "ref", &ref, &err), &err);
        REQUIRE_OK(train(&cases[k], "cpu", &cpu, &err), &err);
        CHECK(ref.n > 0 && ref.n <= MAX_METRICS);
        CHECK_EQ_INT(cpu.n, ref.n);
        for (int i = 0; i < ref.n; i++) {
            CHECK(isfinite(ref.value[i]));
            if (!CHECK_NEAR(find(&cpu, ref.name[i]), ref.value[i],
                            cases[k].tolerance * (1 + fabs(ref.value[i]))))
                printf("  %s: %s\n", cases[k].trial, ref.name[i]);
        }
    }
}
