/* test_guard.c: updates that are left out where gradients are not finite, and the loss scale, against the
 * rule of PyTorch's GradScaler written out, on networks of one weight each. */
#include <math.h>
#include <stdio.h>

#include "exec/compile.h"
#include "graph/graph.h"
#include "nn_test.h"
#include "ops/macros.h"
#include "passes/lower.h"

#define RATE 0.125

static ls_value weight(ls_step *s, const char *name)
{
    return ls_reshape(ls_parameter(s, name, LS_SHAPE(1), ls_init_const(1.0)), LS_SHAPE_SCALAR);
}

static ls_optimiser adam(const char *name)
{
    return (ls_optimiser){.rule = LS_ADAM, .lr = RATE, .name = name};
}

/* (w * x - 1)^2 */
static void build_one(ls_step *s)
{
    const ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE_SCALAR);

    ls_minimise(s, ls_square(ls_affine(ls_mul(weight(s, "w"), x), 1, -1)), "w", adam(NULL));
}

/* Two losses, of which the first alone sees x. */
static void build_two(ls_step *s)
{
    const ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE_SCALAR);

    ls_minimise(s, ls_square(ls_mul(weight(s, "D.w"), x)), "D.*", adam("d"));
    ls_minimise(s, ls_square(weight(s, "G.w")), "G.*", adam("g"));
}

static nn_run compile(void (*build)(ls_step *s), const ls_strategy *how)
{
    nn_run r = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&r.dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&r.state, r.dev, &err), &err);
    REQUIRE_OK(ls_step_create(&r.step, 1, LS_TRAIN, &err), &err);
    build(r.step);
    REQUIRE_OK(ls_step_status(r.step, &err), &err);
    REQUIRE_OK(ls_plan_compile_as(&r.plan, ls_step_graph_take(r.step), how, r.dev, r.state, &err), &err);
    init_state(r.state, 1);
    ls_step_write_defaults(r.step, r.plan);
    tensor_put(nn_input(&r, "x"), 0, 2);
    return r;
}

static double report(const nn_run *r, int what)
{
    return tensor_get(nn_fetched(r, LS_GUARD_REPORT_NAME), what);
}

/* -- one loss ---------------------------------------------------------------------------------------------
 */

/* torch/amp/grad_scaler.py, _amp_update_scale_: backoff 0.5, growth 2. */
typedef struct scaler {
    double scale;
    int good;
} scaler;

static void scaler_update(scaler *s, bool found_inf, int interval)
{
    if (found_inf) {
        s->scale *= 0.5;
        s->good = 0;
    } else if (++s->good == interval) {
        s->scale *= 2;
        s->good = 0;
    }
    s->scale = fmin(fmax(s->scale, LS_SCALE_LEAST), LS_SCALE_MOST);
}

/* The same steps without those that overflow give the same weight: as if they had not been. */
static void follow(const char *steps, double initial, int interval)
{
    const ls_strategy how = {.guard = LS_GUARD_SKIP, .loss_scale = initial, .scale_growth = interval};
    nn_run r = compile(build_one, &how), plain = compile(build_one, &(ls_strategy){0});
    scaler want = {initial, 0};
    int skipped = 0;

    for (const char *s = steps; *s != '\0'; s++) {
        const bool overflow = *s == '!';
        const double before = tensor_get(nn_var(&r, "w"), 0);
        tensor_put(nn_input(&r, "loss_scale"), 0, overflow ? INFINITY : 1);
        tensor_put(nn_input(&r, LS_SKIPS_KNOWN), 0, skipped);
        run_plan(r.plan);
        CHECK_NEAR(report(&r, LS_REPORT_FOUND), overflow ? 1 : 0, 0);
        CHECK_NEAR(report(&r, LS_REPORT_SCALE), want.scale, 0);
        scaler_update(&want, overflow, interval);
        skipped += overflow;
        if (!overflow) run_plan(plain.plan);
        CHECK_NEAR(tensor_get(nn_var(&r, LS_SCALE_VAR), 0), want.scale, 0);
        CHECK_NEAR(tensor_get(nn_var(&r, LS_GOOD_VAR), 0), want.good, 0);
        CHECK_NEAR(tensor_get(nn_var(&r, LS_SKIPPED_VAR), 0), skipped, 0);
        CHECK((tensor_get(nn_var(&r, "w"), 0) == before) == overflow);
        CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), tensor_get(nn_var(&plain, "w"), 0), 0);
        CHECK_NEAR(tensor_get(nn_var(&r, "optimizer.w.t"), 0), tensor_get(nn_var(&plain, "optimizer.w.t"), 0),
                   0);
    }
    nn_release(&r);
    nn_release(&plain);
}

static void the_scale_follows_the_rule(void)
{
    follow(".........", 65536, 3);
    follow("!..!!...!...!.", 65536, 3);
    follow("..!..!..!", 1024, 3); /* good steps are counted from anew */
    follow("!!!!!..", 8, 2);      /* down to the least */
    follow("........", LS_SCALE_MOST / 2, 2);
}

static void a_fixed_scale_stays(void)
{
    const ls_strategy how = {.guard = LS_GUARD_SKIP, .loss_scale = 128};
    nn_run r = compile(build_one, &how);

    tensor_put(nn_input(&r, "loss_scale"), 0, INFINITY);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), 1, 0);
    CHECK_NEAR(report(&r, LS_REPORT_SCALE), 128, 0);
    CHECK(ls_state_find(r.state, LS_SCALE_VAR) == NULL);
    CHECK_NEAR(tensor_get(nn_var(&r, LS_SKIPPED_VAR), 0), 1, 0);
    nn_release(&r);
}

/* A norm of gradients that are not finite must not leave its mark, and one of finite ones is that of unscaled
 * gradients. */
