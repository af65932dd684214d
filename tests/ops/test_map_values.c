/* test_map_values.c: convolution, padding, pooling and norms by numbers worked out by hand, and what they
 * refuse.
 *
 * The case lists compare gradients with differences of the forward pass and backends with the reference; here
 * the reference itself is held against the definitions. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "op_plan.h"
#include "ops/ops.h"
#include "passes/autodiff.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof(a)[0]))
/* Compiles, gives the inputs their values with SET, runs, and compares with EXPECT. */
#define SET(p, name, ...)                                                                                    \
    op_set(op_plan_find(p, name), (const double[]){__VA_ARGS__}, COUNT(((double[]){__VA_ARGS__})))
#define EXPECT(p, name, ...) expect(p, name, (const double[]){__VA_ARGS__}, COUNT(((double[]){__VA_ARGS__})))

static void expect(const op_plan *p, const char *name, const double *want, int64_t n)
{
    const ls_tensor *t = op_plan_find(p, name);

    CHECK_EQ_INT(ls_shape_count(t->shape), n);
    for (int64_t i = 0; i < n && i < ls_shape_count(t->shape); i++)
        CHECK_NEAR(tensor_get(t, i), want[i], 1e-12);
}

static ls_value in(op_plan *p, const char *name, ls_shape shape)
{
    return ls_graph_input(p->g, name, LS_F64, shape);
}

static const ls_conv_attr plain = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};

/* -- convolution
 * ------------------------------------------------------------------------------------------------ */

static void convolution(void)
{
    op_plan p;
    ls_conv_attr padded = plain, dilated = plain, grouped = plain;
    ls_value x, w, two;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(1, 1, 3, 3));
    w = in(&p, "w", LS_SHAPE(1, 1, 2, 2));
    two = in(&p, "two", LS_SHAPE(1, 2, 1, 2));
    padded.pad[0] = padded.pad[1] = 1;
    padded.stride[0] = padded.stride[1] = 2;
    dilated.dilation[0] = dilated.dilation[1] = 2;
    grouped.groups = 2;
    ls_graph_fetch(ls_conv2d(x, w, plain), "plain");
    ls_graph_fetch(ls_conv2d(x, w, padded), "padded");
    ls_graph_fetch(ls_conv2d(x, w, dilated), "dilated");
    ls_graph_fetch(ls_conv2d(two, in(&p, "gw", LS_SHAPE(2, 1, 1, 1)), grouped), "grouped");
    op_plan_compile(&p, "ref");
    SET(&p, "x", 1, 2, 3, 4, 5, 6, 7, 8, 9);
    SET(&p, "w", 1, 2, 3, 4);
    SET(&p, "two", 5, 6, 7, 8);
    SET(&p, "gw", 2, 3);
    run_plan(p.plan);
    EXPECT(&p, "plain", 37, 47, 67, 77);
    EXPECT(&p, "padded", 4, 18, 36, 77); /* the kernel's last tap meets 1, 3, 7, 9 */
    EXPECT(&p, "dilated", 1 + 2 * 3 + 3 * 7 + 4 * 9);
    EXPECT(&p, "grouped", 10, 12, 21, 24);
    op_plan_end(&p);
}

