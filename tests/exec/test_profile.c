/* test_profile.c: a profile's parts add up to the step, a plan that runs twice in it counts twice, and the
 * times of nodes are those of one run. */
#include "base/clock.h"
#include "check.h"
#include "exec/document.h"
#include "exec/profile.h"
#include "graph/graph.h"
#include "ops/ops.h"

typedef struct model {
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
} model;

static void open_model(model *m)
{
    ls_err err = {0};
    ls_graph *g;
    ls_value x;

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(64, 64));
    ls_graph_fetch(ls_tanh(ls_matmul(x, x, false, false)), "y");
    REQUIRE_OK(ls_device_open(&m->dev, "cpu", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&m->state, m->dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&m->plan, g, m->dev, m->state, &err), &err);
}

static void close_model(model *m)
{
    ls_plan_destroy(m->plan);
    ls_state_destroy(m->state);
    ls_device_close(m->dev);
}

static double seconds_of(const ls_plan *p)
{
    ls_document d;
    double sum = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_document_make(&d, p, &err), &err);
    for (int32_t i = 0; i < d.n_nodes; i++) sum += d.nodes[i].seconds + d.nodes[i].progress_s;
    ls_document_release(&d);
    return sum;
}

static ls_profile_sums profile(model *m, int steps, int runs)
{
    ls_profile *f;
    ls_profile_sums sums;
    ls_err err = {0};

    REQUIRE_OK(ls_profile_create(&f, steps, &err), &err);
    for (int i = 0; i < steps; i++) {
        const double begun = ls_clock_seconds();
        for (int k = 0; k < runs; k++) REQUIRE_OK(ls_profile_run(f, m->plan, &err), &err);
        ls_profile_step(f, ls_clock_seconds() - begun);
    }
    sums = ls_profile_conclude(f);
    ls_profile_destroy(f);
    return sums;
}

static void parts_add_up(void)
{
    model m;

    open_model(&m);
    for (int runs = 1; runs <= 3; runs++) {
        const ls_profile_sums s = profile(&m, 7, runs);
        CHECK(s.nodes > 0 && s.rest > 0 && s.progress >= 0);
        CHECK_NEAR(s.nodes + s.progress + s.rest, s.step, 1e-9);
        CHECK_NEAR(runs * seconds_of(m.plan), s.nodes + s.progress, 1e-9);
    }
    close_model(&m);
}

/* Of four steps one takes a thousand times as long: it is not typical. */
static void what_is_not_typical_is_left_out(void)
{
    ls_profile *f;
    ls_err err = {0};
    static const double steps[] = {1, 1000, 2, 3, 2, 0.001, 2, 3};

    REQUIRE_OK(ls_profile_create(&f, 8, &err), &err);
    for (int i = 0; i < 8; i++) ls_profile_step(f, steps[i]);
    CHECK_NEAR(ls_profile_conclude(f).step, (2 + 3 + 2 + 2 + 3) / 5.0, 1e-12);
    ls_profile_destroy(f);
}

static void no_steps_are_nothing(void)
{
    ls_profile *f;
    ls_err err = {0};

    REQUIRE_OK(ls_profile_create(&f, 0, &err), &err);
    CHECK_NEAR(ls_profile_conclude(f).step, 0, 0);
    ls_profile_destroy(f);
    ls_profile_destroy(NULL);
}

static void a_plan_alone(void)
{
    model m;
    ls_err err = {0};

    open_model(&m);
    CHECK(seconds_of(m.plan) <= 0);
    REQUIRE_OK(ls_plan_profile(m.plan, 5, &err), &err);
    CHECK(seconds_of(m.plan) > 0);
    close_model(&m);
}

int main(void)
{
    CHECK_RUN(parts_add_up);
    CHECK_RUN(what_is_not_typical_is_left_out);
    CHECK_RUN(no_steps_are_nothing);
    CHECK_RUN(a_plan_alone);
    return CHECK_DONE();
}
