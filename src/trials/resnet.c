/* resnet.c: ResNet-18 for 10 classes, with the ImageNet stem or the one for small images.  Names of
 * parameters are torchvision's. */
#include "trials/trials.h"

/* Without a bias, which the norm behind would take away again. */
static ls_value conv(ls_step *s, ls_value x, const char *name, int64_t out, int kernel, int stride)
{
    return ls_conv(s, x, name, .out = out, .kernel = kernel, .stride = stride, .pad = kernel / 2,
                   .no_bias = true, .init = ls_init_kaiming_out());
}

static ls_value block(ls_step *s, ls_value x, int64_t out, int stride, bool zero_last)
{
    ls_value h = ls_relu(ls_batchnorm(s, conv(s, x, "conv1", out, 3, stride), "bn1"));

    h = ls_batchnorm(s, conv(s, h, "conv2", out, 3, 1), "bn2", .zero_weight = zero_last);
    /* What is added must have the shape of the sum: torchvision brings it there by a product of channels. */
    if (stride != 1 || ls_value_shape(x).dim[1] != out)
        x = ls_batchnorm(s, conv(s, x, "downsample.0", out, 1, stride), "downsample.1");
    return ls_relu(ls_add(h, x));
}

/* The first block of every stage but the first halves the sides. */
static ls_value stage(ls_step *s, ls_value x, int number, int64_t out, bool zero_last)
{
    for (int i = 0; i < 2; i++) {
        ls_scope_push(s, "layer%d.%d", number, i);
        ls_unit_begin(s, NULL);
        x = block(s, x, out, number > 1 && i == 0 ? 2 : 1, zero_last);
        ls_unit_end(s);
        ls_scope_pop(s);
    }
    return x;
}

static void build(ls_step *s, ls_config *cfg)
{
    int64_t size = ls_config_int(cfg, "model.size"), classes = ls_config_int(cfg, "model.classes");
    bool small_stem = ls_config_bool(cfg, "model.cifar_stem"), zero = ls_config_bool(cfg, "model.zero_last");
    ls_value x, label, h;

    lsi_image_inputs(s, 3, size, classes, &x, &label);
    ls_unit_begin(s, "stem");
    /* Of an image of 32 x 32 the usual stem leaves 8 x 8 to the first stage, and one pixel to the last. */
    h = small_stem ? conv(s, x, "conv1", 64, 3, 1) : conv(s, x, "conv1", 64, 7, 2);
    h = ls_relu(ls_batchnorm(s, h, "bn1"));
    if (!small_stem) h = ls_max_pool(h, .kernel = 3, .stride = 2, .pad = 1);
    ls_unit_end(s);
    for (int i = 1; i <= 4; i++) h = stage(s, h, i, 32 << i, zero);
    lsi_classify(s, cfg, ls_linear(s, ls_global_avg_pool(h), "fc", .out = classes), label);
}

/* clang-format off */
#define SETTINGS(size, small_stem) {                                                                \
    ls_int_setting("model.size", size, 32, 1024, "height and width of an image"),                   \
    ls_int_setting("model.classes", 10, 2, 1e5, "classes"),                                         \
    ls_bool_setting("model.cifar_stem", small_stem, "3x3 stem without pooling"),                    \
    ls_bool_setting("model.zero_last", 0, "each block's last norm starts at 0 (timm)"),             \
    ls_settings_end}
/* clang-format on */

static const ls_setting settings_224[] = SETTINGS(224, 0);
static const ls_setting settings_32[] = SETTINGS(32, 0);
static const ls_setting settings_stem[] = SETTINGS(32, 1);

const ls_trial ls_trial_resnet18 = {
    .name = "resnet18",
    .about = "ResNet-18 at 224 x 224, 10 classes (11,181,642 parameters)",
    .batch = 32,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings_224,
    .build = build,
};

const ls_trial ls_trial_resnet18_cifar = {
    .name = "resnet18-cifar",
    .about = "ResNet-18 at 32 x 32 with the ImageNet stem (11,181,642 parameters)",
    .batch = 64,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings_32,
    .build = build,
};

const ls_trial ls_trial_resnet18_cifar_stem = {
    .name = "resnet18-cifar-stem",
    .about = "ResNet-18 at 32 x 32 with a 3x3 stem (11,173,962 parameters)",
    .batch = 64,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings_stem,
    .build = build,
};
