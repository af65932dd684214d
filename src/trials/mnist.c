/* mnist.c: the two small convolution networks of the MNIST data-parallel hands-on. */
#include "trials/trials.h"

/* "Net-P": pooling comes before the ReLU, and the first dropout drops whole feature maps before the pool. */
static void build_torch(ls_step *s, ls_config *cfg)
{
    ls_value x, label, h;

    lsi_image_inputs(s, 1, 28, 10, &x, &label);
    ls_unit_begin(s, "conv");
    h = ls_relu(ls_max_pool(ls_conv(s, x, "conv1", .out = 10, .kernel = 5), .kernel = 2));
    h = ls_drop_channels(s, ls_conv(s, h, "conv2", .out = 20, .kernel = 5), "conv2_drop", 0.5);
    h = ls_relu(ls_max_pool(h, .kernel = 2));
    ls_unit_end(s);
    ls_unit_begin(s, "fc");
    h = ls_relu(ls_linear(s, ls_flatten(h), "fc1", .out = 50));
    h = ls_drop(s, h, "fc1_drop", 0.5);
    ls_unit_end(s);
    lsi_classify(s, cfg, ls_linear(s, h, "fc2", .out = 10), label);
}

const ls_trial ls_trial_mnist = {
    .name = "mnist",
    .about = "MNIST CNN of the PyTorch hands-on (21,840 parameters)",
    .batch = 64,
    .optimiser = {.rule = LS_SGD, .lr = 0.01, .momentum = 0.5},
    .build = build_torch,
};

/* "Net-T": Keras' initial values; the softmax is part of the loss. */
static void build_keras(ls_step *s, ls_config *cfg)
{
    ls_value x, label, h;

    lsi_image_inputs(s, 1, 28, 10, &x, &label);
    ls_unit_begin(s, "conv");
    h = ls_relu(ls_conv(s, x, "conv1", .out = 32, .kernel = 3, .init = ls_init_glorot(0)));
    h = ls_relu(ls_conv(s, h, "conv2", .out = 64, .kernel = 3, .init = ls_init_glorot(0)));
    h = ls_drop(s, ls_max_pool(h, .kernel = 2), "drop1", 0.25);
    ls_unit_end(s);
    ls_unit_begin(s, "fc");
    h = ls_relu(ls_linear(s, ls_flatten(h), "fc1", .out = 128, .init = ls_init_glorot(0)));
    h = ls_drop(s, h, "drop2", 0.5);
    ls_unit_end(s);
    lsi_classify(s, cfg, ls_linear(s, h, "fc2", .out = 10, .init = ls_init_glorot(0)), label);
}

const ls_trial ls_trial_mnist_keras = {
    .name = "mnist-keras",
    .about = "MNIST CNN of the Keras hands-on (1,199,882 parameters)",
    .batch = 64,
    .optimiser = {.rule = LS_ADAM, .lr = 0.01, .eps = 1e-7, .form = LS_ADAM_TF},
    .build = build_keras,
};
