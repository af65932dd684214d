/* Cases of pooling and of nearest-neighbour sampling. */
#include "op_test.h"

enum { N, C, H, W, KH, KW, STRIDE, PAD_A, PAD_B, COUNT_PAD };

static ls_pool_attr attr(const int64_t *p)
{
    int s = (int)p[STRIDE], a = (int)p[PAD_A], b = (int)p[PAD_B];

    return (ls_pool_attr){.kernel = {(int)p[KH], (int)p[KW]},
                          .stride = {s, s},
                          .pad = {a, a, b, b},
                          .count_pad = p[COUNT_PAD] != 0,
                          .in = {p[H], p[W]}};
}

static ls_shape x_shape(const int64_t *p)
{
    return LS_SHAPE(p[N], p[C], p[H], p[W]);
}

static ls_shape y_shape(const int64_t *p)
{
    int64_t pads = p[PAD_A] + p[PAD_B];

    return LS_SHAPE(p[N], p[C], (p[H] + pads - p[KH]) / p[STRIDE] + 1, (p[W] + pads - p[KW]) / p[STRIDE] + 1);
}

static void add_max(op_test *t, ls_value x, const int64_t *p)
{
    ls_value y = ls_maxpool2d(x, attr(p));

    op_length(t, p[KH] * p[KW]); /* so many windows may share an element, and add up in its gradient */
    op_out(t, y);
    op_out_fixed(t, ls_graph_out(y, 1));
}

static void build_max(op_test *t, const int64_t *p)
{
    add_max(t, op_in(t, OP_DISTINCT, x_shape(p)), p);
}

/* Only three different values: nearly every window holds its maximum more than once. */
static void build_max_ties(op_test *t, const int64_t *p)
{
    add_max(t, ls_cast(op_index(t, 3, x_shape(p)), op_dtype(t)), p);
}

/* Half of the elements are NaN. */
static void build_max_nan(op_test *t, const int64_t *p)
{
    add_max(t, ls_ln(op_in(t, OP_NONZERO, x_shape(p))), p);
}

/* Negative elements only: a zero from the padding or from the start of a search would show. */
static void build_max_negative(op_test *t, const int64_t *p)
{
    add_max(t, ls_affine(op_in(t, OP_DISTINCT, x_shape(p)), 1, -100), p);
}

/* The fused form: relu of the maximum, and its gradient with the mask. */
static void build_max_relu(op_test *t, const int64_t *p)
{
    ls_pool_attr a = attr(p);
    ls_value y, in[3];

    a.relu = true;
    y = ls_maxpool2d(op_in(t, OP_DISTINCT, x_shape(p)), a);
    in[0] = op_in(t, OP_NORMAL, y_shape(p));
    in[1] = ls_graph_out(y, 1);
    in[2] = y;
    op_length(t, p[KH] * p[KW]);
    op_out(t, y);
    op_out_fixed(t, in[1]);
    op_out(t, ls_graph_add(op_graph(t), &ls_op_maxpool2d_grad, 3, in, &a));
}

enum { CONV_O = COUNT_PAD, CONV_K, CONV_STRIDE, CONV_PAD };

/* A convolution's weights through the pool: x (N, C, H, W), CONV_O filters of CONV_K x CONV_K + 1. */
static void build_pooled_weights(op_test *t, const int64_t *p)
{
    const int k = (int)p[CONV_K], s = (int)p[CONV_STRIDE], pad = (int)p[CONV_PAD];
    const ls_conv_attr conv = {.stride = {s, s},
                               .dilation = {1, 1},
                               .pad = {pad, pad, pad + 1, pad},
                               .groups = 1,
                               .in = {p[N], p[C], p[H], p[W]},
                               .kernel = {k, k + 1}};
    const int64_t h = (p[H] + 2 * pad + 1 - k) / s + 1, w = (p[W] + 2 * pad - k - 1) / s + 1;
    const int64_t pooled[] = {p[N], p[CONV_O], h, w, p[KH], p[KW], p[STRIDE], p[PAD_A], p[PAD_B], 0};
    ls_conv_pool_attr a = {conv, attr(pooled)};
    ls_value y = ls_maxpool2d(op_in(t, OP_DISTINCT, x_shape(pooled)), a.pool);
    ls_value x = op_in(t, OP_NORMAL, x_shape(p)), dy = op_in(t, OP_NORMAL, y_shape(pooled));

    op_length(t, p[N] * ls_value_shape(dy).dim[2] * ls_value_shape(dy).dim[3]);
    op_out(t, ls_conv2d_dw_pooled(x, dy, ls_graph_out(y, 1), a));
}

static void build_avg(op_test *t, const int64_t *p)
{
    op_length(t, p[KH] * p[KW]);
    op_out(t, ls_avgpool2d(op_in(t, OP_NORMAL, x_shape(p)), attr(p)));
}

static void build_avg_grad(op_test *t, const int64_t *p)
{
    op_length(t, p[KH] * p[KW]);
    op_out(t, ls_avgpool2d_grad(op_in(t, OP_NORMAL, y_shape(p)), attr(p)));
}

