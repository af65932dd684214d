/* Cases of what fusion makes: products with bias and activation, chains of element-wise functions, reorders.
 * Fusion comes after differentiation, so these have no gradients of their own. */
#include "op_test.h"

/* -- products
 * -------------------------------------------------------------------------------------------------- */

/* Weights that keep sums of `terms` products near 1 by an exact factor: errors are measured against the
 * largest result, and an activation that flattens large sums would hide how large they were. */
static ls_value weights(op_test *t, int64_t terms, ls_shape shape)
{
    double factor = 1;

    while (factor * factor * (double)terms > 1) factor /= 2;
    return ls_scale(op_fixed(t, OP_NORMAL, shape), factor);
}

/* p: activation, with bias (2: and something to be added), M, K, N, batch (0: none), transposed b */
static void build_matmul(op_test *t, const int64_t *p)
{
    ls_matmul_attr attr = {.trans_b = p[6] != 0, .act = (ls_act)p[0], .slope = 0.25};
    ls_value in[4];

    in[0] = op_fixed(t, OP_NORMAL, p[5] > 0 ? LS_SHAPE(p[5], p[2], p[3]) : LS_SHAPE(p[2], p[3]));
    in[1] = weights(t, p[3], p[6] ? LS_SHAPE(p[4], p[3]) : LS_SHAPE(p[3], p[4]));
    if (p[1]) in[2] = op_fixed(t, OP_NORMAL, LS_SHAPE(p[4]));
    if (p[1] == 2)
        in[3] = op_fixed(t, OP_NORMAL, p[5] > 0 ? LS_SHAPE(p[5], p[2], p[4]) : LS_SHAPE(p[2], p[4]));
    op_length(t, p[3]);
    op_out(t, ls_graph_add(op_graph(t), &ls_op_matmul, 2 + (int)p[1], in, &attr));
}

/* p: activation, with bias, N, C, H, W, O, kernel, stride, pad, groups */
static void build_conv2d(op_test *t, const int64_t *p)
{
    int k = (int)p[7], s = (int)p[8], pad = (int)p[9];
    ls_conv_attr attr = {.stride = {s, s},
                         .dilation = {1, 1},
                         .pad = {pad, pad, pad, pad},
                         .groups = (int)p[10],
                         .act = (ls_act)p[0],
                         .slope = 0.25};
    ls_value in[3];

    in[0] = op_fixed(t, OP_NORMAL, LS_SHAPE(p[2], p[3], p[4], p[5]));
    in[1] = weights(t, p[3] / p[10] * k * k, LS_SHAPE(p[6], p[3] / p[10], k, k));
    if (p[1]) in[2] = op_fixed(t, OP_NORMAL, LS_SHAPE(p[6]));
    op_length(t, p[3] / p[10] * k * k);
    op_out(t, ls_graph_add(op_graph(t), &ls_op_conv2d, p[1] ? 3 : 2, in, &attr));
}

/* Every activation, with and without bias. */
#define ACTS(name, build, ...)                                                                               \
    {name ", relu", build, {LS_ACT_RELU, 0, __VA_ARGS__}, OP_NO_GRAD},                                       \
        {name ", bias", build, {LS_ACT_NONE, 1, __VA_ARGS__}, OP_NO_GRAD | OP_BF16},                         \
        {name ", bias and relu", build, {LS_ACT_RELU, 1, __VA_ARGS__}, OP_NO_GRAD | OP_BF16},                \
        {name ", bias and leaky relu", build, {LS_ACT_LEAKY, 1, __VA_ARGS__}, OP_NO_GRAD},                   \
        {name ", bias and tanh", build, {LS_ACT_TANH, 1, __VA_ARGS__}, OP_NO_GRAD},                          \
    {                                                                                                        \
        name ", bias and gelu", build, {LS_ACT_GELU, 1, __VA_ARGS__}, OP_NO_GRAD                             \
    }

/* -- chains
 * ---------------------------------------------------------------------------------------------------- */

/* One function alone; p: code, number of elements */
static void build_single(op_test *t, const int64_t *p)
{
    ls_pointwise_attr attr = {.n_steps = 1, .step = {{.pw = (ls_pw)p[0], .p = {0.25, -0.5}}}};
    ls_value in[2];

    in[0] = op_fixed(t, OP_POSITIVE, LS_SHAPE(p[1]));
    in[1] = op_fixed(t, OP_POSITIVE, LS_SHAPE(p[1]));
    attr.step[0].b = ls_pw_is_binary((ls_pw)p[0]) ? 1 : 0;
    op_out(t, ls_graph_add(op_graph(t), &ls_op_pointwise, attr.step[0].b + 1, in, &attr));
}

