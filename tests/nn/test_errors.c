/* test_errors.c: mistakes in a trial are told with the line, the layer and the shapes. */
#include <stdio.h>

#include "nn_test.h"

static int bad_line; /* where the mistake was made */

/* Use on the line of the mistake: the error must name it. */
#define HERE (bad_line = __LINE__)

static void check_error(void (*build)(ls_step *s), const char *part, const char *other)
{
    char place[64];
    ls_err err;

    bad_line = 0;
    err = nn_error(build);
    CHECK_EQ_INT(err.status, LS_INVALID);
    CHECK_CONTAINS(err.text, part);
    if (other != NULL) CHECK_CONTAINS(err.text, other);
    if (bad_line == 0) return;
    snprintf(place, sizeof place, "test_errors.c:%d:", bad_line);
    CHECK_CONTAINS(err.text, place);
}

static ls_value image(ls_step *s)
{
    return ls_input(s, "image", LS_F32, LS_SHAPE(-1, 3, 8, 8));
}

static void image_of_vectors(ls_step *s)
{
    ls_image(s, "fake", ls_flatten(image(s)), -1, 1), HERE;
}
static void image_without_range(ls_step *s)
{
    ls_image(s, "fake", image(s), 1, 1), HERE;
}
static void conv_too_large(ls_step *s)
{
    ls_conv(s, image(s), "net.conv1", .out = 4, .kernel = 11), HERE;
}
static void conv_without_out(ls_step *s)
{
    ls_conv(s, image(s), "conv1", .kernel = 3), HERE;
}
static void conv_without_kernel(ls_step *s)
{
    ls_conv(s, image(s), "conv1", .out = 3), HERE;
}
static void conv_two_paddings(ls_step *s)
{
    ls_conv(s, image(s), "conv1", .out = 3, .kernel = 3, .pad = 1, .same = true), HERE;
}
static void conv_bad_groups(ls_step *s)
{
    ls_conv(s, image(s), "conv1", .out = 4, .kernel = 3, .groups = 2), HERE;
}
static void add_shapes(ls_step *s)
{
    ls_value x = image(s);
    ls_add(x, ls_flatten(x)), HERE;
}
static void linear_on_vector(ls_step *s)
{
    ls_linear(s, ls_input(s, "v", LS_F32, LS_SHAPE(5)), "fc", .out = 2), HERE;
}
static void heads_do_not_divide(ls_step *s)
{
    ls_self_attention(s, ls_input(s, "t", LS_F32, LS_SHAPE(-1, 5, 6)), "attn", .heads = 4), HERE;
}
static void bad_probability(ls_step *s)
{
    ls_drop(s, image(s), "drop", 1.0), HERE;
}
static void bad_name(ls_step *s)
{
    ls_linear(s, ls_flatten(image(s)), "fc 1", .out = 2), HERE;
}

static void layers(void)
{
    check_error(image_of_vectors, "image \"fake\": needs f32 (N, 1 or 3, H, W)", "(4, 192)");
    check_error(image_without_range, "image \"fake\": its range must grow, got 1 to 1", NULL);
    check_error(conv_too_large, "layer \"net.conv1\"", "(4, 3, 8, 8)");
    check_error(conv_without_out, ".out", "layer \"conv1\"");
    check_error(conv_without_kernel, ".kernel", NULL);
    check_error(conv_two_paddings, "one of .pad, .pads and .same", NULL);
    check_error(conv_bad_groups, "2 groups do not divide the 3 channels", NULL);
    check_error(add_shapes, "op add", "(4, 192)");
    check_error(linear_on_vector, "layer \"fc\"", NULL);
    check_error(heads_do_not_divide, ".heads (4) must divide the width 6", NULL);
    check_error(bad_probability, "[0, 1)", "layer \"drop\"");
    check_error(bad_name, "\"fc 1\" is no name", NULL);
}

static void share_wrong_shape(ls_step *s)
{
    ls_value x = ls_flatten(image(s));
    ls_linear(s, x, "fc", .out = 2);
    ls_linear(s, x, "fc", .out = 3), HERE;
}
static void scope_not_popped(ls_step *s)
{
    ls_scope_push(s, "D");
    ls_graph_destroy(ls_step_graph_take(s));
}
static void pop_without_push(ls_step *s)
{
    ls_scope_pop(s);
}
static void input_twice(ls_step *s)
{
    image(s);
    image(s);
}
static void range_of_nothing(ls_step *s)
{
    ls_input_range(s, "labels", 0, 10);
}
static void metric_twice(ls_step *s)
{
    ls_value x = image(s);
    ls_metric(s, "m", x);
    ls_metric(s, "m", ls_relu(x)), HERE;
}