enum { FACTOR = KH };

static void build_up(op_test *t, const int64_t *p)
{
    op_length(t, p[FACTOR] * p[FACTOR]);
    op_out(t, ls_upsample2d(op_in(t, OP_NORMAL, x_shape(p)), (int)p[FACTOR]));
}

static void build_up_grad(op_test *t, const int64_t *p)
{
    ls_shape large = LS_SHAPE(p[N], p[C], p[H] * p[FACTOR], p[W] * p[FACTOR]);

    op_length(t, p[FACTOR] * p[FACTOR]);
    op_out(t, ls_upsample2d_grad(op_in(t, OP_NORMAL, large), (int)p[FACTOR]));
}

#define AVG(name, flags, ...)                                                                                \
    {"average, " name, build_avg, {__VA_ARGS__}, flags},                                                     \
    {                                                                                                        \
        "average gradient, " name, build_avg_grad, {__VA_ARGS__}, flags                                      \
    }
#define UP(name, flags, ...)                                                                                 \
    {"upsample, " name, build_up, {__VA_ARGS__}, flags},                                                     \
    {                                                                                                        \
        "upsample gradient, " name, build_up_grad, {__VA_ARGS__}, flags                                      \
    }

/* clang-format off */
static const op_case cases[] = {
    /* Gradient cases of max hold up to 512 elements: so many distinct values exist in bf16. */
    /*                                                      N  C   H   W   KH KW s  pa pb count_pad */
    {"max, one", build_max,                                {1, 1,  1,  1,  1, 1, 1, 0, 0}, 0},
    {"max, 2x2", build_max,                                {2, 3,  8,  6,  2, 2, 2, 0, 0}, OP_BF16},
    {"max, rows left over", build_max,                     {2, 3,  7,  5,  2, 2, 2, 0, 0}, 0},
    {"max, overlapping, padded", build_max,                {2, 3,  7,  7,  3, 3, 2, 1, 1}, OP_BF16},
    {"max, padded on one side", build_max,                 {1, 3,  6,  6,  3, 3, 2, 0, 1}, 0},
    {"max, stride 1", build_max,                           {1, 2,  5,  7,  3, 3, 1, 1, 1}, 0},
    {"max, stride above window", build_max,                {1, 2,  9,  8,  2, 2, 3, 0, 0}, 0},
    {"max, uneven window", build_max,                      {2, 3,  5,  11, 1, 4, 2, 0, 0}, 0},
    {"max, whole image", build_max,                        {2, 5,  4,  6,  4, 6, 1, 0, 0}, 0},
    {"max, largest window", build_max,                     {1, 1,  15, 17, 15, 17, 1, 0, 0}, 0},
    {"max, 16 channels", build_max,                        {1, 16, 6,  5,  2, 2, 2, 0, 0}, OP_BF16},
    {"max, 16 channels, overlapping", build_max,           {1, 16, 5,  5,  3, 3, 2, 1, 1}, 0},
    {"max, 32 channels", build_max,                        {1, 32, 4,  4,  2, 2, 2, 0, 0}, 0},
    {"max, empty batch", build_max,                        {0, 3,  4,  4,  2, 2, 2, 0, 0}, 0},
    {"max, no channels", build_max,                        {2, 0,  4,  4,  2, 2, 2, 0, 0}, 0},
    {"max, larger", build_max,                             {3, 32, 13, 12, 3, 3, 2, 1, 1}, OP_NO_GRAD},
    {"max, ties", build_max_ties,                          {2, 5,  9,  9,  3, 3, 2, 1, 1}, OP_NO_GRAD | OP_BF16},
    {"max, ties, 16 channels", build_max_ties,             {2, 16, 8,  8,  2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max, not a number", build_max_nan,                   {2, 3,  7,  7,  3, 3, 2, 1, 1}, OP_NO_GRAD},
    {"max, ties, 2x2", build_max_ties,                     {2, 5,  24, 24, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max, ties, narrow rows", build_max_ties,             {3, 5,  8,  8,  2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max, not a number, 2x2", build_max_nan,              {2, 5,  8,  24, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max, not a number, narrow rows", build_max_nan,      {3, 5,  8,  8,  2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max, not a number, 16 channels", build_max_nan,      {2, 16, 6,  6,  2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max, negative", build_max_negative,                  {2, 3,  7,  7,  3, 3, 2, 1, 1}, 0},
    {"max, negative, 16 channels", build_max_negative,     {1, 16, 4,  4,  3, 3, 2, 1, 1}, 0},
    {"max with relu", build_max_relu,                      {2, 3,  8,  8,  2, 2, 2, 0, 0}, OP_NO_GRAD | OP_BF16},
    {"max with relu, overlapping", build_max_relu,         {2, 3,  7,  7,  3, 3, 2, 1, 1}, OP_NO_GRAD},
    {"max with relu, 16 channels", build_max_relu,         {2, 16, 6,  6,  2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, 32 channels, overlapping", build_max_relu, {1, 32, 7, 7, 3, 3, 2, 1, 1}, OP_NO_GRAD},
    {"max with relu, many narrow rows", build_max_relu,    {40, 20, 8, 8, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, few narrow rows", build_max_relu,     {1, 3,  2,  8,  2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, rows longer than a vector", build_max_relu, {9, 10, 24, 24, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, two vectors in a row", build_max_relu, {2, 3, 6, 40, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, a column left over", build_max_relu,  {9, 10, 16, 25, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, rows left over", build_max_relu,      {9, 10, 19, 26, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, 16 channels, left over", build_max_relu, {9, 16, 11, 9, 2, 2, 2, 0, 0}, OP_NO_GRAD},
    {"max with relu, empty batch", build_max_relu,         {0, 3,  4,  4,  2, 2, 2, 0, 0}, OP_NO_GRAD},

    /*                                                      N  C   H   W   KH KW s  pa pb filters k s pad */
    {"pooled weights, one", build_pooled_weights,          {1, 1,  1,  2,  1, 1, 1, 0, 0, 1, 1, 1, 0}, OP_NO_GRAD},
    {"pooled weights, 5x6", build_pooled_weights,          {3, 1,  12, 13, 2, 2, 2, 0, 0, 5, 5, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"pooled weights, padded", build_pooled_weights,       {2, 3,  7,  9,  2, 2, 2, 0, 0, 3, 3, 1, 2}, OP_NO_GRAD},
    {"pooled weights, padded pool", build_pooled_weights,  {2, 2,  8,  8,  2, 3, 3, 1, 1, 2, 2, 1, 1}, OP_NO_GRAD},
    {"pooled weights, overlapping", build_pooled_weights,  {2, 2,  9,  8,  3, 3, 2, 1, 1, 2, 4, 1, 0}, OP_NO_GRAD},
    {"pooled weights, rows left over", build_pooled_weights, {2, 1, 11, 10, 2, 2, 2, 0, 0, 4, 7, 1, 1}, OP_NO_GRAD},
    {"pooled weights, 8x9", build_pooled_weights,          {2, 1,  10, 12, 2, 2, 2, 0, 0, 3, 8, 1, 0}, OP_NO_GRAD},
    {"pooled weights, stride 2", build_pooled_weights,     {2, 3,  11, 11, 2, 2, 2, 0, 0, 2, 3, 2, 1}, OP_NO_GRAD},
    {"pooled weights, larger", build_pooled_weights,       {40, 1, 28, 28, 2, 2, 2, 0, 0, 10, 5, 1, 0}, OP_NO_GRAD},
    {"pooled weights, empty batch", build_pooled_weights,  {0, 1,  8,  8,  2, 2, 2, 0, 0, 3, 3, 1, 0}, OP_NO_GRAD},

    AVG("one", 0,                                           1, 1,  1,  1,  1, 1, 1, 0, 0, 1),
    AVG("2x2", OP_BF16,                                     2, 3,  6,  8,  2, 2, 2, 0, 0, 1),
    AVG("rows left over", 0,                                2, 3,  7,  5,  2, 2, 2, 0, 0, 1),
    AVG("padding counts", 0,                                2, 3,  7,  7,  3, 3, 2, 1, 1, 1),
    AVG("padding does not count", OP_BF16,                  2, 3,  7,  7,  3, 3, 2, 1, 1, 0),
    AVG("padded on one side", 0,                            1, 3,  6,  6,  3, 3, 2, 0, 1, 0),
    AVG("stride above window", 0,                           1, 2,  9,  8,  2, 2, 3, 0, 0, 1),
    AVG("uneven window", 0,                                 2, 3,  5,  11, 1, 4, 2, 0, 0, 1),
    AVG("whole image", OP_BF16,                             3, 5,  7,  7,  7, 7, 1, 0, 0, 1),
    AVG("whole image, 32 channels", 0,                      2, 32, 4,  4,  4, 4, 1, 0, 0, 1),
    AVG("16 channels", 0,                                   1, 16, 7,  5,  3, 3, 2, 1, 1, 1),
    AVG("16 channels, padding does not count", 0,           1, 16, 7,  5,  3, 3, 2, 1, 1, 0),
    AVG("empty batch", 0,                                   0, 3,  4,  4,  2, 2, 2, 0, 0, 1),

    /*                                                      N  C   H   W   factor */
    UP("one", 0,                                            1, 1,  1,  1,  1),
    UP("twice", OP_BF16,                                    2, 3,  5,  7,  2),
    UP("thrice", 0,                                         1, 5,  3,  2,  3),
    UP("unchanged", 0,                                      1, 2,  3,  4,  1),
    UP("16 channels", 0,                                    1, 16, 4,  3,  2),
    UP("32 channels", 0,                                    2, 32, 3,  3,  2),
    UP("empty batch", 0,                                    0, 3,  4,  4,  2),
};
/* clang-format on */

OP_CASE_LIST(pool, cases);
