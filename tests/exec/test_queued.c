/* test_queued.c: plans on a device with queues: steps that overlap, what is on its way, and that `far` shows
 * an order that is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"
#include "exec/queued_internal.h"
#include "exec/results.h"
#include "model.h"
#include "ops/ops.h"
#include "tensors.h"

enum { WIDE = 600, ROUNDS = 4, SEEDS = 60 };

static ls_value transfer(const ls_op *op, ls_value x)
{
    return ls_graph_add(x.g, op, 1, &x, NULL);
}

/* Values that go to the copy queue and back, in memory that is used again and again; a variable that moves on
 * by them; a large result and a small one. */
static ls_graph *make_graph(void)
{
    ls_graph *g = NULL;
    ls_value x, v, w;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(WIDE), (ls_init){LS_INIT_NORMAL, 1});
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(WIDE));
    v = ls_mul(ls_add(x, w), ls_broadcast_to(ls_graph_scalar(g, "scale"), LS_SHAPE(WIDE)));
    for (int i = 0; i < ROUNDS; i++) {
        const ls_value there = transfer(&ls_op_to_host, ls_tanh(v));
        v = ls_add(transfer(&ls_op_to_device, ls_mul(there, v)), ls_square(there));
    }
    ls_graph_fetch(v, "wide");
    ls_graph_fetch(ls_reduce_sum(v, (1u << 0), false), "sum");
    return g;
}

static void feed(const model *m, float *x, int step)
{
    for (int i = 0; i < WIDE; i++) x[i] = (float)((i * 7 + step * 13) % 19) / 19;
    ls_plan_feed(m->plan, "x", 0, x, sizeof *x * WIDE);
    ls_plan_write_scalar(m->plan, "scale", 0.5 + step);
}

/* What the reference device makes of step `step`. */
static void expect(int step, float *wide, float *sum)
{
    float x[WIDE];
    model m;

    model_open(&m, make_graph(), "ref", 1);
    CHECK(!ls_plan_is_queued(m.plan));
    feed(&m, x, step);
    run_plan(m.plan);
    tensor_read(ls_plan_fetch(m.plan, "wide"), wide, sizeof *wide * WIDE);
    tensor_read(ls_plan_fetch(m.plan, "sum"), sum, sizeof *sum);
    model_close(&m);
}

static void steps_overlap(void)
{
    enum { STEPS = 6 };
    float x[2][WIDE], wide[WIDE], want[WIDE], sums[STEPS];
    ls_err err = {0};

    for (int i = 0; i < STEPS; i++) expect(i, want, &sums[i]);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        model m;
        model_open(&m, make_graph(), "far", seed);
        CHECK(ls_plan_is_queued(m.plan));
        for (int i = 0; i < STEPS; i++) {
            const ls_tensor *sum = ls_plan_fetch(m.plan, "sum");
            float got = 0;
            feed(&m, x[i % 2], i); /* its memory is free: the result of the step before the last was read */
            CHECK_OK(ls_plan_start(m.plan, &err), &err);
            CHECK_EQ_INT((int)ls_plan_runs(m.plan), i + 1);
            if (i == 0) continue;
            CHECK_OK(ls_plan_result(m.plan, sum, (uint64_t)i, &got, sizeof got, &err), &err);
            CHECK(got == sums[i - 1]);
        }
        CHECK_OK(ls_plan_join(m.plan, &err), &err);
        CHECK_OK(ls_plan_result(m.plan, ls_plan_fetch(m.plan, "wide"), STEPS, wide, sizeof wide, &err), &err);
        CHECK(memcmp(wide, want, sizeof wide) == 0);
        model_close(&m);
    }
}

/* Inputs that nobody runs with, too many of them, and none at all. */
static void inputs_that_are_left(void)
{
    float x[WIDE], wide[WIDE], want[WIDE], sum;
    model m;

    expect(2, want, &sum);
    model_open(&m, make_graph(), "far", 9);
    for (int i = 0; i < 5000; i++) ls_plan_write_scalar(m.plan, "scale", i);
    feed(&m, x, 2);
    run_plan(m.plan);
    run_plan(m.plan); /* inputs stay */
    tensor_read(ls_plan_fetch(m.plan, "wide"), wide, sizeof wide);
    CHECK(memcmp(wide, want, sizeof wide) == 0);
    feed(&m, x, 3);
    model_close(&m);
}

/* Memory that was fed is the caller's again when a plan that has failed says so. */
static void a_plan_that_failed_takes_its_inputs(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        float x[WIDE], back[WIDE], want[WIDE];
        ls_err err = {0};
        model m;
        model_open(&m, make_graph(), "far", seed);
        feed(&m, x, 1);
        memcpy(want, x, sizeof want);
        ls_plan_write_input(m.plan, "x", sizeof x, x, sizeof *x);
        CHECK_STATUS(ls_plan_start(m.plan, &err), LS_INVALID, &err);
        memset(x, 0, sizeof x);
        tensor_read(ls_plan_input(m.plan, "x"), back, sizeof back);
        CHECK(memcmp(back, want, sizeof back) == 0);
        model_close(&m);
    }
}

