/* Cases of conv2d, its two adjoints (one of which is transposed convolution), padding, and what fusion makes
 * of them.  One list of parameters describes the geometry of conv2d for all three ops. */
#include "op_test.h"

enum { N, C, H, W, O, KH, KW, STRIDE, DILATION, PAD_A, PAD_B, GROUPS };

static ls_conv_attr attr(const int64_t *p)
{
    int s = (int)p[STRIDE], d = (int)p[DILATION], a = (int)p[PAD_A], b = (int)p[PAD_B];

    return (ls_conv_attr){.stride = {s, s},
                          .dilation = {d, d},
                          .pad = {a, a, b, b},
                          .groups = (int)p[GROUPS],
                          .in = {p[N], p[C], p[H], p[W]},
                          .kernel = {(int)p[KH], (int)p[KW]}};
}

static int64_t out_size(const int64_t *p, int64_t in, int64_t kernel)
{
    return (in + p[PAD_A] + p[PAD_B] - (kernel - 1) * p[DILATION] - 1) / p[STRIDE] + 1;
}

static ls_shape x_shape(const int64_t *p)
{
    return LS_SHAPE(p[N], p[C], p[H], p[W]);
}

static ls_shape w_shape(const int64_t *p)
{
    return LS_SHAPE(p[O], p[C] / p[GROUPS], p[KH], p[KW]);
}

static ls_shape y_shape(const int64_t *p)
{
    return LS_SHAPE(p[N], p[O], out_size(p, p[H], p[KH]), out_size(p, p[W], p[KW]));
}

/* Terms in one element of y, dx or dw, whichever has most; gradients pass through two of them. */
static void set_length(op_test *t, const int64_t *p)
{
    int64_t channels = (p[C] > p[O] ? p[C] : p[O]) / p[GROUPS];

    op_length(t, channels * p[KH] * p[KW] + p[N] * p[H] * p[W]);
}

static void build(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, x_shape(p)), w = op_in(t, OP_NORMAL, w_shape(p));

    set_length(t, p);
    op_out(t, ls_conv2d(x, w, attr(p)));
}

static void build_dx(op_test *t, const int64_t *p)
{
    ls_value dy = op_in(t, OP_NORMAL, y_shape(p)), w = op_in(t, OP_NORMAL, w_shape(p));

    set_length(t, p);
    op_out(t, ls_conv2d_dx(dy, w, attr(p)));
}

static void build_dw(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, x_shape(p)), dy = op_in(t, OP_NORMAL, y_shape(p));

    set_length(t, p);
    op_out(t, ls_conv2d_dw(x, dy, attr(p)));
}

/* Height and width that have nothing in common, in all three ops. */
static void build_uneven(op_test *t, const int64_t *p)
{
    ls_conv_attr a = {.stride = {2, 1}, .dilation = {1, 2}, .pad = {0, 1, 2, 3}, .groups = 1};
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(2, p[C], 9, 6)),
             w = op_in(t, OP_NORMAL, LS_SHAPE(p[O], p[C], 3, 4));

    op_length(t, 12 * p[C] + 2 * 9 * 6);
    op_out(t, ls_conv2d(x, w, a));
}

static void build_reflect(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, x_shape(p)), w = op_in(t, OP_NORMAL, w_shape(p));
    int64_t pad = p[KH] / 2;

    set_length(t, p);
    op_out(t, ls_conv2d(ls_pad2d(x, LS_PAD_REFLECT, pad, pad, pad, pad), w, attr(p)));
}

/* -- made by fusion: a bias and every activation
 * -------------------------------------------------------------- */

static void add_fused(op_test *t, const ls_op *op, ls_value a, ls_value b, int64_t channels, const int64_t *p)
{
    /* Sums of about 1, where tanh and gelu bend: a saturated result would be compared more strictly than the
     * sum it came from allows. */
    ls_value in[] = {a, ls_scale(b, 0.0625), op_in(t, OP_NORMAL, LS_SHAPE(channels))};

    set_length(t, p);
    for (int act = LS_ACT_NONE; act <= LS_ACT_GELU; act++) {
        ls_conv_attr c = attr(p);
        c.act = (ls_act)act;
        c.slope = 0.25;
        op_out(t, ls_graph_add(op_graph(t), op, 3, in, &c));
    }
}

