/* two_losses.c: a whole program: two networks, two losses, one plan.
 *
 * A generator learns to draw numbers that look like a normal distribution around 3; a discriminator learns to
 * tell them from real ones.  Both are updated in every step, from the same forward pass. */
#include <stdio.h>

#include "lockstep/lockstep.h"

#define BATCH 64

static ls_value generator(ls_step *s, ls_value z)
{
    ls_value h;

    ls_scope_push(s, "G");
    h = ls_tanh(ls_linear(s, z, "fc1", .out = 8));
    h = ls_linear(s, h, "fc2", .out = 1);
    ls_scope_pop(s);
    return h;
}

/* Called twice, it is one network: layers find their parameters by name. */
static ls_value discriminator(ls_step *s, ls_value x)
{
    ls_value h;

    ls_scope_push(s, "D");
    h = ls_leaky_relu(ls_linear(s, x, "fc1", .out = 8), 0.2);
    h = ls_linear(s, h, "fc2", .out = 1);
    ls_scope_pop(s);
    return h;
}

static void build(ls_step *s)
{
    ls_optimiser adam = {.rule = LS_ADAM, .lr = 0.01, .beta1 = 0.5};
    ls_value real = ls_input(s, "real", LS_F32, LS_SHAPE(-1, 1));
    ls_value fake = generator(s, ls_draw_normal(s, "z", LS_SHAPE(-1, 4), 1.0));
    ls_value d_real = discriminator(s, real), d_fake = discriminator(s, fake);
    ls_value ones = ls_constant(s, LS_SHAPE(-1, 1), 1.0), zeros = ls_constant(s, LS_SHAPE(-1, 1), 0.0);
    ls_value d_loss = ls_add(ls_bce_with_logits(d_real, ones), ls_bce_with_logits(d_fake, zeros));
    ls_value g_loss = ls_bce_with_logits(d_fake, ones);

    ls_minimise(s, d_loss, "D.*", adam);
    ls_minimise(s, g_loss, "G.*", adam);
    ls_metric(s, "d_loss", d_loss);
    ls_metric(s, "g_loss", g_loss);
}

static ls_status train(const ls_step *s, ls_plan *plan, ls_err *err)
{
    float real[BATCH];
    double d_loss, g_loss;
    ls_status st = LS_OK;

    for (int i = 0; i < BATCH; i++) real[i] = 3.0f + 0.5f * (float)(i - BATCH / 2) / (BATCH / 4);
    ls_plan_write_input(plan, "real", 0, real, sizeof real);
    ls_step_write_defaults(s, plan);
    for (uint32_t step = 0; step < 3; step++) {
        ls_step_write_rng(plan, 1, step, 0);
        LS_TRY(ls_plan_run(plan, err));
        LS_TRY(ls_tensor_read_scalar(ls_plan_fetch(plan, "d_loss"), &d_loss, err));
        LS_TRY(ls_tensor_read_scalar(ls_plan_fetch(plan, "g_loss"), &g_loss, err));
        printf("step %u: d_loss %.4f, g_loss %.4f\n", (unsigned)step, d_loss, g_loss);
    }
out:
    return st;
}

int main(void)
{
    ls_err err = {0};
    ls_status st = LS_OK;
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_step *s = NULL;
    ls_plan *plan = NULL;

    LS_TRY(ls_device_open(&dev, "cpu", 1, &err));
    LS_TRY(ls_state_create(&state, dev, &err));
    LS_TRY(ls_step_create(&s, BATCH, LS_TRAIN, &err));
    build(s);
    LS_TRY(ls_step_status(s, &err)); /* the first mistake, with its line */
    LS_TRY(ls_plan_compile_take(&plan, ls_step_graph_take(s), dev, state, &err));
    LS_TRY(ls_state_init(state, 1, &err));
    LS_TRY(train(s, plan, &err));
out:
    if (st != LS_OK) fprintf(stderr, "two_losses: %s\n", err.text);
    ls_plan_destroy(plan);
    ls_step_destroy(s);
    ls_state_destroy(state);
    ls_device_close(dev);
    return st == LS_OK ? 0 : 1;
}