static void transposed_convolution(void)
{
    op_plan p;
    ls_conv_attr blocks = plain, overlap = plain, tail = plain;
    ls_value dy, w;

    op_plan_begin(&p);
    dy = in(&p, "dy", LS_SHAPE(1, 1, 2, 2));
    w = in(&p, "w", LS_SHAPE(1, 1, 2, 2));
    memcpy(overlap.in, (const int64_t[]){1, 1, 3, 3}, sizeof overlap.in);
    memcpy(blocks.in, (const int64_t[]){1, 1, 4, 4}, sizeof blocks.in);
    blocks.stride[0] = blocks.stride[1] = 2;
    /* An image one column wider than the blocks reach ("output padding"): zeros. */
    memcpy(tail.in, (const int64_t[]){1, 1, 4, 5}, sizeof tail.in);
    tail.stride[0] = tail.stride[1] = 2;
    ls_graph_fetch(ls_conv2d_dx(dy, w, overlap), "overlap");
    ls_graph_fetch(ls_conv2d_dx(dy, w, blocks), "blocks");
    ls_graph_fetch(ls_conv2d_dx(dy, w, tail), "tail");
    op_plan_compile(&p, "ref");
    SET(&p, "dy", 1, 2, 3, 4);
    SET(&p, "w", 1, 10, 100, 1000);
    run_plan(p.plan);
    EXPECT(&p, "overlap", 1, 12, 20, 103, 1234, 2040, 300, 3400, 4000);
    EXPECT(&p, "blocks", 1, 10, 2, 20, 100, 1000, 200, 2000, 3, 30, 4, 40, 300, 3000, 400, 4000);
    EXPECT(&p, "tail", 1, 10, 2, 20, 0, 100, 1000, 200, 2000, 0, 3, 30, 4, 40, 0, 300, 3000, 400, 4000, 0);
    op_plan_end(&p);
}

static void weight_gradient(void)
{
    op_plan p;
    ls_conv_attr a = plain;

    op_plan_begin(&p);
    a.kernel[0] = a.kernel[1] = 2;
    ls_graph_fetch(ls_conv2d_dw(in(&p, "x", LS_SHAPE(1, 1, 3, 3)), in(&p, "dy", LS_SHAPE(1, 1, 2, 2)), a),
                   "dw");
    op_plan_compile(&p, "ref");
    SET(&p, "x", 1, 2, 3, 4, 5, 6, 7, 8, 9);
    SET(&p, "dy", 1, 1, 1, 2);
    run_plan(p.plan);
    EXPECT(&p, "dw", 12 + 5, 16 + 6, 24 + 8, 28 + 9);
    op_plan_end(&p);
}

/* The three passes of one layer do the same work. */
static void convolution_cost(void)
{
    op_plan p;
    ls_conv_attr a = plain;
    ls_value x, w, y;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(2, 4, 5, 6));
    w = in(&p, "w", LS_SHAPE(8, 2, 3, 3));
    a.groups = 2;
    y = ls_conv2d(x, w, a);
    memcpy(a.in, ls_value_shape(x).dim, sizeof a.in);
    a.kernel[0] = a.kernel[1] = 3;
    ls_conv2d_dx(y, w, a);
    ls_conv2d_dw(x, y, a);
    CHECK_EQ_INT(p.g->n_nodes, 3);
    for (int i = 0; i < p.g->n_nodes; i++)
        CHECK_NEAR(ls_node_flops(p.g, p.g->nodes[i]), 2.0 * 2 * 8 * 3 * 4 * 2 * 9, 0);
    op_plan_end(&p);
}

/* -- padding, pooling, sampling
 * ----------------------------------------------------------------------------------- */

static void padding(void)
{
    op_plan p;
    ls_value x, column, dy;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(1, 3));
    column = in(&p, "column", LS_SHAPE(3, 1));
    dy = in(&p, "dy", LS_SHAPE(1, 6));
    ls_graph_fetch(ls_pad2d(x, LS_PAD_REFLECT, 0, 2, 0, 1), "reflected");
    ls_graph_fetch(ls_pad2d(column, LS_PAD_REFLECT, 1, 0, 2, 0), "reflected column");
    ls_graph_fetch(ls_pad2d(x, LS_PAD_ZERO, 1, 2, 0, 1), "zeros");
    ls_graph_fetch(ls_pad2d_adjoint(dy, LS_PAD_REFLECT, 0, 2, 0, 1), "added back");
    ls_graph_fetch(ls_pad2d_adjoint(dy, LS_PAD_ZERO, 0, 2, 0, 1), "cut off");
    op_plan_compile(&p, "ref");
    SET(&p, "x", 1, 2, 3);
    SET(&p, "column", 1, 2, 3);
    SET(&p, "dy", 1, 10, 100, 1000, 10000, 100000);
    run_plan(p.plan);
    EXPECT(&p, "reflected", 3, 2, 1, 2, 3, 2);
    EXPECT(&p, "reflected column", 2, 1, 2, 3, 2, 1);
    EXPECT(&p, "zeros", 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0);
    EXPECT(&p, "added back", 100, 101010, 10001);
    EXPECT(&p, "cut off", 100, 1000, 10000);
    op_plan_end(&p);
}