/* Nobody waits for the steps that were begun; what they were fed from lives as long as the plan. */
static void a_plan_is_closed_while_it_runs(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        float *x[2] = {malloc(sizeof **x * WIDE), malloc(sizeof **x * WIDE)};
        ls_err err = {0};
        model m;
        REQUIRE(x[0] != NULL && x[1] != NULL);
        model_open(&m, make_graph(), "far", seed);
        for (int i = 0; i < (int)(seed % 3); i++) {
            feed(&m, x[i], i);
            CHECK_OK(ls_plan_start(m.plan, &err), &err);
        }
        model_close(&m);
        free(x[0]);
        free(x[1]);
    }
}

/* -- a kernel that fails ----------------------------------------------------------------------------------
 */

/* Each node of the device in turn: the error names it, comes with the step or with what is done next, and
 * stays; what the step before has left is right. */
static void a_kernel_fails_in_the_middle(void)
{
    float want;
    int n = 1;

    expect(0, (float[WIDE]){0}, &want);
    for (int node = 0; node < n; node++) {
        float x[3][WIDE], got = 0;
        ls_err err = {0};
        failing f;
        lsi_step *s;
        model m;
        model_open(&m, make_graph(), "far", (uint64_t)node + 1);
        n = m.plan->schedule.n;
        s = &m.plan->steps[node];
        failing_put(&f, s);
        feed(&m, x[0], 0);
        CHECK_OK(ls_plan_start(m.plan, &err), &err);
        CHECK_OK(ls_plan_result(m.plan, ls_plan_fetch(m.plan, "sum"), 1, &got, sizeof got, &err), &err);
        CHECK(got == want);
        feed(&m, x[1], 1);
        if (ls_plan_start(m.plan, &err) == LS_OK) {
            feed(&m, x[2], 2);
            (void)!ls_plan_start(m.plan, &err);
        }
        err = (ls_err){0};
        CHECK_STATUS(ls_plan_join(m.plan, &err), LS_DEVICE, &err);
        CHECK_CONTAINS(err.text, s->node->op->name);
        CHECK_CONTAINS(err.text, "made up");
        CHECK_STATUS(ls_plan_run(m.plan, &(ls_err){0}), LS_DEVICE, NULL);
        failing_take(&f, s);
        model_close(&m);
    }
    CHECK(n > 5);
}

static void note(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    uint64_t *last = ctx;

    CHECK(begun <= ended && ended <= progressed);
    if (ended > *last) *last = ended;
    (void)node;
}

static void a_clock_changes_nothing(void)
{
    float x[WIDE], wide[WIDE], want[WIDE], sum;
    uint64_t last = 0;
    model m;
    ls_err err = {0};

    expect(4, want, &sum);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        model_open(&m, make_graph(), "far", seed);
        feed(&m, x, 4);
        CHECK_OK(ls_plan_run_noted(m.plan, note, &last, &err), &err);
        tensor_read(ls_plan_fetch(m.plan, "wide"), wide, sizeof wide);
        CHECK(memcmp(wide, want, sizeof wide) == 0);
        model_close(&m);
    }
    CHECK(last > 0);
}

/* -- what is missing --------------------------------------------------------------------------------------
 */

static int count_waits(const ls_plan *p)
{
    int n = 0;

    for (int32_t i = 0; i < p->schedule.n; i++)
        for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) n += p->queued->waits[i][q] > 0;
    return n;
}

static void drop_wait(ls_plan *p, int number)
{
    for (int32_t i = 0; i < p->schedule.n; i++)
        for (int q = 0; q < LS_QUEUE_DEVICE_N; q++)
            if (p->queued->waits[i][q] > 0 && number-- == 0) p->queued->waits[i][q] = 0;
}

/* Without wait number `without` (-1: with all), whether every step under this seed has the right bits. */
static bool is_right(uint64_t seed, int without, const float *want)
{
    float x[WIDE], wide[WIDE];
    bool right;
    model m;

    model_open(&m, make_graph(), "far", seed);
    if (without >= 0) drop_wait(m.plan, without);
    feed(&m, x, 1);
    run_plan(m.plan);
    tensor_read(ls_plan_fetch(m.plan, "wide"), wide, sizeof wide);
    right = memcmp(wide, want, sizeof wide) == 0;
    model_close(&m);
    return right;
}

static void a_missing_wait_shows(void)
{
    float want[WIDE], sum;
    int n;
    model m;

    expect(1, want, &sum);
    model_open(&m, make_graph(), "far", 1);
    n = count_waits(m.plan);
    model_close(&m);
    CHECK(n >= 2 * ROUNDS);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) CHECK(is_right(seed, -1, want));
    for (int i = 0; i < n; i++) {
        uint64_t seed = 1;
        while (seed <= SEEDS && is_right(seed, i, want)) seed++;
        if (!CHECK(seed <= SEEDS)) printf("  wait %d of %d\n", i, n);
    }
}

int main(void)
{
    CHECK_RUN(steps_overlap);
    CHECK_RUN(inputs_that_are_left);
    CHECK_RUN(a_plan_that_failed_takes_its_inputs);
    CHECK_RUN(a_plan_is_closed_while_it_runs);
    CHECK_RUN(a_kernel_fails_in_the_middle);
    CHECK_RUN(a_clock_changes_nothing);
    CHECK_RUN(a_missing_wait_shows);
    return CHECK_DONE();
}
