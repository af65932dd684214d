/* cyclegan.c: unpaired image translation with two ResNet-9 generators and two patch discriminators, and one
 * generator alone.
 *
 * The original updates the generators first and then the discriminators, but on images made before that
 * update, some of them replaced by images of earlier steps.  So all three losses depend on old weights only:
 * they are built first, and the order of the updates does not matter. */
#include <stdio.h>

#include "trials/trials.h"

#define INIT ls_init_normal(0.02)

/* Reflection around the image, then a convolution without zeros. */
static ls_value conv_reflect(ls_step *s, ls_value x, const char *name, int64_t out, int kernel)
{
    int64_t r = kernel / 2;

    x = ls_pad2d(x, LS_PAD_REFLECT, r, r, r, r);
    return ls_conv(s, x, name, .out = out, .kernel = kernel, .init = INIT);
}

/* The norm has no parameters; biases under it are counted but have no effect. */
static ls_value norm_relu(ls_value x)
{
    return ls_relu(ls_instancenorm(x, 1e-5));
}

static ls_value residual(ls_step *s, ls_value x, int number)
{
    const int64_t channels = ls_value_shape(x).dim[1];
    ls_value h;

    ls_scope_push(s, "res%d", number);
    ls_unit_begin(s, NULL);
    h = norm_relu(conv_reflect(s, x, "conv1", channels, 3));
    h = ls_instancenorm(conv_reflect(s, h, "conv2", channels, 3), 1e-5);
    x = ls_add(x, h);
    ls_unit_end(s);
    ls_scope_pop(s);
    return x;
}

static ls_value generator(ls_step *s, ls_config *cfg, const char *name, ls_value x)
{
    const int64_t width = ls_config_int(cfg, "model.width"), blocks = ls_config_int(cfg, "model.blocks");

    ls_scope_push(s, "%s", name);
    ls_unit_begin(s, "down");
    x = norm_relu(conv_reflect(s, x, "in", width, 7));
    x = norm_relu(ls_conv(s, x, "down1", .out = 2 * width, .kernel = 3, .stride = 2, .pad = 1, .init = INIT));
    x = norm_relu(ls_conv(s, x, "down2", .out = 4 * width, .kernel = 3, .stride = 2, .pad = 1, .init = INIT));
    ls_unit_end(s);
    for (int i = 0; i < blocks; i++) x = residual(s, x, i);
    ls_unit_begin(s, "up");
    x = norm_relu(
        ls_conv(s, ls_upsample2d(x, 2), "up1", .out = 2 * width, .kernel = 3, .pad = 1, .init = INIT));
    x = norm_relu(ls_conv(s, ls_upsample2d(x, 2), "up2", .out = width, .kernel = 3, .pad = 1, .init = INIT));
    x = ls_tanh(conv_reflect(s, x, "out", 3, 7));
    ls_unit_end(s);
    ls_scope_pop(s);
    return x;
}

/* One judgement per patch: (N, 1, size / 16, size / 16). */
static ls_value discriminator(ls_step *s, ls_config *cfg, const char *name, ls_value x)
{
    const int64_t width = ls_config_int(cfg, "model.width");

    ls_scope_push(s, "%s", name);
    ls_unit_begin(s, NULL);
    for (int i = 0; i < 4; i++) {
        char conv[8];
        snprintf(conv, sizeof conv, "conv%d", i + 1);
        x = ls_conv(s, x, conv, .out = width << i, .kernel = 4, .stride = 2, .pad = 1, .init = INIT);
        x = ls_leaky_relu(i > 0 ? ls_instancenorm(x, 1e-5) : x, 0.2);
    }
    /* Padding of 1 and one more row and column of zeros at the top and left only. */
    x = ls_conv(s, x, "conv5", .out = 1, .kernel = 4, .pads = {2, 2, 1, 1}, .init = INIT);
    ls_unit_end(s);
    ls_scope_pop(s);
    return x;
}

/* Mean squared distance of the judgement to `target` everywhere. */
static ls_value judged(ls_step *s, ls_value verdict, double target)
{
    return ls_mse_loss(verdict, ls_constant(s, ls_value_shape(verdict), target));
}

static ls_value half_sum(ls_value a, ls_value b)
{
    return ls_scale(ls_add(a, b), 0.5);
}

/* How the discriminator `name` does on real images and on made ones, or what the pool shows in their place.
 */
typedef struct verdicts {
    ls_value real, both;
} verdicts;

static verdicts judge(ls_step *s, ls_config *cfg, const char *name, const char *pool, ls_value real,
                      ls_value fake)
{
    const int64_t capacity = ls_config_int(cfg, "model.replay");
    /* What is shown has no way back into the generator: the discriminator alone learns from it. */
    ls_value shown = capacity > 0 ? ls_replay(s, fake, pool, capacity) : ls_detach(fake);
    ls_value on_real = judged(s, discriminator(s, cfg, name, real), 1);

    return (verdicts){on_real, half_sum(on_real, judged(s, discriminator(s, cfg, name, shown), 0))};
}