static void max_pooling(void)
{
    op_plan p;
    ls_pool_attr half = {.kernel = {2, 2}, .stride = {2, 2}};
    ls_pool_attr overlap = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}};
    ls_value x, y, z, t, nan;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(1, 1, 4, 4));
    nan = ls_maxpool2d(in(&p, "nan in", LS_SHAPE(1, 1, 2, 2)), half);
    ls_graph_fetch(nan, "nan");
    ls_graph_fetch(ls_graph_out(nan, 1), "nan index");
    y = ls_maxpool2d(x, half);
    z = ls_maxpool2d(x, overlap);
    t = ls_maxpool2d(in(&p, "ties", LS_SHAPE(1, 1, 2, 2)), half);
    ls_graph_fetch(y, "half");
    ls_graph_fetch(ls_graph_out(y, 1), "half index");
    ls_graph_fetch(z, "overlap");
    ls_graph_fetch(ls_graph_out(z, 1), "overlap index");
    ls_graph_fetch(ls_graph_out(t, 1), "tie index");
    overlap.in[0] = overlap.in[1] = 4;
    ls_graph_fetch(ls_maxpool2d_grad(in(&p, "dy", LS_SHAPE(1, 1, 2, 2)), ls_graph_out(z, 1), overlap), "dx");
    op_plan_compile(&p, "ref");
    SET(&p, "x", -1, -2, -3, -4, -5, 9, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16);
    SET(&p, "ties", 5, 7, 7, 7);
    SET(&p, "nan in", 5, 7, NAN, 9);
    SET(&p, "dy", 1, 2, 4, 8);
    run_plan(p.plan);
    EXPECT(&p, "half", 9, -3, -9, -11);
    EXPECT(&p, "half index", 3, 0, 0, 0);
    EXPECT(&p, "overlap", 9, 9, 9, 9);
    EXPECT(&p, "overlap index", 8, 6, 2, 0); /* the same element, seen from four windows */
    EXPECT(&p, "tie index", 1);
    EXPECT(&p, "nan index", 2);
    CHECK(isnan(tensor_get(op_plan_find(&p, "nan"), 0)));
    EXPECT(&p, "dx", 0, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    op_plan_end(&p);
}

static void average_pooling(void)
{
    op_plan p;
    ls_pool_attr inside = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}}, all = inside;
    ls_value x, small;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(1, 1, 2, 2));
    small = in(&p, "small", LS_SHAPE(1, 1, 1, 2));
    all.count_pad = true;
    ls_graph_fetch(ls_avgpool2d(x, inside), "inside");
    ls_graph_fetch(ls_avgpool2d(x, all), "all");
    ls_graph_fetch(ls_upsample2d(small, 2), "up");
    ls_graph_fetch(ls_upsample2d_grad(x, 2), "block");
    op_plan_compile(&p, "ref");
    SET(&p, "x", 1, 2, 3, 12);
    SET(&p, "small", 1, 2);
    run_plan(p.plan);
    EXPECT(&p, "inside", 4.5);
    EXPECT(&p, "all", 2);
    EXPECT(&p, "up", 1, 1, 2, 2, 1, 1, 2, 2);
    EXPECT(&p, "block", 18);
    op_plan_end(&p);
}

/* -- norms
 * -------------------------------------------------------------------------------------------------------- */

/* One channel with values 1, 2, 3, 4 (mean 2.5, variance 5/4 or 5/3) or the single value 6; gamma 2, beta 1.
 */