static void clipping_sees_unscaled_gradients(void)
{
    ls_strategy how = {.clip_norm = 0.5};
    nn_run plain = compile(build_one, &how), r;

    how.guard = LS_GUARD_SKIP;
    how.loss_scale = 65536;
    how.scale_growth = 100;
    r = compile(build_one, &how);
    for (int i = 0; i < 4; i++) {
        tensor_put(nn_input(&r, "loss_scale"), 0, i == 1 ? NAN : 1);
        tensor_put(nn_input(&r, LS_SKIPS_KNOWN), 0, i > 1);
        run_plan(r.plan);
        if (i != 1) run_plan(plain.plan);
        CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), tensor_get(nn_var(&plain, "w"), 0), 1e-6);
    }
    nn_release(&r);
    nn_release(&plain);
}

/* The host knows of the skips before the newest step only. */
static void a_rate_holds_until_an_update_was_made(void)
{
    const ls_strategy how = {.guard = LS_GUARD_SKIP};
    nn_run r = compile(build_one, &how);
    double before;

    tensor_put(nn_input(&r, "loss_scale"), 0, INFINITY);
    run_plan(r.plan);
    tensor_put(nn_input(&r, "loss_scale"), 0, 1);
    tensor_put(nn_input(&r, "lr"), 0, 100);
    tensor_put(nn_input(&r, LS_RATE_AGAIN "lr"), 0, RATE);
    tensor_put(nn_input(&r, LS_SKIPS_KNOWN), 0, 0); /* that there was one it does not know yet */
    before = tensor_get(nn_var(&r, "w"), 0);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), before - RATE, 1e-5); /* the first step of Adam */
    tensor_put(nn_input(&r, LS_SKIPS_KNOWN), 0, 1);
    tensor_put(nn_input(&r, "lr"), 0, 0);
    before = tensor_get(nn_var(&r, "w"), 0);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), before, 0);
    nn_release(&r);
}

static void reporting_leaves_nothing_out(void)
{
    nn_run r = compile(build_one, &(ls_strategy){.guard = LS_GUARD_REPORT});

    tensor_put(nn_input(&r, "x"), 0, NAN);
    run_plan(r.plan);
    CHECK_NEAR(report(&r, LS_REPORT_FOUND), 1, 0);
    CHECK(isnan(tensor_get(nn_var(&r, "w"), 0)));
    CHECK(ls_state_find(r.state, LS_SKIPPED_VAR) == NULL);
    nn_release(&r);
}

/* -- several losses ---------------------------------------------------------------------------------------
 */

/* Each update looks at its own gradients; the scale of all is halved once. */
static void each_update_is_left_out_by_itself(void)
{
    const ls_strategy how = {.guard = LS_GUARD_SKIP, .loss_scale = 64, .scale_growth = 2};
    nn_run r = compile(build_two, &how);

    tensor_put(nn_input(&r, "x"), 0, INFINITY);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "D.w"), 0), 1, 0);
    CHECK_NEAR(tensor_get(nn_var(&r, "G.w"), 0), 1 - RATE, 1e-6);
    CHECK_NEAR(tensor_get(nn_var(&r, LS_SCALE_VAR), 0), 32, 0);
    CHECK_NEAR(report(&r, LS_REPORT_FOUND), 1, 0);
    tensor_put(nn_input(&r, "x"), 0, 1);
    tensor_put(nn_var(&r, "G.w"), 0, INFINITY);
    tensor_put(nn_input(&r, LS_SKIPS_KNOWN), 0, 1);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "D.w"), 0), 1 - RATE, 1e-6);
    CHECK_NEAR(tensor_get(nn_var(&r, LS_SCALE_VAR), 0), 16, 0);
    CHECK_NEAR(report(&r, LS_REPORT_FOUND), 2, 0);
    CHECK_NEAR(tensor_get(nn_var(&r, LS_SKIPPED_VAR), 0), 2, 0);
    nn_release(&r);
}

static void parameters_have_numbers(void)
{
    ls_step *s = NULL;
    ls_graph *g;
    ls_err err = {0};

    REQUIRE_OK(ls_step_create(&s, 1, LS_TRAIN, &err), &err);
    build_two(s);
    g = ls_step_graph_take(s);
    CHECK_EQ_STR(ls_update_parameter(g, 0), "D.w");
    CHECK_EQ_STR(ls_update_parameter(g, 1), "G.w");
    CHECK(ls_update_parameter(g, 2) == NULL && ls_update_parameter(g, -1) == NULL);
    ls_graph_destroy(g);
    ls_step_destroy(s);
}

/* -- plans that ask for none ------------------------------------------------------------------------------
 */

static void without_a_guard_nothing_is_added(void)
{
    nn_run r = compile(build_two, &(ls_strategy){.clip_norm = 1});

    CHECK(ls_plan_fetch(r.plan, LS_GUARD_REPORT_NAME) == NULL);
    CHECK(ls_plan_input(r.plan, LS_SKIPS_KNOWN) == NULL);
    CHECK(ls_state_find(r.state, LS_SKIPPED_VAR) == NULL);
    nn_release(&r);
}

int main(void)
{
    CHECK_RUN(the_scale_follows_the_rule);
    CHECK_RUN(a_fixed_scale_stays);
    CHECK_RUN(clipping_sees_unscaled_gradients);
    CHECK_RUN(a_rate_holds_until_an_update_was_made);
    CHECK_RUN(reporting_leaves_nothing_out);
    CHECK_RUN(each_update_is_left_out_by_itself);
    CHECK_RUN(parameters_have_numbers);
    CHECK_RUN(without_a_guard_nothing_is_added);
    return CHECK_DONE();
}
