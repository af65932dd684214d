/* aae.c: the adversarial autoencoder on protein point clouds, and its critic alone (WGAN with gradient
 * penalty).
 *
 * This is the lean form of the published step: the gradients upstream computes and throws away (of the
 * critic's loss in the encoder, of the other loss in the critic) are not computed; the weights that come out
 * are the same.  Linear layers start from Glorot's rule with biases of 0.01, convolutions from PyTorch's: the
 * published initialisation names the former only. */
#include <stdio.h>

#include "trials/trials.h"

#define LATENT 64
#define BATCH  32 /* as published, also for the sum of distances in the loss */

/* A chain of linear layers fc1, fc2, ... with ReLU between them: a network, and a unit. */
static ls_value mlp(ls_step *s, ls_value x, int n, const int64_t *width)
{
    ls_unit_begin(s, NULL);
    for (int i = 0; i < n; i++) {
        char name[8];
        snprintf(name, sizeof name, "fc%d", i + 1);
        x = ls_linear(s, x, name, .out = width[i], .init = ls_init_glorot(0.01));
        if (i + 1 < n) x = ls_relu(x);
    }
    ls_unit_end(s);
    return x;
}

/* (N, 3, points) -> codes (N, 64) around *mu; they are drawn in training and evaluation alike. */
static ls_value encoder(ls_step *s, ls_value cloud, int64_t points, ls_value *mu)
{
    static const int64_t out[] = {64, 128, 256, 256, 512};
    static const int kernel[] = {5, 5, 3, 1, 1};
    ls_value h, logvar, eps;

    ls_scope_push(s, "E");
    ls_unit_begin(s, NULL);
    h = ls_reshape(cloud, LS_SHAPE(ls_step_batch(s), 3, 1, points));
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "conv%d", i + 1);
        h = ls_conv1d(s, h, name, .out = out[i], .kernel = kernel[i]);
        if (i < 4) h = ls_relu(h);
    }
    h = ls_reshape(ls_reduce_max(h, 3), LS_SHAPE(ls_step_batch(s), 512));
    h = ls_relu(ls_linear(s, h, "fc", .out = 256, .init = ls_init_glorot(0.01)));
    *mu = ls_linear(s, h, "mu", .out = LATENT, .init = ls_init_glorot(0.01));
    logvar = ls_linear(s, h, "logvar", .out = LATENT, .init = ls_init_glorot(0.01));
    ls_unit_end(s);
    eps = ls_draw_normal(s, "eps", LS_SHAPE(-1, LATENT), 1.0);
    ls_scope_pop(s);
    return ls_add(*mu, ls_mul(ls_exp(ls_scale(logvar, 0.5)), eps));
}

/* Codes -> (N, 3, points), all x first, then all y, then all z. */
static ls_value generator(ls_step *s, ls_value code, int64_t points)
{
    ls_value y;

    ls_scope_push(s, "G");
    y = mlp(s, code, 5, (const int64_t[]){64, 128, 512, 1024, 3 * points});
    ls_scope_pop(s);
    return ls_reshape(y, LS_SHAPE(ls_step_batch(s), 3, points));
}

static ls_value critic(ls_step *s, ls_value code)
{
    ls_value y;

    ls_scope_push(s, "D");
    y = mlp(s, code, 5, (const int64_t[]){512, 512, 128, 64, 1});
    ls_scope_pop(s);
    return y;
}

static ls_value mean(ls_value x)
{
    return ls_reduce_mean(x, LS_ALL_AXES, false);
}

/* mean D(code) - mean D(noise) + lambda * mean (|dD/dx| - 1)^2 at random points between the two. */
static ls_value critic_loss(ls_step *s, ls_value code, double lambda_gp)
{
    ls_value noise = ls_draw_normal(s, "noise", LS_SHAPE(-1, LATENT), 1.0);
    ls_value a = ls_draw_uniform(s, "mix", LS_SHAPE(-1, 1));
    ls_value x = ls_add(noise, ls_mul(a, ls_sub(code, noise)));
    ls_value of_code = mean(critic(s, code)), of_noise = mean(critic(s, noise));
    ls_value loss = ls_sub(of_code, of_noise);
    ls_value g = ls_gradient(critic(s, x), x);
    /* The root of 0 has no derivative: where all of the critic's ReLUs are off, the published code, which has
     * no epsilon, divides 0 by 0, and one such sample makes every weight NaN (its longest run ended so).
     * Beside norms near 1 an epsilon of 1e-12 is below the rounding of fp32. */
    ls_value norm = ls_sqrt(ls_affine(ls_reduce_sum(ls_square(g), 1u << 1, false), 1.0, 1e-12));

    return ls_add(loss, ls_scale(mean(ls_square(ls_affine(norm, 1.0, -1.0))), lambda_gp));
}