static void batch_norm_once(bool unbiased, int64_t n, double want_mean, double want_var)
{
    op_plan p;
    ls_norm_attr a = {.eps = 0.75, .momentum = 0.1, .unbiased_running = unbiased};
    ls_value one[4], y;
    const char *const names[] = {"gamma", "beta"}, *const vars[] = {"running mean", "running var"};

    op_plan_begin(&p);
    for (int i = 0; i < 2; i++) {
        one[i] = in(&p, names[i], LS_SHAPE(1));
        one[2 + i] =
            ls_graph_var(p.g, vars[i], LS_VAR_BUFFER, LS_F64, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    }
    y = ls_batch_norm(in(&p, "x", LS_SHAPE(n, 1)), one[0], one[1], one[2], one[3], a);
    for (int i = 0; i < 2; i++) ls_graph_advance(p.g, i, ls_graph_out(y, 3 + i));
    ls_graph_fetch(y, "y");
    op_plan_compile(&p, "ref");
    if (n == 4)
        SET(&p, "x", 1, 2, 3, 4);
    else
        SET(&p, "x", 6);
    SET(&p, "gamma", 2);
    SET(&p, "beta", 1);
    SET(&p, "running mean", 10);
    SET(&p, "running var", 1);
    run_plan(p.plan);
    if (n == 4)
        EXPECT(&p, "y", 1 - 3 / sqrt(2), 1 - 1 / sqrt(2), 1 + 1 / sqrt(2), 1 + 3 / sqrt(2));
    else
        EXPECT(&p, "y", 1);
    EXPECT(&p, "running mean", want_mean);
    EXPECT(&p, "running var", want_var);
    op_plan_end(&p);
}

static void batch_norm(void)
{
    batch_norm_once(false, 4, 9.25, 0.9 + 0.1 * 5 / 4);
    batch_norm_once(true, 4, 9.25, 0.9 + 0.1 * 5 / 3);
    batch_norm_once(true, 1, 9.6, 0.9); /* no division by n - 1 = 0 */
}

/* What belongs together: images for instance norm, rows for layer norm. */
static void instance_and_layer_norm(void)
{
    op_plan p;
    ls_norm_attr a = {.eps = 0};
    ls_value x, y;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(1, 2, 2, 2));
    y = ls_instance_norm(x, a);
    ls_graph_fetch(y, "instance");
    ls_graph_fetch(ls_graph_out(y, 1), "instance mean");
    ls_graph_fetch(ls_graph_out(y, 2), "instance invstd");
    ls_graph_fetch(ls_layer_norm(x, in(&p, "gamma", LS_SHAPE(2)), in(&p, "beta", LS_SHAPE(2)), a), "layer");
    op_plan_compile(&p, "ref");
    SET(&p, "x", 1, 3, 3, 1, 10, 30, 10, 30);
    SET(&p, "gamma", 1, 2);
    SET(&p, "beta", 5, 7);
    run_plan(p.plan);
    EXPECT(&p, "instance", -1, 1, 1, -1, -1, 1, -1, 1);
    EXPECT(&p, "instance mean", 2, 20);
    EXPECT(&p, "instance invstd", 1, 0.1);
    EXPECT(&p, "layer", 4, 9, 6, 5, 4, 9, 4, 9);
    op_plan_end(&p);
}

/* -- refusals
 * ------------------------------------------------------------------------------------------------------- */

/* The graph must hold an error with these words; closes it. */
static void refused(op_plan *p, ls_status want, const char *words)
{
    ls_err err = {0};

    CHECK_STATUS(ls_graph_status(p->g, &err), want, &err);
    CHECK_CONTAINS(err.text, words);
    op_plan_end(p);
}

static void refusals_of_convolution(void)
{
    op_plan p;
    ls_conv_attr a = plain;

    memcpy(a.in, (const int64_t[]){1, 1, 8, 7}, sizeof a.in);
    op_plan_begin(&p);
    ls_conv2d_dx(in(&p, "dy", LS_SHAPE(1, 1, 6, 6)), in(&p, "w", LS_SHAPE(1, 1, 3, 3)), a);
    refused(&p, LS_INVALID, "a 3x3 convolution of a 8x7 image gives 6x5, but dy is 6x6");
    op_plan_begin(&p);
    ls_conv2d_dx(in(&p, "dy", LS_SHAPE(1, 2, 6, 5)), in(&p, "w", LS_SHAPE(1, 1, 3, 3)), a);
    refused(&p, LS_INVALID, "dy has 2 channels, the weights are for 1");
    op_plan_begin(&p);
    ls_conv2d_dw(in(&p, "x", LS_SHAPE(2, 1, 8, 7)), in(&p, "dy", LS_SHAPE(1, 1, 6, 5)), a);
    refused(&p, LS_INVALID, "x holds 2 samples, dy 1");
    op_plan_begin(&p);
    ls_conv2d(in(&p, "x", LS_SHAPE(1, 3, 8, 7)), in(&p, "w", LS_SHAPE(1, 1, 3, 3)), a);
    refused(&p, LS_INVALID, "do not fit weights for 1 per group");
}

