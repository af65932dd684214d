/* classifier.c: what the image classifiers share. */
#include "trials/trials.h"

void lsi_image_inputs(ls_step *s, int64_t channels, int64_t size, int64_t classes, ls_value *image,
                      ls_value *label)
{
    *image = ls_input(s, "image", LS_F32, LS_SHAPE(-1, channels, size, size));
    *label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    ls_input_range(s, "label", 0, (double)classes);
}

void lsi_classify(ls_step *s, ls_config *cfg, ls_value logits, ls_value label)
{
    ls_value loss = ls_cross_entropy(logits, label);

    ls_minimise(s, loss, "*", ls_config_optimiser(cfg));
    ls_scores(s, logits, label);
    ls_metric(s, "loss", loss);
    /* The op counts, as sums over batches of any size want it. */
    ls_metric(s, "acc", ls_scale(ls_accuracy(logits, label), 1.0 / (double)ls_step_batch(s)));
}
