/* Cases of max pools behind batch norms, as fusion makes them: the gradient takes what the forward pass
 * leaves.
 */
#include "op_test.h"

/* TOP also stands for the left side and BOTTOM for the right; with TIES elements are 0, 1 or 2. */
enum { N, C, H, W, KERNEL, STRIDE, TOP, BOTTOM, ACT, TIES, SUMS, TRACKS, NO_GAMMA };

static ls_norm_pool_attr attr(const int64_t *p)
{
    const int k = (int)p[KERNEL], s = (int)p[STRIDE], a = (int)p[TOP], b = (int)p[BOTTOM];

    return (ls_norm_pool_attr){.norm = {.eps = 1e-5,
                                        .momentum = 0.1,
                                        .unbiased_running = true,
                                        .act = (ls_act)p[ACT],
                                        .slope = 0.25},
                               .pool = {.kernel = {k, k}, .stride = {s, s}, .pad = {a, a, b, b}}};
}

static void advance(ls_value variable, ls_value next)
{
    ls_graph *g = variable.g;

    if (ls_value_ok(variable)) ls_graph_advance(g, ls_graph_value(g, variable.id)->var, next);
}

/* dx of one element is 0, the difference of two terms of gamma * dy / sqrt(eps), which are hundreds: beside
 * something as large rounding errors have something to be relative to. */
static ls_value beside(ls_value dx, ls_value x)
{
    return ls_add(dx, ls_scale(x, 1000));
}

static void build(op_test *t, const int64_t *p)
{
    const ls_shape shape = LS_SHAPE(p[N], p[C], p[H], p[W]), stat = LS_SHAPE(p[C]);
    const int n = p[TRACKS] ? 5 : 3;
    ls_norm_pool_attr a = attr(p);
    ls_value in[5], from[9], y, d;

    in[0] = p[TIES] ? ls_cast(op_index(t, 3, shape), op_dtype(t)) : op_fixed(t, OP_NORMAL, shape);
    in[1] = ls_scale(op_fixed_wide(t, OP_NONZERO, stat), p[NO_GAMMA] ? 0 : 1); /* of both signs */
    in[2] = op_fixed_wide(t, OP_NORMAL, stat);
    in[3] = op_state_wide(t, OP_NORMAL, stat);
    in[4] = op_state_wide(t, OP_POSITIVE, stat);
    op_length(t, p[N] * p[H] * p[W]);
    y = ls_graph_add(op_graph(t), &ls_op_batch_norm_pool, n, in, &a);
    op_out(t, y);
    for (int k = 1; k < n + 2; k++) op_out_fixed(t, ls_graph_out(y, k));
    if (p[TRACKS])
        for (int k = 3; k < 5; k++) advance(in[k], ls_graph_out(y, k));
    from[0] = op_fixed(t, OP_NORMAL, ls_value_shape(y));
    for (int i = 0; i < 3; i++) from[1 + i] = in[i];
    for (int i = 0; i < 2; i++) from[4 + i] = ls_graph_out(y, 1 + i);
    for (int i = 0; i < 2; i++) from[6 + i] = ls_graph_out(y, n + i);
    from[8] = op_fixed(t, OP_NORMAL, ls_value_shape(y));
    a.norm.sums = p[SUMS] != 0;
    a.pool.in[0] = p[H];
    a.pool.in[1] = p[W];
    d = ls_graph_add(op_graph(t), &ls_op_batch_norm_pool_grad, 8 + a.norm.sums, from, &a);
    op_out(t, p[N] * p[H] * p[W] == 1 ? beside(d, in[0]) : d);
    for (int k = 1; k < 3; k++) op_out(t, ls_graph_out(d, k));
}

enum { NONE = LS_ACT_NONE, RELU = LS_ACT_RELU, LEAKY = LS_ACT_LEAKY };

/* clang-format off */
static const op_case cases[] = {
    /*                                      N   C   H   W   k  s  t  b  act ties sums tracks no gamma */
    {"of 64 channels", build,             {2, 64, 12, 10, 3, 2, 1, 1, RELU,  0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"of a sum", build,                   {2, 64, 12, 10, 3, 2, 1, 1, RELU,  0, 1, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"of odd maps", build,                {3, 24,  7, 11, 3, 2, 1, 1, RELU,  0, 1, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"of maps without a lower border", build, {3, 8, 7, 9, 3, 2, 1, 0, LEAKY, 0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"of primes", build,                  {3,  5, 13,  7, 3, 2, 1, 1, RELU,  0, 1, 0, 0}, OP_NO_GRAD | OP_BF16},
    {"with ties", build,                  {3, 16, 13,  8, 3, 2, 1, 1, RELU,  1, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"with ties, odd channels", build,    {3,  7, 13,  8, 3, 2, 1, 1, LEAKY, 1, 1, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"with ties, 4x4 by 3", build,        {2, 16, 13, 14, 4, 3, 2, 3, NONE,  1, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"2x2", build,                        {2, 32,  8,  6, 2, 2, 0, 0, RELU,  0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"2x2, no activation", build,         {2, 16,  9,  7, 2, 2, 0, 0, NONE,  0, 1, 0, 0}, OP_NO_GRAD | OP_BF16},
    {"3x3 by 2 without a border", build,  {2, 16,  9,  8, 3, 2, 0, 0, RELU,  0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"3x3 by 1", build,                   {2, 16,  6,  5, 3, 1, 1, 1, RELU,  0, 1, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"5x5 by 3", build,                   {1, 72, 17, 19, 5, 3, 2, 1, LEAKY, 0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"windows apart", build,              {2, 16, 11, 11, 2, 3, 1, 0, RELU,  0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"gamma 0", build,                    {2, 16, 12, 10, 3, 2, 1, 1, RELU,  0, 0, 1, 1}, OP_NO_GRAD | OP_BF16},
    {"gamma 0, odd channels", build,      {2,  3,  7,  5, 3, 2, 1, 1, NONE,  0, 0, 1, 1}, OP_NO_GRAD},
    {"many rows", build,                  {5, 64, 64, 62, 3, 2, 1, 1, RELU,  0, 1, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"many channels", build,              {2, 200, 9, 12, 3, 2, 1, 1, RELU,  0, 0, 1, 0}, OP_NO_GRAD | OP_BF16},
    {"one element", build,                {1,  1,  1,  1, 1, 1, 0, 0, RELU,  0, 0, 1, 0}, OP_NO_GRAD},
    {"one row", build,                    {3,  8,  1,  9, 3, 2, 1, 1, RELU,  0, 0, 1, 0}, OP_NO_GRAD},
    {"no samples", build,                 {0,  8,  6,  6, 3, 2, 1, 1, RELU,  0, 1, 1, 0}, OP_NO_GRAD},
};
/* clang-format on */

OP_CASE_LIST(norm_pool, cases);
