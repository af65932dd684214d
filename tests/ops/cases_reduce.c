/* Cases of reductions. */
#include "op_test.h"

/* p: axes, keep, rank, dimensions; axes -1: all */
static void build_sum(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[2], p + 3);
    ls_value x = op_in(t, OP_NORMAL, s);

    op_length(t, ls_shape_count(s));
    op_out(t, ls_square(ls_reduce_sum(x, (unsigned)p[0], p[1] != 0)));
}

static void build_mean(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[2], p + 3);
    ls_value x = op_in(t, OP_NORMAL, s);

    op_length(t, ls_shape_count(s));
    op_out(t, ls_square(ls_reduce_mean(x, (unsigned)p[0], p[1] != 0)));
}

/* p: rank and dimensions of x (up to 5), then those of the result */
static void build_sum_to(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[0], p + 1);
    ls_value x = op_in(t, OP_NORMAL, s);

    op_length(t, ls_shape_count(s));
    op_out(t, ls_square(ls_sum_to(x, ls_shape_make((int)p[6], p + 7))));
}

/* p: axis, rank, dimensions */
static void build_max(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_DISTINCT, ls_shape_make((int)p[1], p + 2));
    ls_value y = ls_reduce_max(x, (int)p[0]);

    op_out(t, ls_square(y));
    op_out_fixed(t, ls_graph_out(y, 1));
}

/* p: axis of the result, its length, rank and dimensions of dy */
static void build_max_grad(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[2], p + 3);
    ls_value dy = op_in(t, OP_NORMAL, s), index = op_index(t, p[1], s);

    op_out(t, ls_square(ls_reduce_max_grad(dy, index, (int)p[0], p[1])));
}

/* p: samples, channels above, below, points: both gradients of a convolution under a maximum */
static void build_conv_max(op_test *t, const int64_t *p)
{
    const ls_shape above = LS_SHAPE(p[0], p[1], 1);
    const ls_conv_max_attr a = {p[3]};
    ls_value dy = op_in(t, OP_NORMAL, above), index = op_index(t, p[3], above);
    ls_value w = op_in(t, OP_NORMAL, LS_SHAPE(p[1], p[2], 1, 1));
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[0], p[2], 1, p[3]));

    op_length(t, p[0] + p[1]);
    op_out(t, ls_graph_add(op_graph(t), &ls_op_conv_max_dx, 3, (ls_value[]){dy, index, w}, &a));
    op_out(t, ls_graph_add(op_graph(t), &ls_op_conv_max_dw, 3, (ls_value[]){x, dy, index}, NULL));
}

