/* test_layers.c: what layers compute, by hand-made numbers; how they name, share and start parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/document.h"
#include "nn_test.h"

/* -- convolutions -----------------------------------------------------------------------------------------
 */

/* 5x5, stride 2, SAME on an even size: one zero before, two after. */
static void build_same(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(1, 1, 4, 4));
    ls_value z = ls_input(s, "z", LS_F32, LS_SHAPE(1, 1, 2, 2));

    ls_metric(s, "down", ls_conv(s, x, "down", .out = 1, .kernel = 5, .stride = 2, .same = true));
    ls_metric(s, "up", ls_conv_transpose(s, z, "up", .out = 1, .kernel = 5, .stride = 2, .same = true));
}

static void same_padding_is_one_before_two_after(void)
{
    nn_run r = nn_compile(build_same, 1, LS_TRAIN);
    const ls_tensor *y = nn_fetched(&r, "down"), *u = nn_fetched(&r, "up");

    for (int i = 0; i < 25; i++) {
        tensor_put(nn_var(&r, "down.weight"), i, i + 1);
        tensor_put(nn_var(&r, "up.weight"), i, i + 1);
    }
    tensor_put(nn_var(&r, "down.bias"), 0, 0);
    tensor_put(nn_var(&r, "up.bias"), 0, 0);
    tensor_put(nn_input(&r, "x"), 0, 1); /* row 0, column 0 */
    tensor_put(nn_input(&r, "z"), 0, 1);
    run_plan(r.plan);
    /* y[o] = sum of w[k] x[2 o + k - 1]: the element at 0 meets k = 1 in position 0 and nothing in 1. */
    CHECK_NEAR(tensor_get(y, 0), 7, 0);
    CHECK_NEAR(tensor_get(y, 1), 0, 0);
    CHECK_NEAR(tensor_get(y, 3), 0, 0);
    /* u[i] += z[o] w[k] at i = 2 o + k - 1: k = 1..4 land on 0..3, k = 0 is cut off. */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) CHECK_NEAR(tensor_get(u, 4 * i + j), 5 * (i + 1) + (j + 1) + 1, 0);
    nn_release(&r);
}

static void build_line(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(1, 2, 4));

    ls_metric(s, "line", ls_conv1d(s, x, "conv", .out = 1, .kernel = 2));
    ls_metric(s, "flat", ls_conv1d(s, ls_reshape(x, LS_SHAPE(1, 2, 1, 4)), "conv", .out = 1, .kernel = 2));
}

static void one_dimensional_convolution(void)
{
    nn_run r = nn_compile(build_line, 1, LS_TRAIN);
    const ls_tensor *w = ls_state_find(r.state, "conv.weight"), *y = ls_plan_fetch(r.plan, "line");
    const float weights[] = {1, 2, 3, 4}, x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    char buf[LS_SHAPE_TEXT];

    CHECK_EQ_STR(ls_shape_text(w->shape, buf), "(1, 2, 2)");
    CHECK_EQ_STR(ls_shape_text(y->shape, buf), "(1, 1, 3)");
    CHECK_EQ_STR(ls_shape_text(ls_plan_fetch(r.plan, "flat")->shape, buf), "(1, 1, 1, 3)");
    tensor_write(w, weights, sizeof weights);
    tensor_write(nn_input(&r, "x"), x, sizeof x);
    tensor_put(nn_var(&r, "conv.bias"), 0, 0.5);
    run_plan(r.plan);
    for (int i = 0; i < 3; i++) {
        double want = x[i] + 2 * x[i + 1] + 3 * x[i + 4] + 4 * x[i + 5] + 0.5;
        CHECK_NEAR(tensor_get(y, i), want, 1e-6);
        CHECK_NEAR(tensor_get(nn_fetched(&r, "flat"), i), want, 1e-6);
    }
    nn_release(&r);
}

/* -- linear, embedding, attention -------------------------------------------------------------------------
 */

static void build_linear(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(1, 2));
    ls_value index = ls_input(s, "index", LS_I32, LS_SHAPE(1, 2));

    ls_metric(s, "y", ls_linear(s, x, "fc", .out = 2));
    ls_metric(s, "rows", ls_embedding(s, index, "table", .rows = 3, .width = 2));
}

