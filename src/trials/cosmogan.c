/* cosmogan.c: the DCGAN of the cosmoGAN benchmark (weak-lensing maps, 256 x 256), whole and in parts.
 *
 * Convolutions are 5x5, stride 2, padded as TensorFlow's SAME (1 before, 2 after), transposed ones are their
 * exact adjoints.  The last but one discriminator layer has 384 channels: the benchmark's network, not the
 * later one with 512. */
#include <stdio.h>

#include "trials/trials.h"

/* Statistics are those of one batch in one pass; the running averages see every pass. */
static ls_value generator(ls_step *s, ls_config *cfg, ls_value z)
{
    int64_t size = ls_config_int(cfg, "model.size"), width = ls_config_int(cfg, "model.width");
    ls_value h;

    ls_scope_push(s, "G");
    ls_unit_begin(s, "h0");
    h = ls_linear(s, z, "h0", .out = 8 * width * (size / 16) * (size / 16), .init = ls_init_normal(0.02));
    h = ls_reshape(h, LS_SHAPE(ls_step_batch(s), 8 * width, size / 16, size / 16));
    h = ls_relu(ls_batchnorm(s, h, "bn0"));
    ls_unit_end(s);
    for (int i = 1; i <= 4; i++) {
        char conv[8], bn[8];
        snprintf(conv, sizeof conv, "h%d", i);
        snprintf(bn, sizeof bn, "bn%d", i);
        ls_unit_begin(s, conv);
        h = ls_conv_transpose(s, h, conv, .out = i < 4 ? (8 * width) >> i : 1, .kernel = 5, .stride = 2,
                              .same = true, .init = ls_init_normal(0.02));
        h = i < 4 ? ls_relu(ls_batchnorm(s, h, bn)) : ls_tanh(h);
        ls_unit_end(s);
    }
    ls_scope_pop(s);
    return h;
}

/* One logit per image: (N, 1). */
static ls_value discriminator(ls_step *s, ls_config *cfg, ls_value image)
{
    int64_t width = ls_config_int(cfg, "model.width");
    ls_value h = image;

    ls_scope_push(s, "D");
    for (int i = 0; i <= 3; i++) {
        char conv[8], bn[8];
        snprintf(conv, sizeof conv, "h%d", i);
        snprintf(bn, sizeof bn, "bn%d", i);
        ls_unit_begin(s, conv);
        h = ls_conv(s, h, conv, .out = i == 0 ? width : 2 * i * width, .kernel = 5, .stride = 2, .same = true,
                    .init = ls_init_trunc_normal(0.02));
        if (i > 0) h = ls_batchnorm(s, h, bn);
        h = ls_leaky_relu(h, 0.2);
        ls_unit_end(s);
    }
    h = ls_linear(s, ls_flatten(h), "h4", .out = 1, .init = ls_init_normal(0.02));
    ls_scope_pop(s);
    return h;
}

static ls_value map_input(ls_step *s, ls_config *cfg, const char *name)
{
    int64_t size = ls_config_int(cfg, "model.size");
    ls_value v = ls_input(s, name, LS_F32, LS_SHAPE(-1, 1, size, size));

    ls_input_range(s, name, -1, 1);
    return v;
}

/* One draw per step and rank: below `share`, real maps are called fake and fake ones real.  The draw is that
 * of the first sample at hand, so that a rank has its own, as published, and so has every shard of the
 * reproducible mode: there the number of ranks changes nothing.  What is evaluated keeps its labels. */
static ls_value label_flip(ls_step *s, double share)
{
    ls_value u = ls_draw_uniform(s, "flip", LS_SHAPE(1, 1));

    /* 1 where u < share, else 0. */
    if (!ls_step_training(s)) share = 0;
    return ls_broadcast_to(ls_relu(ls_sign(ls_affine(u, -1.0, share))), LS_SHAPE(ls_step_batch(s), 1));
}