/* relu(0.5 * (x + r) - 0.25) * s, where s is one number. */
static void build_residual(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[0], p + 1);
    ls_pointwise_attr attr = {.n_steps = 4,
                              .step = {{LS_PW_ADD, 0, 1, {0}},
                                       {LS_PW_AFFINE, 3, 0, {0.5, -0.25}},
                                       {LS_PW_RELU, 4, 0, {0}},
                                       {LS_PW_MUL, 5, 2, {0}}}};
    ls_value x = op_fixed(t, OP_NORMAL, s), r = op_fixed(t, OP_NORMAL, s);
    ls_value one = op_fixed(t, OP_NORMAL, p[7] ? LS_SHAPE(1, 1) : LS_SHAPE_SCALAR);

    op_out(t, ls_graph_add(op_graph(t), &ls_op_pointwise, 3, (ls_value[]){x, r, one}, &attr));
}

/* Single numbers before the tensor they meet. */
static void build_scalars_first(op_test *t, const int64_t *p)
{
    ls_pointwise_attr attr = {
        .n_steps = 3, .step = {{LS_PW_MUL, 0, 1, {0}}, {LS_PW_TANH, 3, 0, {0}}, {LS_PW_SUB, 2, 4, {0}}}};
    ls_value a = op_fixed(t, OP_NORMAL, LS_SHAPE_SCALAR), b = op_fixed(t, OP_NORMAL, LS_SHAPE(1));
    ls_value x = op_fixed(t, OP_NORMAL, LS_SHAPE(p[0], p[1]));

    op_out(t, ls_graph_add(op_graph(t), &ls_op_pointwise, 3, (ls_value[]){a, b, x}, &attr));
}

/* As many inputs and steps as there may be: every step is the mean of an earlier register and the newest. */
static void build_longest(op_test *t, const int64_t *p)
{
    ls_pointwise_attr attr = {.n_steps = LS_PW_MAX_STEPS};
    ls_value in[LS_PW_MAX_INPUTS];

    for (int i = 0; i < LS_PW_MAX_INPUTS; i++) in[i] = op_fixed(t, OP_NORMAL, LS_SHAPE(p[0]));
    for (int i = 0; i < LS_PW_MAX_STEPS; i++) {
        bool halve = i % 2 == 1;
        attr.step[i].pw = halve ? LS_PW_AFFINE : LS_PW_ADD;
        attr.step[i].a = i == 0 ? 0 : LS_PW_MAX_INPUTS + i - 1;
        attr.step[i].b = halve ? 0 : i / 2;
        attr.step[i].p[0] = halve ? 0.5 : 0;
    }
    op_out(t, ls_graph_add(op_graph(t), &ls_op_pointwise, LS_PW_MAX_INPUTS, in, &attr));
}

#define SINGLE(name, code)                                                                                   \
    {                                                                                                        \
        "pointwise " name, build_single, {code, 37}, OP_NO_GRAD                                              \
    }

/* -- reorder
 * --------------------------------------------------------------------------------------------------- */

static void build_reorder(op_test *t, const int64_t *p)
{
    ls_reorder_attr attr = {&ls_layout_plain, &ls_layout_plain};
    ls_value x = op_fixed(t, OP_NORMAL, LS_SHAPE(p[0], p[1], p[2], p[3]));

    op_out(t, ls_graph_add(op_graph(t), &ls_op_reorder, 1, &x, &attr));
}

/* -- convert
 * --------------------------------------------------------------------------------------------------- */

/* Tensors of the sizes p[0..4], 0 ending them, to the type of the case. */
static void build_convert(op_test *t, const int64_t *p)
{
    const ls_cast_attr attr = {op_dtype(t)};
    ls_value in[5], out;
    int n = 0;

    for (; n < 5 && p[n] != 0; n++) in[n] = op_in_wide(t, OP_NORMAL, LS_SHAPE(p[n]));
    out = ls_graph_add(op_graph(t), &ls_op_convert, n, in, &attr);
    for (int k = 0; k < n; k++) op_out(t, ls_graph_out(out, k));
}

