/* @NAME@.c: a model of one's own for Lockstep: a small network that tells classes of grey images apart.
 *
 * `make` builds @NAME@.so, and `lockstep train @NAME@.yaml` trains it: on one rank or many, with checkpoints,
 * without another line here.  What can be called is in lockstep/nn.h (layers, training), lockstep/ops.h
 * (functions of tensors) and lockstep/trial.h (settings). */
#include <lockstep/trial.h>

/* Two convolutions, each followed by a halving of the image.  A layer makes its parameters under its name
 * (conv1.weight, conv1.bias); a second layer of that name would share them. */
static ls_value features(ls_step *s, ls_value x, int64_t width)
{
    x = ls_relu(ls_conv(s, x, "conv1", .out = width, .kernel = 3, .pad = 1));
    x = ls_max_pool(x, .kernel = 2);
    x = ls_relu(ls_conv(s, x, "conv2", .out = 2 * width, .kernel = 3, .pad = 1));
    x = ls_max_pool(x, .kernel = 2);
    return ls_flatten(x);
}

/* Writes one training step: inputs, network, loss, and which loss trains which parameters.  It is called once
 * for every size of batch, not in every step.  Mistakes need no checks: the first one is kept with its line
 * here and reported. */
static void build(ls_step *s, ls_config *cfg)
{
    const int64_t size = ls_config_int(cfg, "model.size"), classes = ls_config_int(cfg, "model.classes");
    /* Inputs bear the names of what the data set holds.  The first dimension, -1, is the local batch. */
    ls_value image = ls_input(s, "image", LS_F32, LS_SHAPE(-1, 1, size, size));
    ls_value label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    ls_value h, logits, loss;

    ls_input_range(s, "label", 0, (double)classes); /* labels are 0 to classes - 1 */
    h = features(s, image, ls_config_int(cfg, "model.width"));
    h = ls_drop(s, h, "drop", ls_config_real(cfg, "model.dropout")); /* in training only */
    logits = ls_linear(s, h, "fc", .out = classes);
    loss = ls_cross_entropy(logits, label);

    /* "*": all parameters.  A model with several losses calls this several times, with names such as "D.*".
     */
    ls_minimise(s, loss, "*", ls_config_optimiser(cfg));
    /* Metrics are means over the batch; they go to the terminal, metrics.jsonl and TensorBoard. */
    ls_metric(s, "loss", loss);
    ls_scores(s, logits, label); /* for `lockstep infer`, and the accuracy of every class */
    ls_metric(s, "acc", ls_scale(ls_accuracy(logits, label), 1.0 / (double)ls_step_batch(s)));
}

/* What can be set without a compiler, in the experiment or on the command line (model.width=16): key,
 * default, smallest, largest, help.  There are real, bool, choice and text settings, too. */
static const ls_setting settings[] = {
    ls_int_setting("model.size", 28, 4, 1024, "height and width of an image"),
    ls_int_setting("model.classes", 10, 2, 100000, "classes"),
    ls_int_setting("model.width", 8, 1, 4096, "channels of the first convolution"),
    ls_real_setting("model.dropout", 0.25, 0, 0.9, "share of features that is dropped in training"),
    ls_settings_end,
};

static const ls_trial trial = {
    .name = "@NAME@",
    .about = "a small convolution network for grey images",
    .batch = 32,                                                /* defaults of batch.per_rank */
    .optimiser = {.rule = LS_SGD, .lr = 0.05, .momentum = 0.9}, /* and optimizer.* */
    .settings = settings,
    .build = build,
};

LS_TRIAL_PLUGIN(trial);
