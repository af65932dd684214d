/* Cases of element-wise ops: every function on every kind of shape, binary ones with every kind of
 * broadcasting. */
#include "op_test.h"

/* -- unary -------------------------------------------------------------------------------------------------
 */

static ls_value scale_and_shift(ls_value x)
{
    return ls_affine(x, -2.5, 0.75);
}

static ls_value leaky(ls_value x)
{
    return ls_leaky_relu(x, 0.25);
}

static const struct {
    ls_value (*fn)(ls_value x);
    op_range range;
} unary[] = {
    {scale_and_shift, OP_NORMAL}, {ls_relu, OP_NONZERO},   {leaky, OP_NONZERO},      {ls_gelu, OP_NORMAL},
    {ls_tanh, OP_NORMAL},         {ls_sigmoid, OP_NORMAL}, {ls_exp, OP_NORMAL},      {ls_ln, OP_POSITIVE},
    {ls_sqrt, OP_POSITIVE},       {ls_rsqrt, OP_POSITIVE}, {ls_square, OP_NORMAL},   {ls_abs, OP_NONZERO},
    {ls_sign, OP_NONZERO},        {ls_copy, OP_NORMAL},    {ls_softplus, OP_NORMAL},
};
enum { AFFINE, RELU, LEAKY, GELU, TANH, SIGMOID, EXP, LOG, SQRT, RSQRT, SQUARE, ABS, SIGN, COPY, SOFTPLUS };

/* p: function, rank, dimensions */
static void build_unary(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, unary[p[0]].range, ls_shape_make((int)p[1], p + 2));

    op_out(t, unary[p[0]].fn(x));
}

/* 15, 16, 17: around the width of a vector; 1031: many vectors and a rest, beyond what one thread takes
 * first. */
#define UNARY(name, f)                                                                                       \
    {name " of a scalar", build_unary, {f, 0}, OP_TWICE},                                                    \
        {name " of one", build_unary, {f, 1, 1}, OP_TWICE | OP_BF16},                                        \
        {name " of none", build_unary, {f, 2, 0, 3}, OP_TWICE},                                              \
        {name " of 15", build_unary, {f, 2, 3, 5}, OP_TWICE}, {name " of 16", build_unary, {f, 1, 16}, 0},   \
        {name " of 17", build_unary, {f, 1, 17}, 0},                                                         \
        {name " of 1031", build_unary, {f, 1, 1031}, OP_TWICE | OP_BF16},                                    \
    {                                                                                                        \
        name " of rank 6", build_unary, {f, 6, 2, 1, 3, 2, 1, 5}, OP_TWICE                                   \
    }

/* -- binary ------------------------------------------------------------------------------------------------
 */

static ls_value leaky_grad(ls_value dy, ls_value y)
{
    return ls_leaky_relu_grad(dy, y, 0.25);
}

/* The two are at least half a grid step apart, so that finite differences never cross the kink. */
static ls_value maximum_apart(ls_value a, ls_value b)
{
    return ls_maximum(a, ls_affine(b, 1, 0.03125));
}

static ls_value minimum_apart(ls_value a, ls_value b)
{
    return ls_minimum(a, ls_affine(b, 1, 0.03125));
}

static const struct {
    ls_value (*fn)(ls_value a, ls_value b);
    op_range a, b;
} binary[] = {
    {ls_add, OP_NORMAL, OP_NORMAL},
    {ls_sub, OP_NORMAL, OP_NORMAL},
    {ls_mul, OP_NORMAL, OP_NORMAL},
    {ls_div, OP_NORMAL, OP_POSITIVE},
    {maximum_apart, OP_DISTINCT, OP_DISTINCT},
    {minimum_apart, OP_DISTINCT, OP_DISTINCT},
    {ls_relu_grad, OP_NORMAL, OP_NONZERO},
    {leaky_grad, OP_NORMAL, OP_NONZERO},
    {ls_tanh_grad, OP_NORMAL, OP_NORMAL},
    {ls_sigmoid_grad, OP_NORMAL, OP_NORMAL},
    {ls_gelu_grad, OP_NORMAL, OP_NORMAL},
};
enum { ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, RELU_GRAD, LEAKY_GRAD, TANH_GRAD, SIGMOID_GRAD, GELU_GRAD };

static const ls_shape pairs[][2] = {
    {{0, {0}}, {0, {0}}},
    {{1, {1}}, {1, {1}}},
    {{2, {7, 13}}, {2, {7, 13}}},
    {{1, {521}}, {1, {521}}},
    {{2, {5, 3}}, {0, {0}}},
    {{0, {0}}, {2, {5, 3}}},
    {{2, {4, 17}}, {1, {17}}},
    {{1, {17}}, {2, {4, 17}}},
    {{2, {5, 11}}, {2, {5, 1}}},
    {{3, {3, 1, 5}}, {2, {4, 1}}},
    {{2, {2, 3}}, {4, {1, 1, 2, 3}}},
    {{4, {2, 3, 5, 7}}, {3, {3, 1, 1}}},
    {{6, {2, 1, 3, 1, 2, 1}}, {6, {1, 2, 3, 2, 1, 3}}},
    {{2, {0, 3}}, {1, {3}}},
    {{2, {2, 1}}, {2, {1, 0}}},
};

