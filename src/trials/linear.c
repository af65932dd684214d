/* linear.c: a linear classifier of pixels (softmax regression): what a network has to beat. */
#include "trials/trials.h"

static void build(ls_step *s, ls_config *cfg)
{
    int64_t classes = ls_config_int(cfg, "model.classes");
    ls_value x, label;

    lsi_image_inputs(s, ls_config_int(cfg, "model.channels"), ls_config_int(cfg, "model.size"), classes, &x,
                     &label);
    lsi_classify(s, cfg, ls_linear(s, ls_flatten(x), "fc", .out = classes), label);
}

static const ls_setting settings[] = {
    ls_int_setting("model.channels", 3, 1, 1024, "channels of an image"),
    ls_int_setting("model.size", 32, 1, 4096, "height and width of an image"),
    ls_int_setting("model.classes", 10, 2, 1e5, "classes"),
    ls_settings_end,
};

const ls_trial ls_trial_linear = {
    .name = "linear",
    .about = "a linear classifier of pixels, to compare networks with (30,730 parameters)",
    .batch = 64,
    .optimiser = {.rule = LS_ADAM, .lr = 0.001},
    .settings = settings,
    .build = build,
};