static void linear_and_embedding(void)
{
    nn_run r = nn_compile(build_linear, 1, LS_TRAIN);
    const float w[] = {1, 2, 3, 4}, b[] = {10, 20}, x[] = {5, 6}, table[] = {0, 1, 2, 3, 4, 5};
    const ls_tensor *y = nn_fetched(&r, "y"), *rows = nn_fetched(&r, "rows");

    tensor_write(nn_var(&r, "fc.weight"), w, sizeof w);
    tensor_write(nn_var(&r, "fc.bias"), b, sizeof b);
    tensor_write(nn_var(&r, "table.weight"), table, sizeof table);
    tensor_write(nn_input(&r, "x"), x, sizeof x);
    tensor_put(nn_input(&r, "index"), 0, 2);
    tensor_put(nn_input(&r, "index"), 1, 0);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(y, 0), 1 * 5 + 2 * 6 + 10, 0); /* weight is (out, in) */
    CHECK_NEAR(tensor_get(y, 1), 3 * 5 + 4 * 6 + 20, 0);
    CHECK_NEAR(tensor_get(rows, 0), 4, 0);
    CHECK_NEAR(tensor_get(rows, 3), 1, 0);
    nn_release(&r);
}

enum { BATCH = 2, TOKENS = 3, WIDTH = 4, HEADS = 2, DEPTH = WIDTH / HEADS };

/* The layer, and the same written out head by head with the same parameters. */
static void build_attention(ls_step *s)
{
    ls_value x = ls_draw_normal(s, "x", LS_SHAPE(BATCH, TOKENS, WIDTH), 1.0);
    ls_value qkv = ls_linear(s, x, "attn.qkv", .out = 3 * WIDTH), head[HEADS];

    for (int h = 0; h < HEADS; h++) {
        ls_value q = ls_slice(qkv, 2, h * DEPTH, DEPTH), k = ls_slice(qkv, 2, WIDTH + h * DEPTH, DEPTH);
        ls_value v = ls_slice(qkv, 2, 2 * WIDTH + h * DEPTH, DEPTH);
        ls_value p = ls_softmax(ls_scale(ls_matmul(q, k, false, true), 1 / sqrt(DEPTH)));
        head[h] = ls_matmul(p, v, false, false);
    }
    ls_metric(s, "slow", ls_linear(s, ls_concat(HEADS, head, 2), "attn.proj", .out = WIDTH));
    ls_metric(s, "fast", ls_self_attention(s, x, "attn", .heads = HEADS));
}

static void attention_is_softmax_of_products(void)
{
    nn_run r = nn_compile(build_attention, BATCH, LS_TRAIN);
    const ls_tensor *slow = nn_fetched(&r, "slow"), *fast = nn_fetched(&r, "fast");
    double size = 0;

    CHECK_EQ_INT(ls_step_param_tensors(r.step), 4);
    ls_step_write_rng(r.plan, 3, 0, 0);
    run_plan(r.plan);
    for (int i = 0; i < BATCH * TOKENS * WIDTH; i++) {
        CHECK_NEAR(tensor_get(fast, i), tensor_get(slow, i), 1e-6);
        size += fabs(tensor_get(slow, i));
    }
    CHECK(size > 0.1);
    nn_release(&r);
}

/* -- batch norm -------------------------------------------------------------------------------------------
 */

static ls_value norm(ls_step *s, const char *input)
{
    return ls_batchnorm(s, ls_input(s, input, LS_F32, LS_SHAPE(-1, 1)), "bn");
}

/* Two batches through one layer: two sets of statistics, one pair of running averages. */
static void build_norm(ls_step *s)
{
    ls_metric(s, "ya", norm(s, "a"));
    ls_metric(s, "yb", norm(s, "b"));
}

static void batchnorm_in_training(void)
{
    nn_run r = nn_compile(build_norm, 2, LS_TRAIN);
    tensor_put(nn_input(&r, "a"), 0, 1); /* mean 2, biased variance 1, unbiased 2 */
    tensor_put(nn_input(&r, "a"), 1, 3);
    tensor_put(nn_input(&r, "b"), 0, 10); /* mean 8, biased variance 4, unbiased 8 */
    tensor_put(nn_input(&r, "b"), 1, 6);
    run_plan(r.plan);
    CHECK_NEAR(nn_fetch(&r, "ya"), -1 / sqrt(1 + 1e-5), 1e-6);
    CHECK_NEAR(nn_fetch(&r, "yb"), 2 / sqrt(4 + 1e-5), 1e-6);
    CHECK_NEAR(tensor_get(nn_var(&r, "bn.running_mean"), 0), 0.9 * (0.1 * 2) + 0.1 * 8, 1e-6);
    CHECK_NEAR(tensor_get(nn_var(&r, "bn.running_var"), 0), 0.9 * (0.9 * 1 + 0.1 * 2) + 0.1 * 8, 1e-6);
    CHECK_EQ_INT(ls_step_count_params(r.step, "*"), 2); /* buffers are not parameters */
    nn_release(&r);
}