static void refusals_of_pooling(void)
{
    op_plan p;
    ls_pool_attr a = {.kernel = {16, 16}, .stride = {1, 1}};
    ls_value x, y, dx, dxx;

    op_plan_begin(&p);
    ls_maxpool2d(in(&p, "x", LS_SHAPE(1, 1, 16, 16)), a);
    refused(&p, LS_INVALID, "windows of 16x16 are too large");
    op_plan_begin(&p);
    a.kernel[0] = a.kernel[1] = a.pad[2] = 2;
    ls_avgpool2d(in(&p, "x", LS_SHAPE(1, 1, 16, 16)), a);
    refused(&p, LS_INVALID, "padding by 2 leaves windows of 2 without elements");
    op_plan_begin(&p);
    ls_pad2d(in(&p, "x", LS_SHAPE(4, 3)), LS_PAD_REFLECT, 3, 3, 0, 0);
    refused(&p, LS_INVALID, "reflecting 3 elements needs a size above that, got 3");
    op_plan_begin(&p);
    a.pad[2] = 0;
    x = in(&p, "x", LS_SHAPE(1, 1, 4, 4));
    y = ls_square(ls_maxpool2d(x, a));
    ls_autodiff(y, (ls_value){p.g, -1}, 1, &x, &dx);
    ls_autodiff(dx, (ls_value){p.g, -1}, 1, &x, &dxx);
    refused(&p, LS_UNSUPPORTED, "op maxpool2d_grad has no gradient");
}

static void refusals_of_norms(void)
{
    op_plan p;
    ls_norm_attr a = {.eps = 1e-5};
    ls_value v, x;

    op_plan_begin(&p);
    v = ls_graph_input(p.g, "v", LS_BF16, LS_SHAPE(3));
    x = ls_graph_input(p.g, "x", LS_BF16, LS_SHAPE(2, 3));
    ls_layer_norm(x, v, v, a);
    refused(&p, LS_INVALID, "gamma must be f32 (3,), got bf16 (3,)");
    op_plan_begin(&p);
    v = in(&p, "v", LS_SHAPE(3));
    ls_batch_norm(in(&p, "x", LS_SHAPE(2, 4)), v, v, v, v, a);
    refused(&p, LS_INVALID, "gamma must be f64 (4,), got f64 (3,)");
    op_plan_begin(&p);
    ls_instance_norm(in(&p, "x", LS_SHAPE(2, 4)), a);
    refused(&p, LS_INVALID, "needs x (N, C, H, W)");
    op_plan_begin(&p);
    a.act = LS_ACT_RELU;
    v = in(&p, "v", LS_SHAPE(4));
    ls_layer_norm(in(&p, "x", LS_SHAPE(2, 4)), v, v, a);
    refused(&p, LS_INVALID, "neither activation nor residual");
}

int main(void)
{
    CHECK_RUN(convolution);
    CHECK_RUN(transposed_convolution);
    CHECK_RUN(weight_gradient);
    CHECK_RUN(convolution_cost);
    CHECK_RUN(padding);
    CHECK_RUN(max_pooling);
    CHECK_RUN(average_pooling);
    CHECK_RUN(batch_norm);
    CHECK_RUN(instance_and_layer_norm);
    CHECK_RUN(refusals_of_convolution);
    CHECK_RUN(refusals_of_pooling);
    CHECK_RUN(refusals_of_norms);
    return CHECK_DONE();
}