/* Both losses come from one forward pass and the old weights; the two updates are simultaneous. */
static void build_gan(ls_step *s, ls_config *cfg)
{
    ls_value real = map_input(s, cfg, "image");
    ls_value z = ls_draw_normal(s, "z", LS_SHAPE(-1, ls_config_int(cfg, "model.z")), 1.0);
    ls_value fake = generator(s, cfg, z);
    ls_value d_real = discriminator(s, cfg, real), d_fake = discriminator(s, cfg, fake);
    ls_value flip = label_flip(s, ls_config_real(cfg, "model.flip_labels"));
    ls_value on_real = ls_bce_with_logits(d_real, ls_affine(flip, -1.0, 1.0));
    ls_value d_loss = ls_add(on_real, ls_bce_with_logits(d_fake, flip));
    ls_value g_loss = ls_bce_with_logits(d_fake, ls_constant(s, LS_SHAPE(-1, 1), 1.0));

    ls_minimise(s, d_loss, "D.*", ls_config_optimiser(cfg));
    ls_minimise(s, g_loss, "G.*", ls_config_optimiser(cfg));
    ls_metric(s, "d_loss", d_loss);
    ls_metric(s, "g_loss", g_loss);
    ls_distance(s, "pixel_distance", fake, real, -1, 1);
    ls_image(s, "fake", fake, -1, 1);
    ls_image(s, "real", real, -1, 1);
}

/* The two networks by themselves, on given images and noise: parts of the step that can be measured and
 * compared one by one. */
static void build_d(ls_step *s, ls_config *cfg)
{
    ls_value d_real = discriminator(s, cfg, map_input(s, cfg, "real"));
    ls_value d_fake = discriminator(s, cfg, map_input(s, cfg, "fake"));
    ls_value on_real = ls_bce_with_logits(d_real, ls_constant(s, LS_SHAPE(-1, 1), 1.0));
    ls_value loss = ls_add(on_real, ls_bce_with_logits(d_fake, ls_constant(s, LS_SHAPE(-1, 1), 0.0)));

    ls_minimise(s, loss, "D.*", ls_config_optimiser(cfg));
    ls_metric(s, "d_loss", loss);
}

static void build_g(ls_step *s, ls_config *cfg)
{
    ls_value z = ls_input(s, "z", LS_F32, LS_SHAPE(-1, ls_config_int(cfg, "model.z")));
    ls_value target = map_input(s, cfg, "target");
    ls_value fake = generator(s, cfg, z);
    ls_value loss = ls_mse_loss(fake, target);

    ls_minimise(s, loss, "G.*", ls_config_optimiser(cfg));
    ls_metric(s, "g_loss", loss);
    ls_image(s, "fake", fake, -1, 1);
}

#define SIZE_SETTING                                                                                         \
    {                                                                                                        \
        "model.size", LS_SETTING_INT, 256, 16, 1024, NULL, "height and width; a multiple of 16", NULL        \
    }
#define WIDTH_SETTING                                                                                        \
    {                                                                                                        \
        "model.width", LS_SETTING_INT, 64, 1, 4096, NULL, "channels of the layers next to the map", NULL     \
    }
#define Z_SETTING                                                                                            \
    {                                                                                                        \
        "model.z", LS_SETTING_INT, 64, 1, 1e6, NULL, "random numbers that a map is made of", NULL            \
    }
#define END_SETTING                                                                                          \
    {                                                                                                        \
        NULL, 0, 0, 0, 0, NULL, NULL, NULL                                                                   \
    }
#define TF_ADAM                                                                                              \
    {                                                                                                        \
        .rule = LS_ADAM, .lr = 2e-4, .beta1 = 0.5, .form = LS_ADAM_TF                                        \
    }

static const ls_setting d_settings[] = {SIZE_SETTING, WIDTH_SETTING, END_SETTING};
static const ls_setting g_settings[] = {SIZE_SETTING, WIDTH_SETTING, Z_SETTING, END_SETTING};
static const ls_setting gan_settings[] = {
    SIZE_SETTING,
    WIDTH_SETTING,
    Z_SETTING,
    {"model.flip_labels", LS_SETTING_REAL, 0.01, 0, 1, NULL, "share of steps with exchanged labels", NULL},
    END_SETTING,
};

const ls_trial ls_trial_cosmogan = {
    .name = "cosmogan",
    .about = "cosmoGAN, simultaneous updates (G 12,824,449, D 3,583,873 parameters)",
    .networks = "G D",
    .batch = 64,
    .optimiser = TF_ADAM,
    .settings = gan_settings,
    .build = build_gan,
};

const ls_trial ls_trial_dcgan_d = {
    .name = "dcgan-d",
    .about = "cosmoGAN's discriminator alone, real and fake maps given",
    .networks = "D",
    .batch = 8,
    .optimiser = TF_ADAM,
    .settings = d_settings,
    .build = build_d,
};

const ls_trial ls_trial_dcgan_g = {
    .name = "dcgan-g",
    .about = "cosmoGAN's generator alone, mean squared error to given maps",
    .networks = "G",
    .batch = 8,
    .optimiser = TF_ADAM,
    .settings = g_settings,
    .build = build_g,
};
