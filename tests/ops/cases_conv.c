/* Cases of conv2d and its two gradients. */
#include "op_test.h"

enum { N, C, H, W, O, KH, KW, STRIDE, DILATION, PAD_A, PAD_B, GROUPS };

static ls_conv_attr attr(const int64_t *p)
{
    int s = (int)p[STRIDE], d = (int)p[DILATION], a = (int)p[PAD_A], b = (int)p[PAD_B];

    return (ls_conv_attr){
        .stride = {s, s}, .dilation = {d, d}, .pad = {a, a, b, b}, .groups = (int)p[GROUPS]};
}

static void build(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[N], p[C], p[H], p[W]));
    ls_value w = op_in(t, OP_NORMAL, LS_SHAPE(p[O], p[C] / p[GROUPS], p[KH], p[KW]));

    op_length(t, p[C] / p[GROUPS] * p[KH] * p[KW] + p[N] * p[H] * p[W]);
    op_out(t, ls_conv2d(x, w, attr(p)));
}

/*                     N  C   H   W  O  KH KW s  d  pa pb g */
static const op_case cases[] = {
    {"one", build, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1}, OP_TWICE},
    {"odd", build, {3, 5, 7, 11, 13, 3, 3, 1, 1, 1, 1, 1}, OP_TWICE | OP_BF16},
    {"same padding of TensorFlow", build, {2, 3, 8, 8, 4, 5, 5, 2, 1, 1, 2, 1}, OP_TWICE},
    {"dilated", build, {1, 2, 9, 9, 2, 3, 3, 1, 2, 2, 2, 1}, 0},
    {"groups", build, {2, 6, 5, 5, 4, 3, 3, 1, 1, 1, 1, 2}, OP_TWICE},
    {"one dimension", build, {2, 3, 1, 19, 4, 1, 5, 1, 1, 0, 0, 1}, 0},
    {"empty batch", build, {0, 3, 5, 5, 4, 3, 3, 1, 1, 1, 1, 1}, 0},
};

OP_CASE_LIST(conv, cases);