static void batchnorm_in_evaluation(void)
{
    nn_run r = nn_compile(build_norm, 2, LS_EVAL);

    tensor_put(nn_var(&r, "bn.running_mean"), 0, 3);
    tensor_put(nn_var(&r, "bn.running_var"), 0, 4);
    tensor_put(nn_var(&r, "bn.weight"), 0, 2);
    tensor_put(nn_var(&r, "bn.bias"), 0, 0.5);
    tensor_put(nn_input(&r, "a"), 1, 7);
    run_plan(r.plan);
    CHECK_NEAR(tensor_get(nn_fetched(&r, "ya"), 1), 2 * (7 - 3) / sqrt(4 + 1e-5) + 0.5, 1e-5);
    CHECK_NEAR(tensor_get(nn_var(&r, "bn.running_mean"), 0), 3, 0);
    nn_release(&r);
}

/* -- dropout ----------------------------------------------------------------------------------------------
 */

enum { DROPPED = 400 };

static void build_drop(ls_step *s)
{
    ls_value x = ls_constant(s, LS_SHAPE(-1, DROPPED), 1.0);
    ls_value maps = ls_constant(s, LS_SHAPE(-1, 50, 4), 1.0);

    ls_metric(s, "once", ls_drop(s, x, "drop", 0.25));
    ls_metric(s, "again", ls_drop(s, x, "drop", 0.25));
    ls_metric(s, "maps", ls_drop_channels(s, maps, "maps", 0.5));
}

static void dropout_in_training(void)
{
    nn_run r = nn_compile(build_drop, 1, LS_TRAIN);
    float a[DROPPED], b[DROPPED], maps[200], first[DROPPED];
    int kept = 0, differ = 0, changed = 0;

    ls_step_write_rng(r.plan, 1, 0, 0);
    run_plan(r.plan);
    tensor_read(nn_fetched(&r, "once"), a, sizeof a);
    tensor_read(nn_fetched(&r, "again"), b, sizeof b);
    tensor_read(nn_fetched(&r, "maps"), maps, sizeof maps);
    for (int i = 0; i < DROPPED; i++) {
        CHECK(a[i] == 0 || fabs((double)a[i] - 1 / 0.75) < 1e-6);
        kept += a[i] != 0;
        differ += a[i] != b[i];
    }
    CHECK(kept > 250 && kept < 350); /* 300 expected, standard deviation 9 */
    CHECK(differ > 50);              /* the second use of the name draws anew */
    for (int i = 0; i < 200; i++) CHECK(maps[i] == maps[i / 4 * 4]);
    memcpy(first, a, sizeof first);
    ls_step_write_rng(r.plan, 1, 1, 0);
    run_plan(r.plan);
    tensor_read(nn_fetched(&r, "once"), a, sizeof a);
    for (int i = 0; i < DROPPED; i++) changed += a[i] != first[i];
    CHECK(changed > 50);
    nn_release(&r);
}

static void dropout_in_evaluation(void)
{
    nn_run r = nn_compile(build_drop, 1, LS_EVAL);

    run_plan(r.plan);
    for (int i = 0; i < DROPPED; i++) CHECK_NEAR(tensor_get(nn_fetched(&r, "once"), i), 1, 0);
    CHECK(ls_plan_input(r.plan, "rng") == NULL);
    nn_release(&r);
}

/* -- initial values ---------------------------------------------------------------------------------------
 */

static void build_inits(ls_step *s)
{
    ls_value x = ls_constant(s, LS_SHAPE(1, 16, 8, 8), 1.0), v = ls_constant(s, LS_SHAPE(1, 300), 1.0);

    ls_metric(s, "1", ls_conv(s, x, "torch", .out = 32, .kernel = 3));
    ls_metric(s, "2", ls_conv(s, x, "kaiming", .out = 32, .kernel = 3, .init = ls_init_kaiming_out()));
    ls_metric(s, "3", ls_linear(s, v, "glorot", .out = 100, .init = ls_init_glorot(0.01)));
    ls_metric(s, "4", ls_linear(s, v, "normal", .out = 100, .init = ls_init_normal(0.02)));
    ls_metric(s, "5", ls_linear(s, v, "trunc", .out = 100, .init = ls_init_trunc_normal(0.02)));
    ls_metric(s, "6", ls_linear(s, v, "const", .out = 100, .init = ls_init_const(0.5)));
}

typedef struct moments {
    double max, std;
} moments;

static moments moments_of(const nn_run *r, const char *name)
{
    const ls_tensor *t = ls_state_find(r->state, name);
    moments m = {0, 0};
    int64_t n;

    REQUIRE(t != NULL);
    n = ls_shape_count(t->shape);
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(tensor_get(t, i));
        m.max = x > m.max ? x : m.max;
        m.std += x * x / (double)n;
    }
    m.std = sqrt(m.std);
    return m;
}