static const op_case cases[] = {
    /*                                            M  K   N   batch trans_b */
    ACTS("matmul", build_matmul, 7, 13, 17, 0, 0),
    ACTS("matmul, b transposed", build_matmul, 5, 31, 16, 0, 1),
    ACTS("matmul, few rows", build_matmul, 32, 64, 48, 0, 1),
    ACTS("matmul, batch", build_matmul, 3, 5, 7, 4, 0),
    ACTS("matmul, empty sums", build_matmul, 3, 0, 5, 0, 0),
    ACTS("matmul, no rows", build_matmul, 0, 3, 5, 0, 0),
    {"matmul, added to", build_matmul, {LS_ACT_NONE, 2, 7, 13, 17, 0, 0}, OP_NO_GRAD | OP_BF16},
    {"matmul, added to, batch", build_matmul, {LS_ACT_NONE, 2, 24, 32, 48, 3, 1}, OP_NO_GRAD | OP_BF16},
    /*                               N  C  H  W  O   k  s  pad groups */
    ACTS("conv2d", build_conv2d, 2, 3, 7, 5, 13, 3, 1, 1, 1),
    ACTS("conv2d 16 channels", build_conv2d, 2, 16, 6, 6, 16, 3, 1, 1, 1),
    ACTS("conv2d 1x1", build_conv2d, 2, 5, 4, 4, 7, 1, 1, 0, 1),
    ACTS("conv2d stride 2", build_conv2d, 1, 4, 9, 9, 6, 5, 2, 2, 1),
    ACTS("conv2d patches", build_conv2d, 2, 3, 16, 32, 24, 8, 8, 0, 1),
    ACTS("conv2d groups", build_conv2d, 1, 4, 5, 5, 6, 3, 1, 1, 2),
    ACTS("conv2d empty batch", build_conv2d, 0, 3, 7, 5, 4, 3, 1, 1, 1),

    SINGLE("add", LS_PW_ADD),
    SINGLE("sub", LS_PW_SUB),
    SINGLE("mul", LS_PW_MUL),
    SINGLE("div", LS_PW_DIV),
    SINGLE("maximum", LS_PW_MAX),
    SINGLE("minimum", LS_PW_MIN),
    SINGLE("affine", LS_PW_AFFINE),
    SINGLE("relu", LS_PW_RELU),
    SINGLE("relu_grad", LS_PW_RELU_GRAD),
    SINGLE("leaky_relu", LS_PW_LEAKY),
    SINGLE("leaky_relu_grad", LS_PW_LEAKY_GRAD),
    SINGLE("gelu", LS_PW_GELU),
    SINGLE("gelu_grad", LS_PW_GELU_GRAD),
    SINGLE("tanh", LS_PW_TANH),
    SINGLE("tanh_grad", LS_PW_TANH_GRAD),
    SINGLE("sigmoid", LS_PW_SIGMOID),
    SINGLE("sigmoid_grad", LS_PW_SIGMOID_GRAD),
    SINGLE("exp", LS_PW_EXP),
    SINGLE("log", LS_PW_LOG),
    SINGLE("sqrt", LS_PW_SQRT),
    SINGLE("rsqrt", LS_PW_RSQRT),
    SINGLE("square", LS_PW_SQUARE),
    SINGLE("abs", LS_PW_ABS),
    SINGLE("sign", LS_PW_SIGN),
    SINGLE("softplus", LS_PW_SOFTPLUS),
    SINGLE("copy", LS_PW_COPY),
    {"chain of four", build_residual, {2, 7, 13}, OP_NO_GRAD | OP_BF16},
    {"chain of four, feature maps", build_residual, {4, 2, 16, 5, 3}, OP_NO_GRAD},
    {"chain of four, many", build_residual, {1, 5003}, OP_NO_GRAD},
    {"chain of four, one", build_residual, {1, 1}, OP_NO_GRAD},
    {"chain of four, scalars", build_residual, {0}, OP_NO_GRAD},
    {"chain of four, none", build_residual, {2, 0, 3}, OP_NO_GRAD},
    {"chain of four, factor of rank 2", build_residual, {2, 3, 5, 0, 0, 0, 0, 1}, OP_NO_GRAD},
    {"chain, scalars first", build_scalars_first, {3, 7}, OP_NO_GRAD},
    {"chain, scalars first, one", build_scalars_first, {1, 1}, OP_NO_GRAD},
    {"longest chain", build_longest, {37}, OP_NO_GRAD},

    {"convert", build_convert, {1, 7, 64, 5003, 12288}, OP_NO_GRAD | OP_BF16},
    {"convert one", build_convert, {37}, OP_NO_GRAD | OP_BF16},

    {"reorder", build_reorder, {2, 5, 3, 7}, OP_NO_GRAD | OP_BF16},
    {"reorder 16 channels", build_reorder, {2, 16, 3, 7}, OP_NO_GRAD},
    {"reorder none", build_reorder, {0, 16, 3, 7}, OP_NO_GRAD},
};

OP_CASE_LIST(fused, cases);
