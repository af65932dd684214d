/* Cases of ops that move elements.  Results are squared, so that a gradient at the wrong place shows and
 * second derivatives exist. */
#include "op_test.h"

/* -- reshape, broadcast_to: p: rank and dimensions of x (rank at 0, dimensions 1..5), then those of the
 * result */

static void build_reshape(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, ls_shape_make((int)p[0], p + 1));

    op_out(t, ls_square(ls_reshape(x, ls_shape_make((int)p[6], p + 7))));
}

static void build_broadcast(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, ls_shape_make((int)p[0], p + 1));

    op_length(t, ls_shape_count(ls_shape_make((int)p[6], p + 7)));
    op_out(t, ls_square(ls_broadcast_to(x, ls_shape_make((int)p[6], p + 7))));
}

/* -- transpose: p: rank, perm as digits of one number, dimensions -------------------------------------------
 */

static void perm_of(int64_t digits, int rank, int *perm)
{
    for (int i = rank - 1; i >= 0; i--, digits /= 10) perm[i] = (int)(digits % 10);
}

static void build_transpose(op_test *t, const int64_t *p)
{
    int perm[LS_MAX_RANK];
    ls_value x = op_in(t, OP_NORMAL, ls_shape_make((int)p[0], p + 2));

    perm_of(p[1], (int)p[0], perm);
    op_out(t, ls_square(ls_transpose(x, perm)));
}

/* -- slice: p: axis, start, length, rank, dimensions --------------------------------------------------------
 */

static void build_slice(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, ls_shape_make((int)p[3], p + 4));

    op_out(t, ls_square(ls_slice(x, (int)p[0], p[1], p[2])));
}

/* Overlapping slices: gradients of both arrive at the shared elements. */
static void build_two_slices(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[0], 3));

    op_out(t, ls_mul(ls_slice(x, 0, 0, p[0] - 1), ls_slice(x, 0, 1, p[0] - 1)));
}

/* -- concat: p: axis, number of parts, their sizes along the axis, and the dimensions before and after
 * ------- */

static void build_concat(op_test *t, const int64_t *p)
{
    ls_value part[5];
    int n = (int)p[1];

    for (int i = 0; i < n; i++) part[i] = op_in(t, OP_NORMAL, LS_SHAPE(p[7], p[2 + i], p[8]));
    op_out(t, ls_square(ls_concat(n, part, (int)p[0])));
}

static void build_concat_rows(op_test *t, const int64_t *p)
{
    ls_value a = op_in(t, OP_NORMAL, LS_SHAPE(p[0])), b = op_in(t, OP_NORMAL, LS_SHAPE(p[1]));

    op_out(t, ls_square(ls_concat(3, (ls_value[]){a, b, a}, 0)));
}

/* -- fill, detach, and all of them on integers
 * --------------------------------------------------------------- */

static void build_fill(op_test *t, const int64_t *p)
{
    ls_shape s = LS_SHAPE(p[0], p[1]);
    ls_value x = op_in(t, OP_NORMAL, s);

    op_out(t, ls_mul(x, ls_fill(op_graph(t), s, op_dtype(t), -1.5)));
    op_out_fixed(t, ls_fill(op_graph(t), s, LS_I32, -7));
    op_out_fixed(t, ls_fill(op_graph(t), s, LS_BOOL, 1));
    op_out_fixed(t, ls_fill(op_graph(t), LS_SHAPE_SCALAR, op_dtype(t), 0.5));
}

static void build_detach(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[0])), c = op_fixed(t, OP_NORMAL, LS_SHAPE(p[0]));

    op_out(t, ls_mul(ls_square(x), ls_detach(ls_copy(c))));
}

/* p: elements, and how many of them are seen; the vector itself is used, too, and both are one memory. */
static void build_prefix(op_test *t, const int64_t *p)
{
    const ls_value x = ls_square(op_in(t, OP_NORMAL, LS_SHAPE(p[0])));

    op_out(t, ls_square(ls_prefix(x, p[1])));
    op_out(t, ls_tanh(x));
}

static void build_integers(op_test *t, const int64_t *p)
{
    ls_value x = op_index(t, 1000, LS_SHAPE(p[0], 3)), y = ls_transpose(x, (const int[]){1, 0});

    op_out_fixed(t, y);
    op_out_fixed(t, ls_concat(2, (ls_value[]){y, ls_copy(y)}, -1));
    op_out_fixed(t, ls_slice(y, -2, 1, 2));
    op_out_fixed(t, ls_broadcast_to(ls_reshape(y, LS_SHAPE(3, 1, p[0])), LS_SHAPE(2, 3, 2, p[0])));
}

/* As on devices that the host shares memory with. */
static void transfer(op_test *t, const int64_t *p)
{
    const ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[0], p[1]));

    op_out(t, ls_graph_add(op_graph(t), p[2] != 0 ? &ls_op_to_host : &ls_op_to_device, 1, &x, NULL));
}