static ls_value image_input(ls_step *s, ls_config *cfg, const char *name)
{
    int64_t size = ls_config_int(cfg, "model.size");
    ls_value v = ls_input(s, name, LS_F32, LS_SHAPE(-1, 3, size, size));

    ls_input_range(s, name, -1, 1);
    return v;
}

static void build(ls_step *s, ls_config *cfg)
{
    ls_value a = image_input(s, cfg, "image_a"), b = image_input(s, cfg, "image_b");
    ls_value fake_a, fake_b, identity, gan, cycle, loss_g;
    verdicts d_a, d_b;

    /* An image that is of the other side already should stay as it is. */
    identity = ls_l1_loss(generator(s, cfg, "G_BA", a), a);
    identity = half_sum(identity, ls_l1_loss(generator(s, cfg, "G_AB", b), b));
    fake_b = generator(s, cfg, "G_AB", a);
    fake_a = generator(s, cfg, "G_BA", b);
    gan = judged(s, discriminator(s, cfg, "D_B", fake_b), 1);
    gan = half_sum(gan, judged(s, discriminator(s, cfg, "D_A", fake_a), 1));
    cycle = ls_l1_loss(generator(s, cfg, "G_BA", fake_b), a);
    cycle = half_sum(cycle, ls_l1_loss(generator(s, cfg, "G_AB", fake_a), b));
    loss_g = ls_scale(cycle, ls_config_real(cfg, "model.lambda_cyc"));
    loss_g = ls_add(gan, ls_add(loss_g, ls_scale(identity, ls_config_real(cfg, "model.lambda_id"))));
    d_a = judge(s, cfg, "D_A", "replay_a", a, fake_a);
    d_b = judge(s, cfg, "D_B", "replay_b", b, fake_b);
    ls_minimise(s, loss_g, "G_AB.* G_BA.*", ls_config_optimiser(cfg));
    ls_minimise(s, d_a.both, "D_A.*", ls_config_optimiser(cfg));
    ls_minimise(s, d_b.both, "D_B.*", ls_config_optimiser(cfg));
    ls_metric(s, "loss_g", loss_g);
    ls_metric(s, "loss_gan", gan);
    ls_metric(s, "loss_cycle", cycle);
    ls_metric(s, "loss_identity", identity);
    ls_metric(s, "loss_d", half_sum(d_a.both, d_b.both));
    ls_metric(s, "loss_d_a", d_a.both);
    ls_metric(s, "loss_d_b", d_b.both);
    ls_metric(s, "loss_real_d", half_sum(d_a.real, d_b.real));
    ls_image(s, "translated", a, -1, 1);
    ls_image(s, "translated", fake_b, -1, 1);
    ls_image(s, "translated", b, -1, 1);
    ls_image(s, "translated", fake_a, -1, 1);
}

/* One generator learns to turn given images into given others: the part of the step that takes the time. */
static void build_generator(ls_step *s, ls_config *cfg)
{
    ls_value a = image_input(s, cfg, "image_a"), b = image_input(s, cfg, "image_b");
    ls_value made = generator(s, cfg, "G", a);
    ls_value loss = ls_l1_loss(made, b);

    ls_minimise(s, loss, "G.*", ls_config_optimiser(cfg));
    ls_metric(s, "loss_g", loss);
    ls_image(s, "made", made, -1, 1);
}

#define GENERATOR_SETTINGS                                                                                   \
    {"model.size", LS_SETTING_INT, 256, 32, 1024, NULL, "height and width; a multiple of 16", NULL},         \
        {"model.blocks", LS_SETTING_INT, 9, 0, 100, NULL, "residual blocks of a generator", NULL},           \
    {                                                                                                        \
        "model.width", LS_SETTING_INT, 64, 1, 1024, NULL, "channels of the first layers", NULL               \
    }

static const ls_setting generator_settings[] = {GENERATOR_SETTINGS, {NULL, 0, 0, 0, 0, NULL, NULL, NULL}};
static const ls_setting settings[] = {
    GENERATOR_SETTINGS,
    {"model.lambda_cyc", LS_SETTING_REAL, 10, 0, 1e6, NULL, "weight of the cycle loss", NULL},
    {"model.lambda_id", LS_SETTING_REAL, 5, 0, 1e6, NULL, "weight of the identity loss", NULL},
    {"model.replay", LS_SETTING_INT, 50, 0, 256, NULL,
     "earlier images of each domain kept to be shown to the discriminators; 0: none", NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};

const ls_trial ls_trial_cyclegan = {
    .name = "cyclegan",
    .about = "CycleGAN at 256 x 256 (28,285,832 parameters)",
    .networks = "G_AB G_BA D_A D_B",
    .batch = 1,
    .optimiser = {.rule = LS_ADAM, .lr = 2e-4, .beta1 = 0.5},
    .settings = settings,
    .build = build,
};

const ls_trial ls_trial_cyclegan_g = {
    .name = "cyclegan-g",
    .about = "one CycleGAN generator at 256 x 256 with an L1 loss (11,378,179 parameters)",
    .networks = "G",
    .batch = 1,
    .optimiser = {.rule = LS_ADAM, .lr = 2e-4, .beta1 = 0.5},
    .settings = generator_settings,
    .build = build_generator,
};
