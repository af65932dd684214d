/* test_inputs.c: runs that are given something else each time: all of an input, parts of it, one number
 * or too many for one launch, or nothing; two runs on their way, and a second plan between them.  Each result
 * is that of what was written last.  On `ref`, `far`, and on `cuda` where there is a GPU, with inputs and
 * results within the graph of a step, beside it, in a queue of their own, and without a graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"
#include "exec/results.h"
#include "model.h"
#include "ops/ops.h"
#include "tensors.h"

enum { LARGE = 50000, SMALL = 200, SCALARS = 40, RUNS = 60 };

/* What the inputs are: whole numbers, so that sums are exact in any order. */
typedef struct inputs {
    float x[LARGE], y[SMALL], s[SCALARS];
} inputs;

typedef struct results {
    float x, y[SMALL], s;
} results;

static ls_graph *make_graph(void)
{
    ls_graph *g = NULL;
    ls_value sum = {0};
    ls_err err = {0};
    char name[16];

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    for (int i = 0; i < SCALARS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        const ls_value s = ls_graph_scalar(g, name);
        sum = i == 0 ? s : ls_add(ls_add(sum, sum), s);
        if (i % 10 == 9) sum = ls_relu(ls_sub(s, sum)); /* numbers stay small */
    }
    ls_graph_fetch(ls_reduce_sum(ls_graph_input(g, "x", LS_F32, LS_SHAPE(LARGE)), (1u << 0), false), "x.sum");
    ls_graph_fetch(ls_square(ls_graph_input(g, "y", LS_F32, LS_SHAPE(SMALL))), "y.square");
    ls_graph_fetch(sum, "s.sum");
    return g;
}

static void expect(const inputs *in, results *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < LARGE; i++) out->x += in->x[i];
    for (int i = 0; i < SMALL; i++) out->y[i] = in->y[i] * in->y[i];
    for (int i = 0; i < SCALARS; i++) {
        out->s = i == 0 ? in->s[i] : out->s + out->s + in->s[i];
        if (i % 10 == 9) out->s = in->s[i] > out->s ? in->s[i] - out->s : 0;
    }
}

static uint32_t next(uint32_t *seed)
{
    return (*seed = *seed * 1664525u + 1013904223u) >> 16;
}

static void change(float *x, int n, uint32_t *seed)
{
    for (int i = 0; i < n; i++) x[i] = (float)(next(seed) % 13);
}

/* Memory of its own for each of two runs, since what is fed is taken later. */
static void feed(ls_plan *p, const inputs *in, float *kept, int from, int n)
{
    memcpy(kept + from, in->x + from, sizeof *kept * (size_t)n);
    ls_plan_feed(p, "x", sizeof(float) * (size_t)from, kept + from, sizeof(float) * (size_t)n);
}

static void write_scalars(ls_plan *p, inputs *in, int n, uint32_t *seed)
{
    char name[16];

    for (int i = 0; i < n; i++) {
        in->s[i] = (float)(next(seed) % 5);
        snprintf(name, sizeof name, "s%d", i);
        ls_plan_write_scalar(p, name, in->s[i]);
    }
}

/* Most runs are alike, as steps are; the others are not. */
static void write_some(ls_plan *p, inputs *in, float *kept, int run, uint32_t *seed)
{
    const uint32_t what = run < 8 || run % 3 != 0 ? 0 : next(seed) % 7;

    if (run == 0 || what == 0 || what == 5) {
        change(in->x, LARGE, seed);
        feed(p, in, kept, 0, LARGE);
    }
    if (what == 1) { /* two parts, with nothing between them */
        change(in->x + 17, 1000, seed);
        change(in->x + 30000, 12345, seed);
        feed(p, in, kept, 17, 1000);
        feed(p, in, kept, 30000, 12345);
    }
    if (run == 0 || what == 0 || what == 2) {
        change(in->y, SMALL, seed);
        ls_plan_write_input(p, "y", 0, in->y, sizeof in->y);
    }
    if (what == 3) { /* the second part is over the first */
        change(in->y + 3, 50, seed);
        ls_plan_write_input(p, "y", sizeof(float) * 3, in->y + 3, sizeof(float) * 50);
        change(in->y + 7, 9, seed);
        ls_plan_write_input(p, "y", sizeof(float) * 7, in->y + 7, sizeof(float) * 9);
    }
    write_scalars(p, in, run == 0 || what >= 5 ? SCALARS : what == 4 ? 0 : 3, seed);
}