static const op_case cases[] = {
    {"reshape", build_reshape, {2, 6, 35, 0, 0, 0, 3, 7, 5, 6}, OP_TWICE | OP_BF16},
    {"reshape with an open dimension", build_reshape, {3, 2, 3, 5, 0, 0, 2, 5, -1}, OP_TWICE},
    {"reshape to a scalar", build_reshape, {3, 1, 1, 1, 0, 0, 0}, OP_TWICE},
    {"reshape from a scalar", build_reshape, {0, 0, 0, 0, 0, 0, 2, 1, 1}, OP_TWICE},
    {"reshape to itself", build_reshape, {1, 4, 0, 0, 0, 0, 1, 4}, OP_TWICE},
    {"reshape of none", build_reshape, {2, 0, 5, 0, 0, 0, 3, 7, 0, 2}, OP_TWICE},
    {"reshape of none with an open dimension", build_reshape, {2, 0, 5, 0, 0, 0, 2, -1, 5}, OP_TWICE},

    {"broadcast a scalar", build_broadcast, {0, 0, 0, 0, 0, 0, 2, 3, 5}, OP_TWICE | OP_BF16},
    {"broadcast rows", build_broadcast, {1, 17, 0, 0, 0, 0, 2, 3, 17}, OP_TWICE},
    {"broadcast columns", build_broadcast, {2, 3, 1, 0, 0, 0, 2, 3, 17}, OP_TWICE},
    {"broadcast in the middle", build_broadcast, {4, 2, 1, 3, 1, 0, 5, 2, 2, 5, 3, 1}, OP_TWICE},
    {"broadcast new ones only", build_broadcast, {1, 4, 0, 0, 0, 0, 3, 1, 1, 4}, OP_TWICE},
    {"broadcast to itself", build_broadcast, {1, 4, 0, 0, 0, 0, 1, 4}, OP_TWICE},
    {"broadcast to none", build_broadcast, {1, 1, 0, 0, 0, 0, 2, 3, 0}, OP_TWICE},
    {"broadcast of none", build_broadcast, {2, 1, 0, 0, 0, 0, 2, 3, 0}, OP_TWICE},

    {"transpose a matrix", build_transpose, {2, 10, 7, 13}, OP_TWICE | OP_BF16},
    {"transpose one", build_transpose, {2, 10, 1, 1}, OP_TWICE},
    {"transpose a row", build_transpose, {2, 10, 1, 17}, OP_TWICE},
    {"transpose wide", build_transpose, {2, 10, 33, 65}, 0},
    {"transpose in a batch", build_transpose, {3, 21, 5, 3, 17}, OP_TWICE},
    {"transpose heads", build_transpose, {4, 213, 2, 5, 3, 7}, OP_TWICE},
    {"transpose channels last", build_transpose, {4, 231, 2, 16, 5, 3}, OP_TWICE | OP_BF16},
    {"transpose cyclic", build_transpose, {3, 120, 2, 3, 5}, OP_TWICE},
    {"transpose rank 6", build_transpose, {6, 531420, 2, 3, 1, 2, 3, 2}, OP_TWICE},
    {"transpose identity", build_transpose, {3, 12, 2, 3, 5}, OP_TWICE},
    {"transpose none", build_transpose, {3, 210, 2, 0, 5}, OP_TWICE},
    {"transpose a vector", build_transpose, {1, 0, 5}, OP_TWICE},
    {"transpose a scalar", build_transpose, {0, 0}, OP_TWICE},

    {"slice front", build_slice, {0, 0, 3, 2, 7, 5}, OP_TWICE},
    {"slice middle", build_slice, {1, 2, 3, 3, 5, 7, 3}, OP_TWICE | OP_BF16},
    {"slice end", build_slice, {-1, 4, 3, 2, 5, 7}, OP_TWICE},
    {"slice one", build_slice, {0, 2, 1, 1, 5}, OP_TWICE},
    {"slice all", build_slice, {0, 0, 5, 1, 5}, OP_TWICE},
    {"slice nothing", build_slice, {0, 5, 0, 2, 5, 2}, OP_TWICE},
    {"slice of none", build_slice, {1, 1, 2, 2, 0, 5}, OP_TWICE},
    {"slice rank 6", build_slice, {-3, 1, 2, 6, 2, 1, 3, 4, 1, 2}, OP_TWICE},
    {"slices that overlap", build_two_slices, {7}, OP_TWICE},

    {"concat in the middle", build_concat, {1, 3, 2, 5, 1, 0, 0, 3, 7}, OP_TWICE | OP_BF16},
    {"concat five", build_concat, {-2, 5, 1, 2, 3, 4, 5, 2, 17}, OP_TWICE},
    {"concat with none", build_concat, {1, 3, 2, 0, 3, 0, 0, 2, 3}, OP_TWICE},
    {"concat of none", build_concat, {1, 2, 2, 3, 0, 0, 0, 0, 3}, OP_TWICE},
    {"concat only nothing", build_concat, {1, 2, 0, 0, 0, 0, 0, 2, 3}, OP_TWICE},
    {"concat one", build_concat, {1, 1, 4, 0, 0, 0, 0, 2, 3}, OP_TWICE},
    {"concat vectors, one of them twice", build_concat_rows, {5, 11}, OP_TWICE},

    {"fill", build_fill, {3, 7}, OP_TWICE | OP_BF16},
    {"fill nothing", build_fill, {0, 7}, OP_TWICE},
    {"detach", build_detach, {7}, OP_TWICE},
    {"prefix", build_prefix, {7, 5}, OP_TWICE | OP_BF16},
    {"prefix of all", build_prefix, {7, 7}, OP_TWICE},
    {"prefix of nothing", build_prefix, {7, 0}, OP_TWICE},
    {"to the host", transfer, {5, 7, 1}, OP_NO_GRAD | OP_BF16},
    {"to the device", transfer, {5, 7, 0}, OP_NO_GRAD | OP_BF16},
    {"integers", build_integers, {7}, OP_NO_GRAD},
    {"integers of none", build_integers, {0}, OP_NO_GRAD},
};

OP_CASE_LIST(shape, cases);
