/* test_underway.c: a step whose results were collected is over, and so is the use of what it was fed from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"
#include "exec/results.h"
#include "ops/ops.h"
#include "tensors.h"
#include "train/evaluate.h"

enum { WIDE = 600 };

/* With a metric or without one. */
static void run_step(uint64_t seed, bool metric)
{
    float x[WIDE], y[WIDE];
    char text[32];
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *p = NULL;
    ls_graph *g = NULL;
    ls_metric_sums sums = {0};
    ls_value squares;
    ls_err err = {0};

    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    setenv("LOCKSTEP_FAR_SEED", text, 1);
    REQUIRE_OK(ls_device_open(&dev, "far", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    squares = ls_square(ls_graph_input(g, "x", LS_F32, LS_SHAPE(WIDE)));
    ls_graph_fetch(squares, "squares");
    if (metric) ls_graph_fetch(ls_reduce_sum(squares, LS_ALL_AXES, false), "sum");
    REQUIRE_OK(ls_plan_compile_take(&p, g, dev, state, &err), &err);
    for (int i = 0; i < WIDE; i++) x[i] = 3;
    ls_plan_feed(p, "x", 0, x, sizeof x);
    CHECK_OK(ls_plan_start(p, &err), &err);
    CHECK_OK(ls_collect_results(p, ls_plan_runs(p), 5, &sums, &err), &err);
    memset(x, 0, sizeof x); /* as a loader does with a batch that was given back */
    tensor_read(ls_plan_fetch(p, "squares"), y, sizeof y);
    CHECK(y[0] == 9 && y[WIDE - 1] == 9);
    CHECK_EQ_INT(sums.n, metric ? 1 : 0);
    CHECK_EQ_INT((int)sums.samples, 5);
    ls_plan_destroy(p);
    ls_state_destroy(state);
    ls_device_close(dev);
}

static void with_metrics(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) run_step(seed, true);
}

static void without_metrics(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) run_step(seed, false);
}

int main(void)
{
    CHECK_RUN(with_metrics);
    CHECK_RUN(without_metrics);
    return CHECK_DONE();
}
