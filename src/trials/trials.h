/* trials.h: the built-in trials; registry.c lists them, the files define them with public calls only.
 *
 * A trial is a constant: a name, a table of settings, and a function that records a step.  What a plug-in
 * brings is the same object (plugin.h), so that whatever a built-in trial can do, anybody's can. */
#ifndef LS_TRIALS_TRIALS_H
#define LS_TRIALS_TRIALS_H

#include "lockstep/trial.h"

extern const ls_trial ls_trial_mnist, ls_trial_mnist_keras;
extern const ls_trial ls_trial_linear;
extern const ls_trial ls_trial_resnet18, ls_trial_resnet18_cifar, ls_trial_resnet18_cifar_stem;
extern const ls_trial ls_trial_vit, ls_trial_vit_b32, ls_trial_vit_tiny;
extern const ls_trial ls_trial_dcgan_d, ls_trial_dcgan_g, ls_trial_cosmogan;
extern const ls_trial ls_trial_wgan_gp, ls_trial_aae;
extern const ls_trial ls_trial_cyclegan, ls_trial_cyclegan_g;

/* What all classifiers share.  Inputs "image" (N, channels, size, size) and "label" (N) below `classes`. */
void lsi_image_inputs(ls_step *s, int64_t channels, int64_t size, int64_t classes, ls_value *image,
                      ls_value *label);
/* Cross-entropy, one optimiser over all parameters, metrics "loss" and "acc" (share of right answers). */
void lsi_classify(ls_step *s, ls_config *cfg, ls_value logits, ls_value label);

#endif