static void build_fused(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, x_shape(p)), w = op_in(t, OP_NORMAL, w_shape(p));

    add_fused(t, &ls_op_conv2d, x, w, p[O], p);
}

static void build_fused_dx(op_test *t, const int64_t *p)
{
    ls_value dy = op_in(t, OP_NORMAL, y_shape(p)), w = op_in(t, OP_NORMAL, w_shape(p));

    add_fused(t, &ls_op_conv2d_dx, dy, w, p[C], p);
}

/* dy, y -> dz, dbias along AXIS of a tensor of RANK dimensions. */
enum { RANK, AXIS, D0, D1, D2, D3 };

static void build_bias_act_grad(op_test *t, const int64_t *p)
{
    ls_shape shape = ls_shape_make((int)p[RANK], p + D0);
    /* In (-1, 1) except for a few, away from zero where relu and leaky have their kink. */
    ls_value in[] = {op_in(t, OP_NORMAL, shape), ls_scale(op_in(t, OP_NONZERO, shape), 0.25)};

    op_length(t, ls_shape_count(shape));
    for (int act = LS_ACT_NONE; act <= LS_ACT_TANH; act++) {
        ls_bias_act_attr a = {(ls_act)act, 0.25, (int)p[AXIS]};
        ls_value dz = ls_graph_add(op_graph(t), &ls_op_bias_act_grad, 2, in, &a);
        op_out(t, dz);
        op_out(t, ls_graph_out(dz, 1));
    }
}

/* -- padding
 * ---------------------------------------------------------------------------------------------------- */

enum { MODE, TOP, LEFT, BOTTOM, RIGHT, PAD_RANK, PAD_D0 };

static void build_pad(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, ls_shape_make((int)p[PAD_RANK], p + PAD_D0));

    op_length(t, 4);
    op_out(t, ls_pad2d(x, (ls_pad_mode)p[MODE], p[TOP], p[LEFT], p[BOTTOM], p[RIGHT]));
}

static void build_pad_adjoint(op_test *t, const int64_t *p)
{
    ls_shape padded = ls_shape_make((int)p[PAD_RANK], p + PAD_D0);
    ls_value dy;

    padded.dim[padded.rank - 2] += p[TOP] + p[BOTTOM];
    padded.dim[padded.rank - 1] += p[LEFT] + p[RIGHT];
    dy = op_in(t, OP_NORMAL, padded);
    op_length(t, 4);
    op_out(t, ls_pad2d_adjoint(dy, (ls_pad_mode)p[MODE], p[TOP], p[LEFT], p[BOTTOM], p[RIGHT]));
}

#define ALL_THREE(name, flags, ...)                                                                          \
    {name, build, {__VA_ARGS__}, flags}, {name ", transposed", build_dx, {__VA_ARGS__}, flags},              \
    {                                                                                                        \
        name ", weights", build_dw, {__VA_ARGS__}, flags                                                     \
    }