static const op_case cases[] = {
    {"sum of a scalar", build_sum, {-1, 0, 0}, OP_TWICE},
    {"sum of one", build_sum, {-1, 0, 1, 1}, OP_TWICE},
    {"sum of a vector", build_sum, {-1, 0, 1, 1031}, OP_TWICE | OP_BF16},
    {"sum of all", build_sum, {-1, 0, 3, 5, 7, 11}, OP_TWICE},
    {"sum of all, kept", build_sum, {-1, 1, 3, 5, 7, 11}, OP_TWICE},
    {"sum over rows", build_sum, {1, 0, 2, 13, 17}, OP_TWICE | OP_BF16},
    {"sum over columns", build_sum, {2, 0, 2, 13, 17}, OP_TWICE | OP_BF16},
    {"sum over columns, kept", build_sum, {2, 1, 2, 13, 17}, OP_TWICE},
    {"sum over the middle", build_sum, {2, 0, 3, 3, 7, 5}, OP_TWICE},
    {"sum over all but channels", build_sum, {13, 0, 4, 3, 16, 5, 7}, OP_TWICE | OP_BF16},
    {"sum over all but odd channels", build_sum, {13, 0, 4, 3, 5, 5, 7}, OP_TWICE},
    {"sum over maps", build_sum, {12, 0, 4, 3, 5, 5, 7}, OP_TWICE},
    {"sum rank 6", build_sum, {0x2a, 1, 6, 2, 3, 1, 2, 3, 2}, OP_TWICE},
    {"sum over ones", build_sum, {5, 0, 3, 1, 4, 1}, OP_TWICE},
    {"sum over nothing", build_sum, {0, 0, 2, 3, 4}, OP_TWICE},
    {"sum of none", build_sum, {2, 0, 2, 0, 4}, OP_TWICE},
    {"sum of none to zeros", build_sum, {1, 0, 2, 0, 4}, OP_TWICE},

    {"mean of all", build_mean, {-1, 0, 2, 5, 7}, OP_TWICE | OP_BF16},
    {"mean over rows, kept", build_mean, {1, 1, 2, 5, 7}, OP_TWICE},
    {"mean over maps", build_mean, {12, 0, 4, 2, 3, 7, 5}, OP_TWICE},
    {"mean of one", build_mean, {-1, 0, 1, 1}, OP_TWICE},
    {"mean of none", build_mean, {2, 0, 2, 0, 4}, OP_TWICE},

    {"sum to itself", build_sum_to, {2, 3, 4, 0, 0, 0, 2, 3, 4}, OP_TWICE},
    {"sum to a scalar", build_sum_to, {2, 3, 4, 0, 0, 0, 0}, OP_TWICE},
    {"sum to a row", build_sum_to, {2, 3, 17, 0, 0, 0, 1, 17}, OP_TWICE},
    {"sum to a column", build_sum_to, {2, 3, 17, 0, 0, 0, 2, 3, 1}, OP_TWICE},
    {"sum to a column, one rank less", build_sum_to, {3, 2, 3, 5, 0, 0, 2, 3, 1}, OP_TWICE},
    {"sum to fewer leading ones", build_sum_to, {3, 1, 1, 5, 0, 0, 1, 5}, OP_TWICE},
    {"sum of none to a column", build_sum_to, {2, 3, 0, 0, 0, 0, 2, 3, 1}, OP_TWICE},

    {"max of one", build_max, {0, 1, 1}, OP_TWICE},
    {"max of a vector", build_max, {0, 1, 61}, OP_TWICE | OP_BF16},
    {"max over the last", build_max, {-1, 2, 5, 17}, OP_TWICE | OP_BF16},
    {"max over points", build_max, {2, 3, 2, 5, 37}, OP_TWICE},
    {"max over the first", build_max, {0, 2, 17, 5}, OP_TWICE},
    {"max over the middle", build_max, {-2, 3, 3, 7, 5}, OP_TWICE},
    {"max rank 6", build_max, {3, 6, 2, 1, 3, 4, 1, 2}, OP_TWICE},
    {"max over one", build_max, {1, 3, 4, 1, 5}, OP_TWICE},
    {"max of none", build_max, {1, 2, 0, 4}, OP_TWICE},

    {"max_grad of a scalar", build_max_grad, {0, 5, 0}, OP_TWICE},
    {"max_grad last", build_max_grad, {-1, 7, 2, 3, 5}, OP_TWICE | OP_BF16},
    {"max_grad first", build_max_grad, {0, 7, 2, 3, 5}, OP_TWICE},
    {"max_grad middle", build_max_grad, {1, 3, 2, 4, 5}, OP_TWICE},
    {"max_grad of none", build_max_grad, {1, 3, 2, 4, 0}, OP_TWICE},

    {"through a max over points", build_conv_max, {3, 300, 16, 70}, OP_NO_GRAD | OP_BF16},
    {"through a max, primes", build_conv_max, {2, 37, 5, 131}, OP_NO_GRAD | OP_BF16},
    {"through a max, all at few points", build_conv_max, {11, 64, 264, 3}, OP_NO_GRAD | OP_BF16},
    {"through a max of one", build_conv_max, {1, 1, 1, 1}, OP_NO_GRAD},
    {"through a max, no samples", build_conv_max, {0, 4, 8, 5}, OP_NO_GRAD},
};

OP_CASE_LIST(reduce, cases);