static void names(void)
{
    check_error(share_wrong_shape, "\"fc.weight\" exists as f32 (2, 192)", "f32 (3, 192)");
    check_error(scope_not_popped, "scope \"D\" was never popped", NULL);
    check_error(pop_without_push, "ls_scope_pop without a scope", NULL);
    check_error(input_twice, "input \"image\" is declared twice", NULL);
    check_error(range_of_nothing, "no input \"labels\"", NULL);
    check_error(metric_twice, "metric \"m\" is declared twice", NULL);
}

/* -- ls_minimise ------------------------------------------------------------------------------------------
 */

static ls_value mean_of(ls_value x)
{
    return ls_reduce_mean(x, LS_ALL_AXES, false);
}

static ls_value fc(ls_step *s, const char *name, ls_value x)
{
    return ls_linear(s, x, name, .out = 2);
}

static const ls_optimiser sgd = {.rule = LS_SGD, .lr = 0.1};

static void no_parameters(ls_step *s)
{
    ls_minimise(s, mean_of(image(s)), "*", sgd), HERE;
}
static void no_match(ls_step *s)
{
    ls_minimise(s, mean_of(fc(s, "a", ls_flatten(image(s)))), "a.* b.*", sgd), HERE;
}
static void empty_pattern(ls_step *s)
{
    ls_minimise(s, mean_of(fc(s, "a", ls_flatten(image(s)))), " ", sgd), HERE;
}
static void unreached(ls_step *s)
{
    ls_value x = ls_flatten(image(s)), a = fc(s, "a", x);
    fc(s, "b", x);
    ls_minimise(s, mean_of(a), "*", sgd), HERE;
}
static void not_scalar(ls_step *s)
{
    ls_minimise(s, fc(s, "a", ls_flatten(image(s))), "*", sgd), HERE;
}
static void old_version(ls_step *s)
{
    ls_value a = fc(s, "a", ls_flatten(image(s)));
    ls_minimise(s, mean_of(a), "*", sgd);
    ls_minimise(s, mean_of(ls_square(a)), "*", sgd), HERE;
}
static void cut_off(ls_step *s)
{
    ls_minimise(s, mean_of(ls_detach(fc(s, "a", ls_flatten(image(s))))), "*", sgd), HERE;
}
static void two_rates(ls_step *s)
{
    ls_value x = ls_flatten(image(s)), a = fc(s, "a", x), b = fc(s, "b", x);
    ls_minimise(s, mean_of(a), "a.*", sgd);
    ls_minimise(s, mean_of(b), "b.*", (ls_optimiser){.rule = LS_SGD, .lr = 0.2}), HERE;
}
static void two_optimisers(ls_step *s)
{
    ls_optimiser one = {.rule = LS_ADAM, .lr = 0.1, .name = "one"}, two = {.rule = LS_ADAM, .name = "two"};
    ls_value x = ls_flatten(image(s));
    ls_minimise(s, mean_of(fc(s, "a", x)), "*", one);
    ls_minimise(s, mean_of(fc(s, "a", x)), "*", two), HERE;
}
static void no_dependence(ls_step *s)
{
    ls_value x = image(s);
    ls_gradient(ls_relu(x), ls_tanh(x)), HERE;
}

static void minimise(void)
{
    check_error(no_parameters, "no parameter matches \"*\"", "there are 0");
    check_error(no_match, "no parameter matches \"b.*\"", NULL);
    check_error(empty_pattern, "pattern is empty", NULL);
    check_error(unreached, "does not depend on the parameter \"b.weight\"", NULL);
    check_error(not_scalar, "the loss must be an f32 scalar", "(4, 2)");
    check_error(old_version, "\"a.weight\" only as it was before an earlier ls_minimise", NULL);
    check_error(cut_off, "does not depend on the parameter \"a.weight\"", NULL);
    check_error(two_rates, "\"lr\" is 0.1 already", NULL);
    check_error(two_optimisers, "already trained by another optimiser than \"two\"", NULL);
    check_error(no_dependence, "does not depend on the second", NULL);
}

/* The first error stays, whatever is built on top of the failed value. */
static void goes_on(ls_step *s)
{
    ls_value h = ls_conv(s, image(s), "conv1", .kernel = 3);
    HERE;
    bad_line--;
    h = ls_relu(ls_batchnorm(s, h, "bn"));
    h = ls_linear(s, ls_flatten(ls_max_pool(h, .kernel = 2)), "fc", .out = 0);
    ls_minimise(s, h, "nothing", sgd);
    ls_metric(s, "h", h);
}

static void first_error_wins(void)
{
    check_error(goes_on, "layer \"conv1\"", ".out");
}

static void bad_batch(void)
{
    ls_step *s = NULL;
    ls_err err = {0};

    CHECK_STATUS(ls_step_create(&s, 0, LS_TRAIN, &err), LS_INVALID, &err);
    CHECK(s == NULL);
}

int main(void)
{
    CHECK_RUN(layers);
    CHECK_RUN(names);
    CHECK_RUN(minimise);
    CHECK_RUN(first_error_wins);
    CHECK_RUN(bad_batch);
    return CHECK_DONE();
}