/* clang-format off */
static const op_case cases[] = {
    /*                                                             N  C   H   W   O   KH KW s  d  pa pb g */
    ALL_THREE("one", OP_TWICE,                                     1, 1,  1,  1,  1,  1, 1, 1, 1, 0, 0, 1),
    ALL_THREE("kernel of one", OP_TWICE,                           2, 3,  4,  5,  7,  1, 1, 1, 1, 0, 0, 1),
    ALL_THREE("kernel of one, stride 2", 0,                        2, 3,  5,  4,  2,  1, 1, 2, 1, 0, 0, 1),
    ALL_THREE("odd", OP_TWICE | OP_BF16,                           3, 5,  7,  11, 13, 3, 3, 1, 1, 1, 1, 1),
    ALL_THREE("same padding of TensorFlow", OP_TWICE | OP_BF16,    2, 3,  8,  8,  4,  5, 5, 2, 1, 1, 2, 1),
    ALL_THREE("4x4 stride 2", 0,                                   1, 3,  8,  8,  5,  4, 4, 2, 1, 1, 1, 1),
    ALL_THREE("rows left over", OP_TWICE,                          1, 2,  8,  7,  3,  3, 3, 2, 1, 0, 0, 1),
    ALL_THREE("stride above kernel", 0,                            2, 2,  9,  10, 3,  2, 2, 3, 1, 0, 0, 1),
    ALL_THREE("dilated", 0,                                        1, 2,  9,  9,  2,  3, 3, 1, 2, 2, 2, 1),
    ALL_THREE("dilated, strided", 0,                               1, 2,  11, 10, 2,  3, 3, 2, 3, 3, 2, 1),
    ALL_THREE("groups", OP_TWICE,                                  2, 6,  5,  5,  4,  3, 3, 1, 1, 1, 1, 2),
    ALL_THREE("one channel per group", 0,                          2, 5,  5,  5,  5,  3, 3, 2, 1, 1, 1, 5),
    ALL_THREE("one dimension", 0,                                  2, 3,  1,  19, 4,  1, 5, 1, 1, 0, 0, 1),
    ALL_THREE("kernel as large as the image", 0,                   2, 3,  4,  4,  5,  4, 4, 1, 1, 0, 0, 1),
    ALL_THREE("padding above kernel", 0,                           1, 2,  3,  3,  2,  2, 2, 1, 1, 3, 2, 1),
    ALL_THREE("16 channels", OP_BF16,                              1, 16, 6,  6,  16, 3, 3, 1, 1, 1, 1, 1),
    ALL_THREE("32 channels, stride 2", 0,                          1, 32, 6,  6,  16, 3, 3, 2, 1, 1, 1, 1),
    ALL_THREE("same padding of TensorFlow, 16 channels", OP_BF16,  2, 16, 16, 16, 32, 5, 5, 2, 1, 1, 2, 1),
    ALL_THREE("16 channels to 1", 0,                               1, 16, 7,  7,  1,  5, 5, 2, 1, 1, 2, 1),
    ALL_THREE("3 channels to 16", 0,                               1, 3,  9,  9,  16, 7, 7, 2, 1, 3, 3, 1),
    ALL_THREE("patches", OP_BF16,                                  2, 3,  16, 24, 24, 8, 8, 8, 1, 0, 0, 1),
    ALL_THREE("empty batch", 0,                                    0, 3,  5,  5,  4,  3, 3, 1, 1, 1, 1, 1),
    ALL_THREE("no output channels", 0,                             2, 3,  5,  5,  0,  3, 3, 1, 1, 1, 1, 1),
    {"height and width differ", build_uneven,                     {0, 3,  0,  0,  4}, OP_TWICE},
    {"height and width differ, 16 channels", build_uneven,        {0, 16, 0,  0,  16}, 0},
    {"reflection", build_reflect,                                 {1, 3,  5,  4,  2,  3, 3, 1, 1, 0, 0, 1}, OP_TWICE},
    {"reflection, 7x7", build_reflect,                            {1, 2,  8,  7,  3,  7, 7, 1, 1, 0, 0, 1}, 0},
    {"bias and activation", build_fused,                          {2, 3,  7,  5,  4,  3, 3, 1, 1, 1, 1, 1}, OP_NO_GRAD | OP_BF16},
    {"bias and activation, 16 channels", build_fused,             {2, 16, 6,  6,  32, 3, 3, 1, 1, 1, 1, 1}, OP_NO_GRAD},
    {"bias and activation, groups", build_fused,                  {2, 4,  6,  6,  6,  3, 3, 2, 1, 1, 1, 2}, OP_NO_GRAD},
    {"bias and activation, empty batch", build_fused,             {0, 3,  6,  6,  5,  3, 3, 1, 1, 1, 1, 1}, OP_NO_GRAD},
    {"bias and activation, transposed", build_fused_dx,           {2, 3,  8,  8,  4,  5, 5, 2, 1, 1, 2, 1}, OP_NO_GRAD | OP_BF16},
    {"bias and activation, transposed, 16 channels", build_fused_dx, {1, 16, 8, 8, 32, 4, 4, 2, 1, 1, 1, 1}, OP_NO_GRAD},
    {"bias and activation, transposed, to 1", build_fused_dx,     {2, 1,  8,  8,  16, 5, 5, 2, 1, 1, 2, 1}, OP_NO_GRAD},
    {"bias and activation, transposed, groups", build_fused_dx,   {2, 4,  6,  6,  6,  3, 3, 1, 1, 1, 1, 2}, OP_NO_GRAD},

    /*                                                          rank axis dims */
    {"bias gradient, maps", build_bias_act_grad,                {4, 1,  3, 5, 7, 2}, OP_NO_GRAD | OP_BF16},
    {"bias gradient, 32 channels", build_bias_act_grad,         {4, 1,  2, 32, 5, 3}, OP_NO_GRAD},
    {"bias gradient, rows", build_bias_act_grad,                {2, -1, 11, 13}, OP_NO_GRAD},
    {"bias gradient, sequences", build_bias_act_grad,           {3, 2,  3, 5, 17}, OP_NO_GRAD},
    {"bias gradient, one", build_bias_act_grad,                 {1, 0,  1}, OP_NO_GRAD},
    {"bias gradient, empty", build_bias_act_grad,               {4, 1,  0, 3, 2, 2}, OP_NO_GRAD},

    /*                                                mode             t  l  b  r  rank dims */
    {"zeros around", build_pad,                      {LS_PAD_ZERO,    1, 2, 3, 4, 4, 2, 3, 4, 5}, OP_BF16},
    {"zeros around, matrix", build_pad,              {LS_PAD_ZERO,    0, 1, 2, 0, 2, 3, 1}, 0},
    {"zeros around nothing", build_pad,              {LS_PAD_ZERO,    1, 1, 1, 1, 3, 2, 0, 3}, 0},
    {"zeros around, 16 channels", build_pad,         {LS_PAD_ZERO,    1, 1, 1, 1, 4, 2, 16, 3, 4}, 0},
    {"reflect", build_pad,                           {LS_PAD_REFLECT, 3, 1, 2, 4, 4, 2, 3, 4, 5}, OP_BF16},
    {"reflect, 16 channels", build_pad,              {LS_PAD_REFLECT, 3, 3, 3, 3, 4, 1, 16, 4, 4}, 0},
    {"reflect, only columns", build_pad,             {LS_PAD_REFLECT, 0, 1, 0, 1, 3, 2, 1, 2}, 0},
    {"reflect, nothing", build_pad,                  {LS_PAD_REFLECT, 0, 0, 0, 0, 2, 1, 1}, 0},
    {"reflect, empty batch", build_pad,              {LS_PAD_REFLECT, 1, 1, 1, 1, 4, 0, 3, 4, 4}, 0},
    {"zeros cut off", build_pad_adjoint,             {LS_PAD_ZERO,    1, 2, 3, 4, 4, 2, 3, 4, 5}, OP_BF16},
    {"everything cut off", build_pad_adjoint,        {LS_PAD_ZERO,    1, 1, 1, 1, 3, 2, 0, 3}, 0},
    {"reflection added back", build_pad_adjoint,     {LS_PAD_REFLECT, 3, 1, 2, 4, 4, 2, 3, 4, 5}, OP_BF16},
    {"reflection added back, 16 channels", build_pad_adjoint, {LS_PAD_REFLECT, 3, 3, 3, 3, 4, 1, 16, 4, 4}, 0},
};
/* clang-format on */

OP_CASE_LIST(conv, cases);