/* p: function, pair of shapes */
static void build_binary(op_test *t, const int64_t *p)
{
    ls_value a = op_in(t, binary[p[0]].a, pairs[p[1]][0]);
    ls_value b = op_in(t, binary[p[0]].b, pairs[p[1]][1]);

    op_length(t, ls_shape_count(pairs[p[1]][0]) + ls_shape_count(pairs[p[1]][1]));
    op_out(t, binary[p[0]].fn(a, b));
}

/* One operand twice: both gradients arrive at the same value. */
static void build_with_itself(op_test *t, const int64_t *p)
{
    ls_value a = op_in(t, binary[p[0]].b, LS_SHAPE(3, 5));

    op_out(t, binary[p[0]].fn(a, a));
}

/* Only one operand is differentiated. */
static void build_one_sided(op_test *t, const int64_t *p)
{
    ls_value a =
        p[1] ? op_in(t, binary[p[0]].a, LS_SHAPE(3, 5)) : op_fixed(t, binary[p[0]].a, LS_SHAPE(3, 5));
    ls_value b = p[1] ? op_fixed(t, binary[p[0]].b, LS_SHAPE(5)) : op_in(t, binary[p[0]].b, LS_SHAPE(5));

    op_length(t, 3);
    op_out(t, binary[p[0]].fn(a, b));
}

#define BINARY(name, f)                                                                                      \
    {name " of scalars", build_binary, {f, 0}, OP_TWICE}, {name " of ones", build_binary, {f, 1}, OP_TWICE}, \
        {name " of 7x13", build_binary, {f, 2}, OP_TWICE | OP_BF16},                                         \
        {name " of 521", build_binary, {f, 3}, 0}, {name " scalar right", build_binary, {f, 4}, OP_TWICE},   \
        {name " scalar left", build_binary, {f, 5}, OP_TWICE},                                               \
        {name " row right", build_binary, {f, 6}, OP_TWICE | OP_BF16},                                       \
        {name " row left", build_binary, {f, 7}, OP_TWICE},                                                  \
        {name " column", build_binary, {f, 8}, OP_TWICE},                                                    \
        {name " both grow", build_binary, {f, 9}, OP_TWICE},                                                 \
        {name " leading ones", build_binary, {f, 10}, OP_TWICE},                                             \
        {name " per channel", build_binary, {f, 11}, OP_TWICE},                                              \
        {name " rank 6", build_binary, {f, 12}, OP_TWICE}, {name " empty", build_binary, {f, 13}, OP_TWICE}, \
        {name " empty by one", build_binary, {f, 14}, OP_TWICE},                                             \
        {name " left only", build_one_sided, {f, 1}, OP_TWICE},                                              \
    {                                                                                                        \
        name " right only", build_one_sided, {f, 0}, OP_TWICE                                                \
    }

/* -- casts -------------------------------------------------------------------------------------------------
 */

/* To a wider type and back: every run passes through a cast and none loses digits that another keeps. */
static void build_cast_float(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[0], 3));
    ls_dtype wide = op_dtype(t) == LS_BF16 ? LS_F32 : LS_F64;

    op_out(t, ls_square(ls_cast(ls_square(ls_cast(x, wide)), op_dtype(t))));
}

/* Small whole numbers, which every type can hold, through all types. */
static void build_cast_chain(op_test *t, const int64_t *p)
{
    static const ls_dtype path[] = {LS_F32, LS_BF16, LS_U8, LS_F16, LS_F64, LS_I32, LS_BF16, LS_F32};
    ls_value x = op_index(t, 100, LS_SHAPE(p[0], 3));

    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) x = ls_cast(x, path[i]);
    op_out_fixed(t, ls_cast(x, LS_BOOL));
    op_out_fixed(t, ls_cast(x, LS_I32));
}

static const op_case cases[] = {
    UNARY("affine", AFFINE),
    UNARY("relu", RELU),
    UNARY("leaky_relu", LEAKY),
    UNARY("gelu", GELU),
    UNARY("tanh", TANH),
    UNARY("sigmoid", SIGMOID),
    UNARY("exp", EXP),
    UNARY("log", LOG),
    UNARY("sqrt", SQRT),
    UNARY("rsqrt", RSQRT),
    UNARY("square", SQUARE),
    UNARY("abs", ABS),
    UNARY("sign", SIGN),
    UNARY("copy", COPY),
    UNARY("softplus", SOFTPLUS),
    BINARY("add", ADD),
    BINARY("sub", SUB),
    BINARY("mul", MUL),
    BINARY("div", DIV),
    BINARY("maximum", MAXIMUM),
    BINARY("minimum", MINIMUM),
    BINARY("relu_grad", RELU_GRAD),
    BINARY("leaky_relu_grad", LEAKY_GRAD),
    BINARY("tanh_grad", TANH_GRAD),
    BINARY("sigmoid_grad", SIGMOID_GRAD),
    BINARY("gelu_grad", GELU_GRAD),
    {"add to itself", build_with_itself, {ADD}, OP_TWICE},
    {"mul with itself", build_with_itself, {MUL}, OP_TWICE},
    {"div by itself", build_with_itself, {DIV}, OP_TWICE},
    {"gelu_grad of itself", build_with_itself, {GELU_GRAD}, OP_TWICE},
    {"cast", build_cast_float, {7}, OP_TWICE | OP_BF16},
    {"cast of none", build_cast_float, {0}, OP_TWICE},
    {"cast through all types", build_cast_chain, {11}, OP_NO_GRAD},
    {"cast of none through all types", build_cast_chain, {0}, OP_NO_GRAD},
};

OP_CASE_LIST(elementwise, cases);
