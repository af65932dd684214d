/* test_updates.c: the order of updates, checked by hand on networks of one weight each.
 *
 * D(v) = d * v and G = g, all scalars.  Loss of D: (d*x - 1)^2 + (d*g)^2, loss of G: (d*g - 1)^2, learning
 * rate r, plain gradient descent:
 *   dLd/dd = 2 x (d x - 1) + 2 g (d g),   dLg/dg = 2 d (d g - 1)
 * Simultaneous: both gradients at the old d and g.  Sequential: G's at the new d. */
#include <math.h>

#include "nn_test.h"

#define RATE 0.1

static ls_value weight(ls_step *s, const char *name)
{
    return ls_reshape(ls_parameter(s, name, LS_SHAPE(1), ls_init_const(1.0)), LS_SHAPE_SCALAR);
}

static ls_value discriminator(ls_step *s, ls_value v)
{
    return ls_mul(weight(s, "D.w"), v);
}

static ls_value off_by(ls_value v, double target)
{
    return ls_square(ls_affine(v, 1.0, -target));
}

static ls_optimiser descent(void)
{
    return (ls_optimiser){.rule = LS_SGD, .lr = RATE};
}

static void build_simultaneous(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE_SCALAR), g = weight(s, "G.w");
    ls_value d_fake = discriminator(s, g);
    ls_value d_loss = ls_add(off_by(discriminator(s, x), 1), off_by(d_fake, 0));
    ls_value g_loss = off_by(d_fake, 1);

    ls_minimise(s, d_loss, "D.*", descent());
    ls_minimise(s, g_loss, "G.*", descent());
    ls_metric(s, "d_loss", d_loss);
    ls_metric(s, "g_loss", g_loss);
}

static void build_sequential(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE_SCALAR), g = weight(s, "G.w"), g_loss;
    ls_value d_loss = ls_add(off_by(discriminator(s, x), 1), off_by(discriminator(s, g), 0));

    ls_minimise(s, d_loss, "D.*", descent());
    g_loss = off_by(discriminator(s, g), 1);
    ls_minimise(s, g_loss, "G.*", descent());
    ls_metric(s, "d_loss", d_loss);
    ls_metric(s, "g_loss", g_loss);
}

typedef struct hand {
    double d, g, d_loss, g_loss;
} hand;

static hand by_hand(double d, double g, double x, bool simultaneous)
{
    double d_new = d - RATE * (2 * x * (d * x - 1) + 2 * g * (d * g));
    double seen = simultaneous ? d : d_new;

    return (hand){d_new, g - RATE * 2 * seen * (seen * g - 1), pow(d * x - 1, 2) + pow(d * g, 2),
                  pow(seen * g - 1, 2)};
}

static hand run_steps(void (*build)(ls_step *s), int steps)
{
    nn_run r = nn_compile(build, 1, LS_TRAIN);
    hand h;

    tensor_put(nn_var(&r, "D.w"), 0, 0.7);
    tensor_put(nn_var(&r, "G.w"), 0, -0.4);
    tensor_put(nn_input(&r, "x"), 0, 1.5);
    for (int i = 0; i < steps; i++) run_plan(r.plan);
    h = (hand){tensor_get(nn_var(&r, "D.w"), 0), tensor_get(nn_var(&r, "G.w"), 0), nn_fetch(&r, "d_loss"),
               nn_fetch(&r, "g_loss")};
    nn_release(&r);
    return h;
}

static void check_against_hand(void (*build)(ls_step *s), bool simultaneous)
{
    for (int steps = 1; steps <= 3; steps++) {
        hand got = run_steps(build, steps), want = {.d = 0.7, .g = -0.4};
        for (int i = 0; i < steps; i++) want = by_hand(want.d, want.g, 1.5, simultaneous);
        CHECK_NEAR(got.d, want.d, 1e-5);
        CHECK_NEAR(got.g, want.g, 1e-5);
        CHECK_NEAR(got.d_loss, want.d_loss, 1e-5);
        CHECK_NEAR(got.g_loss, want.g_loss, 1e-5);
    }
}

