/* vit.c: vision transformers (ViT-Base and a size for tests).  Names of parameters are timm's.  All weights
 * start truncated normal with 0.02, biases at 0; timm differs in two places, the class token (normal, 1e-6)
 * and the patch embedding (PyTorch's rule). */
#include "trials/trials.h"

#define INIT ls_init_trunc_normal(0.02)

/* Norms come before attention and MLP, not behind the sums.  Their epsilon is timm's; PyTorch's own is 1e-5.
 */
static ls_value block(ls_step *s, ls_value x, int64_t width, int64_t heads, int64_t mlp)
{
    ls_value h =
        ls_self_attention(s, ls_layernorm(s, x, "norm1", 1e-6), "attn", .heads = heads, .init = INIT);

    x = ls_add(x, h);
    h = ls_gelu(ls_linear(s, ls_layernorm(s, x, "norm2", 1e-6), "mlp.fc1", .out = mlp, .init = INIT));
    return ls_add(x, ls_linear(s, h, "mlp.fc2", .out = width, .init = INIT));
}

/* Patches as tokens behind the class token, with their positions added: (N, 1 + patches, width). */
static ls_value tokens(ls_step *s, ls_value x, int64_t width, int patch)
{
    int64_t n = ls_step_batch(s), side = ls_value_shape(x).dim[2] / patch, count = side * side;
    ls_value h =
        ls_conv(s, x, "patch_embed.proj", .out = width, .kernel = patch, .stride = patch, .init = INIT);
    ls_value cls = ls_parameter(s, "cls_token", LS_SHAPE(1, 1, width), INIT);
    ls_value pos = ls_parameter(s, "pos_embed", LS_SHAPE(1, 1 + count, width), INIT);

    h = ls_transpose(ls_reshape(h, LS_SHAPE(n, width, count)), (const int[]){0, 2, 1});
    h = ls_concat(2, (const ls_value[]){ls_broadcast_to(cls, LS_SHAPE(n, 1, width)), h}, 1);
    return ls_add(h, pos);
}

static void build(ls_step *s, ls_config *cfg)
{
    int64_t size = ls_config_int(cfg, "model.size"), classes = ls_config_int(cfg, "model.classes");
    int64_t width = ls_config_int(cfg, "model.width"), depth = ls_config_int(cfg, "model.depth");
    ls_value x, label, h;

    lsi_image_inputs(s, 3, size, classes, &x, &label);
    h = tokens(s, x, width, (int)ls_config_int(cfg, "model.patch"));
    for (int i = 0; i < depth; i++) {
        ls_scope_push(s, "blocks.%d", i);
        ls_unit_begin(s, NULL);
        h = block(s, h, width, ls_config_int(cfg, "model.heads"), ls_config_int(cfg, "model.mlp"));
        ls_unit_end(s);
        ls_scope_pop(s);
    }
    h = ls_layernorm(s, h, "norm", 1e-6);
    /* The class token alone is asked. */
    h = ls_reshape(ls_slice(h, 1, 0, 1), LS_SHAPE(ls_step_batch(s), width));
    lsi_classify(s, cfg, ls_linear(s, h, "head", .out = classes, .init = INIT), label);
}

/* clang-format off */
#define SETTINGS(size, patch, width, depth, heads, mlp) {                                           \
    ls_int_setting("model.size", size, 8, 1024, "height and width of an image"),                    \
    ls_int_setting("model.patch", patch, 1, 1024, "height and width of a patch"),                   \
    ls_int_setting("model.width", width, 1, 1e5, "features of a token"),                            \
    ls_int_setting("model.depth", depth, 1, 1000, "transformer blocks"),                            \
    ls_int_setting("model.heads", heads, 1, 1000, "attention heads; must divide the width"),        \
    ls_int_setting("model.mlp", mlp, 1, 1e6, "hidden features of a block's MLP"),                   \
    ls_int_setting("model.classes", 10, 2, 1e5, "classes"),                                         \
    ls_settings_end}
/* clang-format on */

static const ls_setting settings_b16[] = SETTINGS(224, 16, 768, 12, 12, 3072);
static const ls_setting settings_b32[] = SETTINGS(224, 32, 768, 12, 12, 3072);
static const ls_setting settings_tiny[] = SETTINGS(32, 8, 64, 2, 2, 128);

const ls_trial ls_trial_vit = {
    .name = "vit",
    .about = "ViT-B/16 at 224 x 224, 10 classes (85,806,346 parameters)",
    .batch = 8,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings_b16,
    .build = build,
};

const ls_trial ls_trial_vit_b32 = {
    .name = "vit-b32",
    .about = "ViT-B/32 at 224 x 224, 10 classes (87,462,922 parameters)",
    .batch = 16,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings_b32,
    .build = build,
};

const ls_trial ls_trial_vit_tiny = {
    .name = "vit-tiny",
    .about = "a two-block vision transformer at 32 x 32, for tests",
    .batch = 16,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings_tiny,
    .build = build,
};