/* The critic is updated first; encoder and generator then face the new one. */
static void build_aae(ls_step *s, ls_config *cfg)
{
    int64_t points = ls_config_int(cfg, "model.points"), sum_over = ls_config_int(cfg, "model.sum_over");
    double weight = ls_config_real(cfg, "model.lambda_rec");
    ls_value cloud = ls_input(s, "cloud", LS_F32, LS_SHAPE(-1, 3, points)), mu;
    ls_value code = encoder(s, cloud, points, &mu);
    ls_value loss_d = critic_loss(s, code, ls_config_real(cfg, "model.lambda_gp"));
    ls_value made, rec, loss_eg;

    ls_input_range(s, "cloud", 0, 1);
    ls_minimise(s, loss_d, "D.*", ls_config_optimiser(cfg));
    made = generator(s, code, points);
    /* The published loss is a sum over its batch of 32: this keeps its weight for any other batch. */
    if (sum_over > 0) weight *= (double)sum_over / (double)ls_step_batch(s);
    rec = ls_scale(ls_chamfer(made, cloud), weight);
    loss_eg = ls_sub(rec, mean(critic(s, code)));
    ls_minimise(s, loss_eg, "E.* G.*", ls_config_optimiser(cfg));
    ls_metric(s, "loss_d", loss_d);
    ls_metric(s, "loss_eg", loss_eg);
    ls_metric(s, "loss_rec", rec);
    ls_output(s, "embeddings", mu);
    if (ls_config_bool(cfg, "model.keep_clouds")) {
        ls_output(s, "clouds", cloud);
        ls_output(s, "reconstructions", made);
    }
}

static void build_critic(ls_step *s, ls_config *cfg)
{
    ls_value code = ls_input(s, "code", LS_F32, LS_SHAPE(-1, LATENT));
    ls_value loss = critic_loss(s, code, ls_config_real(cfg, "model.lambda_gp"));

    ls_minimise(s, loss, "D.*", ls_config_optimiser(cfg));
    ls_metric(s, "loss_d", loss);
}

#define GP_SETTING                                                                                           \
    {                                                                                                        \
        "model.lambda_gp", LS_SETTING_REAL, 10, 0, 1e6, NULL, "weight of the gradient penalty", NULL         \
    }
#define END_SETTING                                                                                          \
    {                                                                                                        \
        NULL, 0, 0, 0, 0, NULL, NULL, NULL                                                                   \
    }

static const ls_setting critic_settings[] = {GP_SETTING, END_SETTING};
static const ls_setting aae_settings[] = {
    {"model.points", LS_SETTING_INT, 3375, 16, 1e6, NULL, "points of a cloud", NULL},
    {"model.lambda_rec", LS_SETTING_REAL, 0.5, 0, 1e6, NULL, "weight of the Chamfer distance", NULL},
    GP_SETTING,
    {"model.sum_over", LS_SETTING_INT, BATCH, 0, 1e6, NULL,
     "clouds whose Chamfer distances add up to a loss, however a batch is cut; 0: those of the batch at hand",
     NULL},
    {"model.keep_clouds", LS_SETTING_BOOL, 0, 0, 1, NULL,
     "beside the embeddings, clouds and their reconstructions are outputs", NULL},
    END_SETTING,
};

const ls_trial ls_trial_aae = {
    .name = "aae",
    .about = "adversarial autoencoder on 3375 points (E 502,272, G 10,981,965, D 369,921 parameters)",
    .networks = "E G D",
    .batch = BATCH,
    .optimiser = {.rule = LS_ADAM, .lr = 1e-4},
    .settings = aae_settings,
    .build = build_aae,
};

const ls_trial ls_trial_wgan_gp = {
    .name = "wgan-gp",
    .about = "the AAE's critic alone on given codes, with gradient penalty (369,921 parameters)",
    .networks = "D",
    .batch = 32,
    .optimiser = {.rule = LS_ADAM, .lr = 1e-4},
    .settings = critic_settings,
    .build = build_critic,
};