/* Standard deviations within 5 % (at least 4,608 draws each), bounds exactly. */
static void check_moments(const nn_run *r, const char *name, double std, double bound)
{
    moments m = moments_of(r, name);

    CHECK_NEAR(m.std, std, 0.05 * std);
    CHECK(m.max <= bound);
}

static void initial_values(void)
{
    nn_run r = nn_compile(build_inits, 1, LS_EVAL);
    double torch = 1 / sqrt(16 * 9), glorot = sqrt(6.0 / 400);

    check_moments(&r, "torch.weight", torch / sqrt(3), torch);
    CHECK(moments_of(&r, "torch.bias").max <= torch && moments_of(&r, "torch.bias").std > torch / 4);
    check_moments(&r, "kaiming.weight", sqrt(2.0 / (32 * 9)), 1);
    CHECK_NEAR(moments_of(&r, "kaiming.bias").max, 0, 0);
    check_moments(&r, "glorot.weight", glorot / sqrt(3), glorot);
    CHECK_NEAR(moments_of(&r, "glorot.bias").max, 0.01, 1e-8);
    check_moments(&r, "normal.weight", 0.02, 0.2);
    CHECK(moments_of(&r, "normal.weight").max > 0.05);
    check_moments(&r, "trunc.weight", 0.02 * 0.8796, 0.04); /* of a normal cut at two sigma */
    check_moments(&r, "const.weight", 0.5, 0.5);
    nn_release(&r);
}

/* -- sharing and scopes -----------------------------------------------------------------------------------
 */

static ls_value network(ls_step *s, ls_value x)
{
    ls_value y;

    ls_scope_push(s, "net%d", 7);
    ls_scope_push(s, "block");
    y = ls_linear(s, x, "fc", .out = 3);
    ls_scope_pop(s);
    y = ls_layernorm(s, y, "norm", 0);
    ls_scope_pop(s);
    return y;
}

static void build_shared(ls_step *s)
{
    ls_value a = network(s, ls_input(s, "a", LS_F32, LS_SHAPE(-1, 3)));
    ls_value b = network(s, ls_input(s, "b", LS_F32, LS_SHAPE(-1, 3)));

    ls_metric(s, "difference", ls_reduce_sum(ls_abs(ls_sub(a, b)), LS_ALL_AXES, false));
}

static void a_network_called_twice_is_one_network(void)
{
    nn_run r = nn_compile(build_shared, 2, LS_TRAIN);

    CHECK_EQ_INT(ls_step_param_tensors(r.step), 4);
    CHECK_EQ_INT(ls_step_count_params(r.step, "net7.block.*"), 12);
    CHECK_EQ_INT(ls_step_count_params(r.step, "net7.norm.* net7.block.fc.bias"), 9);
    CHECK(ls_state_find(r.state, "net7.block.fc.weight") != NULL);
    for (int i = 0; i < 6; i++) {
        tensor_put(nn_input(&r, "a"), i, i * i);
        tensor_put(nn_input(&r, "b"), i, i * i);
    }
    run_plan(r.plan);
    CHECK_NEAR(nn_fetch(&r, "difference"), 0, 0);
    tensor_put(nn_input(&r, "b"), 0, 5);
    run_plan(r.plan);
    CHECK(nn_fetch(&r, "difference") > 1e-3);
    nn_release(&r);
}

static void layers_name_their_nodes(void)
{
    nn_run r = nn_compile(build_shared, 2, LS_TRAIN);
    ls_document d;
    int found = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_document_make(&d, r.plan, &err), &err);
    for (int32_t i = 0; i < d.n_nodes; i++) {
        if (strcmp(d.nodes[i].op, "matmul") != 0) continue;
        CHECK_EQ_STR(d.nodes[i].layer, "net7.block.fc");
        found++;
    }
    CHECK_EQ_INT(found, 2);
    ls_document_release(&d);
    nn_release(&r);
}

int main(void)
{
    CHECK_RUN(same_padding_is_one_before_two_after);
    CHECK_RUN(one_dimensional_convolution);
    CHECK_RUN(linear_and_embedding);
    CHECK_RUN(attention_is_softmax_of_products);
    CHECK_RUN(batchnorm_in_training);
    CHECK_RUN(batchnorm_in_evaluation);
    CHECK_RUN(dropout_in_training);
    CHECK_RUN(dropout_in_evaluation);
    CHECK_RUN(initial_values);
    CHECK_RUN(a_network_called_twice_is_one_network);
    CHECK_RUN(layers_name_their_nodes);
    return CHECK_DONE();
}
