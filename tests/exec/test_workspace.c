/* test_workspace.c: plans over one state that run in turn have one stretch of memory between them: it is as
 * large as the largest needs, it may grow, and none of them sees what the others did there. */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "check.h"
#include "exec/memory.h"
#include "exec/results.h"
#include "model.h"
#include "ops/ops.h"
#include "tensors.h"

enum { NARROW = 200, WIDE = 700, ROUNDS = 5, SEEDS = 20 };

static const char *const devices[] = {"ref", "cpu", "far"};

static ls_graph *make_graph(int wide)
{
    ls_graph *g = NULL;
    ls_value x, v, w;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(1), (ls_init){LS_INIT_NORMAL, 1});
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(wide));
    v = ls_mul(ls_add(x, ls_broadcast_to(w, LS_SHAPE(wide))),
               ls_broadcast_to(ls_graph_scalar(g, "scale"), LS_SHAPE(wide)));
    for (int i = 0; i < ROUNDS; i++) /* sums keep several values alive, and no chain is one node */
        v = ls_add(ls_sub(v, ls_broadcast_to(ls_reduce_sum(ls_tanh(v), LS_ALL_AXES, false), LS_SHAPE(wide))),
                   ls_square(x));
    ls_graph_fetch(v, "wide");
    ls_graph_fetch(ls_reduce_sum(v, LS_ALL_AXES, false), "sum");
    return g;
}

static void write_x(ls_plan *p, int wide)
{
    float x[WIDE];

    for (int i = 0; i < wide; i++) x[i] = (float)(i % 19) / 19;
    ls_plan_write_input(p, "x", 0, x, sizeof *x * (size_t)wide);
}

/* What a plan with memory of its own makes of it. */
static void expect(const char *device, int wide, double scale, float *out)
{
    model m;

    model_open(&m, make_graph(wide), device, 1);
    write_x(m.plan, wide);
    ls_plan_write_scalar(m.plan, "scale", scale);
    run_plan(m.plan);
    tensor_read(ls_plan_fetch(m.plan, "wide"), out, sizeof *out * (size_t)wide);
    model_close(&m);
}

static void check_result(ls_plan *p, const char *device, int wide, double scale)
{
    float got[WIDE], want[WIDE];

    tensor_read(ls_plan_fetch(p, "wide"), got, sizeof *got * (size_t)wide);
    expect(device, wide, scale, want);
    CHECK(memcmp(got, want, sizeof *got * (size_t)wide) == 0);
}

/* The first plan is there, and has run, when one comes that needs more. */
static void run_in_turns(const char *device, int first, int second, uint64_t seed)
{
    ls_plan *other = NULL;
    ls_err err = {0};
    model m;

    model_open(&m, make_graph(first), device, seed);
    write_x(m.plan, first);
    ls_plan_write_scalar(m.plan, "scale", 1);
    CHECK_OK(ls_plan_start(m.plan, &err), &err); /* on a device with queues it goes on */
    REQUIRE_OK(ls_plan_compile_take(&other, make_graph(second), m.dev, m.state, &err), &err);
    write_x(other, second);
    ls_plan_write_scalar(other, "scale", 2);
    CHECK_OK(ls_plan_start(other, &err), &err);
    /* Inputs keep their contents, and results stay, whatever the other plan did meanwhile. */
    check_result(m.plan, device, first, 1);
    check_result(other, device, second, 2);
    for (int i = 0; i < 3; i++) { /* also what a device has recorded */
        CHECK_OK(ls_plan_start(m.plan, &err), &err);
        CHECK_OK(ls_plan_start(other, &err), &err);
    }
    check_result(m.plan, device, first, 1);
    check_result(other, device, second, 2);
    ls_plan_destroy(other);
    run_plan(m.plan);
    check_result(m.plan, device, first, 1);
    model_close(&m);
}

static void plans_do_not_disturb_each_other(void)
{
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++)
        for (uint64_t seed = 1; seed <= (strcmp(devices[d], "far") == 0 ? SEEDS : 1); seed++) {
            run_in_turns(devices[d], NARROW, WIDE, seed); /* it grows */
            run_in_turns(devices[d], WIDE, NARROW, seed);
        }
}

static size_t arena_of(const ls_plan *p)
{
    return p->memory.arena_bytes;
}

static void the_largest_counts(void)
{
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        ls_plan *other = NULL;
        ls_plan_memory sum = {0}, planned = {0};
        ls_err err = {0};
        size_t shared;
        model m;
        model_open(&m, make_graph(NARROW), devices[d], 1);
        REQUIRE_OK(ls_plan_compile_take(&other, make_graph(WIDE), m.dev, m.state, &err), &err);
        shared = arena_of(m.plan) - m.plan->memory.kept_bytes;
        CHECK(m.plan->memory.kept_bytes > 0 && shared > 0);
        CHECK(arena_of(other) - other->memory.kept_bytes > shared);
        ls_memory_add_plan(&sum, m.plan);
        ls_memory_add_plan(&sum, other);
        ls_memory_add_workspace(&sum, m.state);
        ls_memory_add_state(&sum, m.state);
        CHECK_EQ_INT(sum.total, ls_device_memory_of(m.dev).used);
        ls_memory_add_plans(&planned, (ls_plan *[]){m.plan, other}, 2);
        ls_memory_add_state(&planned, m.state);
        CHECK_EQ_INT(planned.total, sum.total);
        CHECK(planned.total + shared == ls_plan_memory_of(m.plan).total + ls_plan_memory_of(other).total -
                                            ls_state_at(m.state, 0)->bytes);
        ls_plan_destroy(other);
        model_close(&m);
    }
}

/* Where there is no more memory, the plan that wanted it fails, and the others go on. */
static void a_limit_leaves_the_others_alone(void)
{
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        ls_plan *other = NULL;
        ls_err err = {0};
        model m;
        model_open(&m, make_graph(NARROW), devices[d], 1);
        write_x(m.plan, NARROW);
        ls_plan_write_scalar(m.plan, "scale", 1);
        run_plan(m.plan);
        m.dev->limit = ls_device_memory_of(m.dev).used + 1000 + WIDE * sizeof(float) * 2;
        CHECK(ls_plan_compile_take(&other, make_graph(WIDE), m.dev, m.state, &err) == LS_NOMEM);
        CHECK(other == NULL && strstr(err.text, "memory.limit") != NULL);
        CHECK(strstr(err.text, "batch.per_rank") != NULL); /* what to do about it */
        check_result(m.plan, devices[d], NARROW, 1);
        run_plan(m.plan);
        check_result(m.plan, devices[d], NARROW, 1);
        model_close(&m);
    }
}

int main(void)
{
    CHECK_RUN(plans_do_not_disturb_each_other);
    CHECK_RUN(the_largest_counts);
    CHECK_RUN(a_limit_leaves_the_others_alone);
    return CHECK_DONE();
}
