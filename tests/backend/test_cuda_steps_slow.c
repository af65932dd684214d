/* test_cuda_steps_slow.c: steps of small networks on a GPU, whose parts are regions there, end with the
 * reference device's weights up to rounding, and with the same bits each time; so do they without regions.
 * Skipped without a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lockstep/plan.h"
#include "small_nets.h"
#include "tensors.h"

enum { STEPS = 3, MAX_NUMBERS = 3000000 };

static double weights[3][MAX_NUMBERS];

/* All variables and metrics after a few steps; returns how many numbers. */
static size_t train(const small_net *net, const char *device, int64_t batch, double *out)
{
    ls_step *s;
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
    ls_err err = {0};
    size_t n = 0;

    REQUIRE_OK(ls_step_create(&s, batch, LS_TRAIN, &err), &err);
    net->build(s);
    REQUIRE_OK(ls_device_open(&dev, device, 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&plan, ls_step_graph_take(s), dev, state, &err), &err);
    REQUIRE_OK(ls_state_init(state, 5, &err), &err);
    ls_step_write_defaults(s, plan);
    ls_step_write_synthetic(s, plan, 5);
    for (uint32_t i = 0; i < STEPS; i++) {
        ls_step_write_rng(plan, 5, i, 0);
        run_plan(plan);
    }
    for (int i = 0; i < ls_plan_fetch_count(plan); i++) {
        tensor_get_all(ls_plan_fetch_at(plan, i), out + n);
        n += (size_t)ls_shape_count(ls_plan_fetch_at(plan, i)->shape);
    }
    for (int i = 0; i < ls_state_count(state); i++) {
        const ls_tensor *t = ls_state_at(state, i);
        REQUIRE(n + (size_t)ls_shape_count(t->shape) < MAX_NUMBERS);
        tensor_get_all(t, out + n);
        n += (size_t)ls_shape_count(t->shape);
    }
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_step_destroy(s);
    ls_device_close(dev);
    return n;
}

/* Length of the difference over length. */
static double apart(const double *a, const double *b, size_t n)
{
    double d = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        d += (a[i] - b[i]) * (a[i] - b[i]);
        all += a[i] * a[i];
    }
    return sqrt(d / all);
}

static void check_net(const small_net *net, int64_t batch)
{
    const size_t n = train(net, "ref", batch, weights[0]);
    double with, without;

    CHECK_EQ_INT(train(net, "cuda", batch, weights[1]), n);
    CHECK_EQ_INT(train(net, "cuda", batch, weights[2]), n);
    CHECK(memcmp(weights[1], weights[2], n * sizeof weights[0][0]) == 0);
    with = apart(weights[0], weights[1], n);
    REQUIRE(setenv("LOCKSTEP_CUDA_REGIONS", "off", 1) == 0);
    CHECK_EQ_INT(train(net, "cuda", batch, weights[2]), n);
    REQUIRE(unsetenv("LOCKSTEP_CUDA_REGIONS") == 0);
    without = apart(weights[0], weights[2], n);
    printf("%s, %d samples: %.2g with regions, %.2g without\n", net->name, (int)batch, with, without);
    CHECK(with < 1e-4); /* false for NaN */
    CHECK(without < 1e-4);
}

static void regions_train_as_the_reference_does(void)
{
    for (const small_net *net = small_nets; net->name != NULL; net++) check_net(net, 4);
    check_net(&small_nets[1], 300); /* more samples than processors */
    check_net(&small_nets[0], 290);
    check_net(&small_net_deep, 200);
}

int main(void)
{
    ls_device *dev = NULL;
    ls_err err = {0};

    if (ls_device_open(&dev, "cuda", 1, &err) != LS_OK) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    ls_device_close(dev);
    CHECK_RUN(regions_train_as_the_reference_does);
    return CHECK_DONE();
}