static void simultaneous_updates_use_old_weights(void)
{
    check_against_hand(build_simultaneous, true);
}

static void sequential_updates_use_new_weights(void)
{
    check_against_hand(build_sequential, false);
}

static void the_two_orders_differ(void)
{
    CHECK(fabs(run_steps(build_simultaneous, 1).g - run_steps(build_sequential, 1).g) > 1e-3);
}

/* The same parameters twice in one step: w <- w - r * 2w, both times, so w * (1 - 2r)^2. */
static void build_twice(ls_step *s)
{
    for (int i = 0; i < 2; i++) ls_minimise(s, ls_square(weight(s, "w")), "w", descent());
}

static void two_updates_of_the_same_parameter(void)
{
    nn_run r = nn_compile(build_twice, 1, LS_TRAIN);

    tensor_put(nn_var(&r, "w"), 0, 2.0);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), 2.0 * 0.8 * 0.8, 1e-6);
    nn_release(&r);
}

/* Gradients are of loss_scale * loss, and the optimiser divides by it: the update does not change. */
static void loss_scale_cancels(void)
{
    nn_run r = nn_compile(build_twice, 1, LS_TRAIN);

    tensor_put(nn_var(&r, "w"), 0, 2.0);
    tensor_put(nn_input(&r, "loss_scale"), 0, 1024.0);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), 2.0 * 0.8 * 0.8, 1e-6);
    nn_release(&r);
}

static void learning_rate_is_read_at_run_time(void)
{
    nn_run r = nn_compile(build_twice, 1, LS_TRAIN);

    tensor_put(nn_var(&r, "w"), 0, 2.0);
    tensor_put(nn_input(&r, "lr"), 0, 0.25);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "w"), 0), 2.0 * 0.5 * 0.5, 1e-6);
    nn_release(&r);
}

/* Gradient penalty: loss = (|d(a x^2)/dx| - 1)^2 = (2 a x - 1)^2 for a, x > 0; its derivative in a is
 * 4 x (2 a x - 1). */
static void build_penalty(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE_SCALAR);
    ls_value y = ls_mul(weight(s, "a"), ls_square(x));
    ls_value loss = off_by(ls_abs(ls_gradient(y, x)), 1);

    ls_minimise(s, loss, "a", descent());
    ls_metric(s, "loss", loss);
}

static void gradient_of_a_gradient(void)
{
    nn_run r = nn_compile(build_penalty, 1, LS_TRAIN);

    tensor_put(nn_var(&r, "a"), 0, 0.75);
    tensor_put(nn_input(&r, "x"), 0, 2.0);
    run_plan(r.plan);
    CHECK_NEAR(nn_fetch(&r, "loss"), 4.0, 1e-5);
    CHECK_NEAR(tensor_get(nn_var(&r, "a"), 0), 0.75 - RATE * 4 * 2 * (2 * 0.75 * 2 - 1), 1e-5);
    nn_release(&r);
}

/* In evaluation nothing is updated and metrics are still there. */
static void evaluation_changes_nothing(void)
{
    nn_run r = nn_compile(build_simultaneous, 1, LS_EVAL);

    tensor_put(nn_var(&r, "D.w"), 0, 0.7);
    tensor_put(nn_input(&r, "x"), 0, 1.5);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_var(&r, "D.w"), 0), 0.7, 1e-7);
    CHECK_NEAR(nn_fetch(&r, "d_loss"), pow(0.7 * 1.5 - 1, 2) + 0.7 * 0.7, 1e-6);
    CHECK(ls_plan_input(r.plan, "lr") == NULL);
    nn_release(&r);
}

int main(void)
{
    CHECK_RUN(simultaneous_updates_use_old_weights);
    CHECK_RUN(sequential_updates_use_new_weights);
    CHECK_RUN(the_two_orders_differ);
    CHECK_RUN(two_updates_of_the_same_parameter);
    CHECK_RUN(loss_scale_cancels);
    CHECK_RUN(learning_rate_is_read_at_run_time);
    CHECK_RUN(gradient_of_a_gradient);
    CHECK_RUN(evaluation_changes_nothing);
    return CHECK_DONE();
}
