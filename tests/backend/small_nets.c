/* small_nets.c: small networks, and the CUDA backend's rule for a machine that is not there. */
#include "small_nets.h"

#include "check.h"
#include "passes/lower.h"
#include "passes/passes.h"

static ls_value images(ls_step *s, int64_t channels, int64_t size)
{
    return ls_input(s, "image", LS_F32, LS_SHAPE(-1, channels, size, size));
}

static void classify(ls_step *s, ls_value logits, ls_optimiser o)
{
    ls_value label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    ls_value loss = ls_cross_entropy(logits, label);

    ls_minimise(s, loss, "*", o);
    ls_metric(s, "loss", loss);
    ls_metric(s, "acc", ls_affine(ls_accuracy(logits, label), 1.0 / (double)ls_step_batch(s), 0));
}

static const ls_optimiser sgd = {.rule = LS_SGD, .lr = 0.01, .momentum = 0.5};

/* The trial "mnist". */
static void pools_first(ls_step *s)
{
    ls_value h = images(s, 1, 28);

    h = ls_relu(ls_max_pool(ls_conv(s, h, "conv1", .out = 10, .kernel = 5), .kernel = 2));
    h = ls_drop_channels(s, ls_conv(s, h, "conv2", .out = 20, .kernel = 5), "conv2_drop", 0.5);
    h = ls_relu(ls_max_pool(h, .kernel = 2));
    h = ls_drop(s, ls_relu(ls_linear(s, ls_flatten(h), "fc1", .out = 50)), "fc1_drop", 0.5);
    classify(s, ls_linear(s, h, "fc2", .out = 10), sgd);
}

/* Other channels, kernels and paddings; windows that overlap; averages; no dropout. */
static void pads_and_averages(ls_step *s)
{
    ls_value h = images(s, 3, 13);

    h = ls_tanh(ls_conv(s, h, "a", .out = 7, .kernel = 3, .pad = 1));
    h = ls_max_pool(h, .kernel = 3, .stride = 2, .pad = 1);
    h = ls_leaky_relu(ls_conv(s, h, "b", .out = 33, .kernel = 3, .pad = 1), 0.2);
    h = ls_avg_pool(h, .kernel = 2);
    h = ls_conv(s, h, "c", .out = 5, .kernel = 1);
    classify(s, ls_linear(s, ls_flatten(h), "fc", .out = 11),
             (ls_optimiser){.rule = LS_RMSPROP, .lr = 0.01, .momentum = 0.9, .weight_decay = 0.01});
}

/* Steps of two: the gradient of such a convolution's input is no part of a region. */
static void strides(ls_step *s)
{
    ls_value h = images(s, 2, 16);

    h = ls_relu(ls_conv(s, h, "a", .out = 12, .kernel = 4, .stride = 2, .pad = 1));
    h = ls_drop(s, h, "drop", 0.3);
    h = ls_relu(ls_conv(s, h, "b", .out = 9, .kernel = 3, .stride = 2));
    classify(s, ls_linear(s, ls_flatten(h), "fc", .out = 4, .no_bias = true), sgd);
}

/* No images at all. */
static void perceptron(ls_step *s)
{
    ls_value h = ls_flatten(images(s, 1, 28));

    h = ls_relu(ls_linear(s, h, "fc1", .out = 128));
    h = ls_drop(s, ls_tanh(ls_linear(s, h, "fc2", .out = 65)), "drop", 0.25);
    h = ls_gelu(ls_mul(h, ls_sigmoid(h)));
    classify(s, ls_linear(s, h, "fc3", .out = 10), (ls_optimiser){.rule = LS_ADAM, .lr = 0.001});
}

/* The trial "mnist-keras": too large for one region, but not all of it. */
static void keras(ls_step *s)
{
    ls_value h = images(s, 1, 28);

    h = ls_relu(ls_conv(s, h, "conv1", .out = 32, .kernel = 3));
    h = ls_relu(ls_conv(s, h, "conv2", .out = 64, .kernel = 3));
    h = ls_drop(s, ls_max_pool(h, .kernel = 2), "drop1", 0.25);
    h = ls_drop(s, ls_relu(ls_linear(s, ls_flatten(h), "fc1", .out = 128)), "drop2", 0.5);
    classify(s, ls_linear(s, h, "fc2", .out = 10), sgd);
}

/* Few weights, and the update with the most arithmetic. */
static void decoupled(ls_step *s)
{
    ls_value h = ls_relu(ls_linear(s, ls_flatten(images(s, 1, 8)), "fc1", .out = 20));

    classify(s, ls_linear(s, h, "fc2", .out = 10),
             (ls_optimiser){.rule = LS_ADAM, .lr = 0.01, .weight_decay = 0.1, .form = LS_ADAM_W});
}

/* As many gradients of weights as one region can make: each is a sum of its own behind it. */
static void deep(ls_step *s)
{
    static const char *const names[] = {"fc1", "fc2", "fc3",  "fc4",  "fc5",  "fc6", "fc7",
                                        "fc8", "fc9", "fc10", "fc11", "fc12", "fc13"};
    ls_value h = ls_flatten(images(s, 1, 8));

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        h = ls_relu(ls_linear(s, h, names[i], .out = 64));
    classify(s, ls_linear(s, h, "last", .out = 10), sgd);
}

const small_net small_net_deep = {"deep", deep};

const small_net small_nets[] = {
    {"pools_first", pools_first},
    {"pads_and_averages", pads_and_averages},
    {"strides", strides},
    {"perceptron", perceptron},
    {"keras", keras},
    {"decoupled", decoupled},
    {NULL, NULL},
};

lsi_region_machine small_net_machine(bool rounded)
{
    return (lsi_region_machine){.processors = 132, .shared = 232448, .rounded = rounded};
}

/* -- the backend's rule, for a machine that is not there --------------------------------------------------
 */

static lsi_region_machine machine;

static bool takes(const ls_device *dev, const ls_graph *g, const ls_node *n, int64_t samples,
                  const ls_region_kind *in, ls_region_kind *out)
{
    (void)dev;
    return lsi_region_takes(&machine, g, n, samples, in, out);
}

static bool fits(const ls_device *dev, const ls_graph *g, int64_t samples, int n,
                 const ls_node *const *members)
{
    static lsi_region r;

    (void)dev;
    return lsi_region_plan(&r, &machine, g, samples, n, members, 0, NULL, 0, NULL);
}

ls_graph *small_net_graph(const small_net *net, ls_mode mode, int64_t batch, const lsi_region_machine *m)
{
    const ls_region_rule rule = {.takes = takes, .fits = fits, .least = 3};
    ls_step *s;
    ls_graph *g;
    ls_err err = {0};

    machine = *m;
    REQUIRE_OK(ls_step_create(&s, batch, mode, &err), &err);
    net->build(s);
    REQUIRE_OK(ls_step_status(s, &err), &err);
    g = ls_step_graph_take(s);
    ls_step_destroy(s);
    ls_passes_lower(g, &(ls_strategy){0});
    ls_pass_fuse(g, ls_backend_cuda.fuses, NULL);
    ls_pass_regions(g, &rule, NULL);
    ls_pass_dead(g);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    return g;
}

bool small_net_is_region(const ls_node *n)
{
    return !n->dead && (n->op == &ls_op_region || n->op == &ls_op_region_update);
}
