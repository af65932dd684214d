/* registry.c: the only list of built-in trials, and how a step is made of one. */
#include <string.h>

#include "base/text.h"
#include "trials/trials.h"

/* In the order in which `lockstep info` and --help list them.  The first one stands for any where only what
 * all of them have is asked for (config/settings_each.c). */
const ls_trial *const ls_trials[] = {
    &ls_trial_mnist,
    &ls_trial_mnist_keras,
    &ls_trial_linear,
    &ls_trial_resnet18,
    &ls_trial_resnet18_cifar,
    &ls_trial_resnet18_cifar_stem,
    &ls_trial_vit,
    &ls_trial_vit_b32,
    &ls_trial_vit_tiny,
    &ls_trial_dcgan_d,
    &ls_trial_dcgan_g,
    &ls_trial_cosmogan,
    &ls_trial_wgan_gp,
    &ls_trial_aae,
    &ls_trial_cyclegan,
    &ls_trial_cyclegan_g,
    NULL,
};

#define MAX_TRIALS (sizeof ls_trials / sizeof ls_trials[0])

ls_status ls_trial_find(const ls_trial **out, const char *name, ls_err *err)
{
    const char *names[MAX_TRIALS], *near;
    size_t n = 0;

    *out = NULL;
    for (; ls_trials[n] != NULL; n++) {
        names[n] = ls_trials[n]->name;
        if (strcmp(name, names[n]) == 0) *out = ls_trials[n];
    }
    if (*out != NULL) return LS_OK;
    near = ls_text_nearest(name, names, n);
    if (near != NULL) return ls_fail(err, LS_INVALID, "no model \"%s\"; did you mean \"%s\"?", name, near);
    return ls_fail(err, LS_INVALID, "no model \"%s\"; `lockstep info` lists them", name);
}

ls_status ls_trial_build(ls_step **out, const ls_trial *t, ls_config *cfg, ls_mode mode, ls_err *err)
{
    return ls_trial_build_as(out, t, cfg, &(ls_build){.mode = mode}, err);
}

ls_status ls_trial_build_as(ls_step **out, const ls_trial *t, ls_config *cfg, const ls_build *how,
                            ls_err *err)
{
    ls_status st = LS_OK;
    ls_step *s = NULL;

    *out = NULL;
    LS_TRY(ls_step_create_as(&s, ls_config_int(cfg, "batch.per_rank"), how, err));
    /* Builders return nothing: after a mistake layers do nothing more, and the first one is told here.  A key
     * that is not in the table comes before the shapes that followed from it. */
    t->build(s, cfg);
    LS_TRY(ls_config_status(cfg, err));
    LS_TRY(ls_step_status(s, err));
    *out = s;
    s = NULL;
out:
    ls_step_destroy(s);
    return ls_fail_in(err, st, "model \"%s\"", t->name);
}