static bool is_right(ls_plan *p, uint64_t run, const results *want)
{
    results got;
    ls_err err = {0};

    memset(&got, 0, sizeof got);
    CHECK_OK(ls_plan_result(p, ls_plan_fetch(p, "x.sum"), run, &got.x, sizeof got.x, &err), &err);
    CHECK_OK(ls_plan_result(p, ls_plan_fetch(p, "y.square"), run, got.y, sizeof got.y, &err), &err);
    CHECK_OK(ls_plan_result(p, ls_plan_fetch(p, "s.sum"), run, &got.s, sizeof got.s, &err), &err);
    return memcmp(&got, want, sizeof got) == 0;
}

/* One run of another plan, which has the device's queues between two of the first. */
static void run_other(ls_plan *p, inputs *in, float *kept, uint32_t *seed)
{
    results want;

    write_some(p, in, kept, 0, seed);
    expect(in, &want);
    run_plan(p);
    CHECK(is_right(p, ls_plan_runs(p), &want));
}

static void check_device(const char *device, const char *how, uint64_t seed)
{
    static inputs in, other;
    static float kept[3][LARGE];
    results want[2];
    model m, beside;
    ls_err err = {0};
    uint32_t state = (uint32_t)seed;
    int wrong = 0;

    model_open(&m, make_graph(), device, seed);
    beside = m;
    REQUIRE_OK(ls_plan_compile_take(&beside.plan, make_graph(), m.dev, m.state, &err), &err);
    for (int i = 0; i < RUNS; i++) {
        write_some(m.plan, &in, kept[i % 2], i, &state);
        expect(&in, &want[i % 2]);
        CHECK_OK(ls_plan_start(m.plan, &err), &err);
        if (!ls_plan_is_queued(m.plan))
            wrong += !is_right(m.plan, 0, &want[i % 2]);
        else if (i > 0)
            wrong += !is_right(m.plan, ls_plan_runs(m.plan) - 1, &want[(i + 1) % 2]);
        if (i % 16 == 15) run_other(beside.plan, &other, kept[2], &state);
    }
    CHECK_OK(ls_plan_join(m.plan, &err), &err);
    if (ls_plan_is_queued(m.plan)) wrong += !is_right(m.plan, ls_plan_runs(m.plan), &want[(RUNS - 1) % 2]);
    if (wrong > 0) printf("%s%s: %d runs of %d are wrong\n", device, how, wrong, RUNS);
    CHECK_EQ_INT(wrong, 0);
    ls_plan_destroy(beside.plan);
    model_close(&m);
}

static void here(void)
{
    check_device("ref", "", 1);
    for (uint64_t seed = 1; seed <= 6; seed++) check_device("far", "", seed);
}

static void on_a_gpu(void)
{
    static const char *const ways[][2] = {
        {"LOCKSTEP_CUDA_NONE", ""},     {"LOCKSTEP_CUDA_COPIES", "alone"},  {"LOCKSTEP_CUDA_COPIES", "apart"},
        {"LOCKSTEP_CUDA_EARLY", "off"}, {"LOCKSTEP_CUDA_CLEARS", "theirs"}, {"LOCKSTEP_CUDA_BRANCHES", "off"},
        {"LOCKSTEP_CUDA_GRAPH", "off"}};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char how[64];
        snprintf(how, sizeof how, ", %s=%s", ways[i][0], ways[i][1]);
        REQUIRE(setenv(ways[i][0], ways[i][1], 1) == 0);
        for (uint64_t seed = 1; seed <= 3; seed++) check_device("cuda", how, seed);
        REQUIRE(unsetenv(ways[i][0]) == 0);
    }
}

int main(void)
{
    ls_device *dev = NULL;
    ls_err err = {0};

    CHECK_RUN(here);
    if (ls_device_open(&dev, "cuda", 1, &err) == LS_OK) {
        ls_device_close(dev);
        CHECK_RUN(on_a_gpu);
    } else {
        printf("without cuda: %s\n", err.text);
    }
    return CHECK_DONE();
}
