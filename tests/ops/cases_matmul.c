/* Cases of matmul and bias. */
#include "op_test.h"

/* How the batch dimensions look. */
enum { PLAIN, BATCH, BATCH2, SHARED, SHARED2 };
enum { M, K, N, TRANS_A, TRANS_B, FORM, B1, B2 };

static ls_shape operand(const int64_t *p, int64_t rows, int64_t cols, bool trans, bool batched)
{
    int64_t r = trans ? cols : rows, c = trans ? rows : cols;

    if (!batched) return LS_SHAPE(r, c);
    if (p[FORM] == BATCH2 || p[FORM] == SHARED2) return LS_SHAPE(p[B1], p[B2], r, c);
    return LS_SHAPE(p[B1], r, c);
}

static void build(op_test *t, const int64_t *p)
{
    bool many_a = p[FORM] != PLAIN, many_b = p[FORM] == BATCH || p[FORM] == BATCH2;
    ls_value a = op_in(t, OP_NORMAL, operand(p, p[M], p[K], p[TRANS_A] != 0, many_a));
    ls_value b = op_in(t, OP_NORMAL, operand(p, p[K], p[N], p[TRANS_B] != 0, many_b));

    op_length(t, p[K] + p[M] * (p[B1] > 0 ? p[B1] : 1) * (p[B2] > 0 ? p[B2] : 1) + p[N]);
    op_out(t, ls_matmul(a, b, p[TRANS_A] != 0, p[TRANS_B] != 0));
}

/* The same matrix on both sides: a Gram matrix. */
static void build_gram(op_test *t, const int64_t *p)
{
    ls_value a = op_in(t, OP_NORMAL, LS_SHAPE(p[M], p[K]));

    op_length(t, p[M] + p[K]);
    op_out(t, ls_matmul(a, a, p[TRANS_A] != 0, p[TRANS_A] == 0));
}

/* p: axis, size of the bias, rank, dimensions */
static void build_bias(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[2], p + 3);
    ls_value x = op_in(t, OP_NORMAL, s), b = op_in(t, OP_NORMAL, LS_SHAPE(p[1]));

    op_length(t, ls_shape_count(s));
    op_out(t, ls_square(ls_bias(x, b, (int)p[0])));
}

/* A product whose result is wanted in fp32, whatever it is of: p: rows, columns of dy, of x. */
static void build_wide(op_test *t, const int64_t *p)
{
    ls_value dy = op_in(t, OP_NORMAL, LS_SHAPE(p[0], p[1])), x = op_in(t, OP_NORMAL, LS_SHAPE(p[0], p[2]));

    op_length(t, p[0]);
    op_out(t, ls_cast(ls_matmul(dy, x, true, false), LS_F32));
}

/* All four ways to store the operands. */
#define FOUR(name, m, k, n, form, b1, b2, flags)                                                             \
    {name, build, {m, k, n, 0, 0, form, b1, b2}, flags},                                                     \
        {name ", a transposed", build, {m, k, n, 1, 0, form, b1, b2}, flags},                                \
        {name ", b transposed", build, {m, k, n, 0, 1, form, b1, b2}, flags},                                \
    {                                                                                                        \
        name ", both transposed", build, {m, k, n, 1, 1, form, b1, b2}, flags                                \
    }

static const op_case cases[] = {
    FOUR("one", 1, 1, 1, PLAIN, 0, 0, OP_TWICE),
    FOUR("primes", 7, 13, 5, PLAIN, 0, 0, OP_TWICE | OP_BF16),
    FOUR("blocks and rests", 33, 65, 17, PLAIN, 0, 0, 0),
    FOUR("long sums", 3, 521, 4, PLAIN, 0, 0, OP_BF16),
    FOUR("few rows", 32, 96, 48, PLAIN, 0, 0, OP_BF16), /* and, by their gradients, sums over few */
    FOUR("few rows, in two blocks", 72, 264, 34, PLAIN, 0, 0, OP_BF16),
    FOUR("a row", 1, 31, 17, PLAIN, 0, 0, OP_TWICE),
    FOUR("a column", 17, 31, 1, PLAIN, 0, 0, OP_TWICE),
    FOUR("outer product", 17, 1, 19, PLAIN, 0, 0, OP_TWICE),
    FOUR("no rows", 0, 3, 5, PLAIN, 0, 0, OP_TWICE),
    FOUR("no columns", 3, 5, 0, PLAIN, 0, 0, OP_TWICE),
    FOUR("empty sums", 3, 0, 5, PLAIN, 0, 0, OP_TWICE),
    FOUR("batch", 5, 7, 3, BATCH, 4, 0, OP_TWICE | OP_BF16),
    FOUR("batch of one", 5, 7, 3, BATCH, 1, 0, OP_TWICE),
    FOUR("batch of none", 5, 7, 3, BATCH, 0, 0, OP_TWICE),
    FOUR("batch of rank 2", 3, 5, 2, BATCH2, 2, 3, OP_TWICE),
    FOUR("shared b", 5, 7, 3, SHARED, 4, 0, OP_TWICE | OP_BF16),
    FOUR("shared b, one matrix", 5, 7, 3, SHARED, 1, 0, OP_TWICE),
    FOUR("shared b, no matrix", 5, 7, 3, SHARED, 0, 0, OP_TWICE),
    FOUR("shared b, batch of rank 2", 3, 5, 2, SHARED2, 2, 3, OP_TWICE),
    {"gram of columns", build_gram, {5, 7, 0, 1}, OP_TWICE},
    {"gram of rows", build_gram, {5, 7, 0, 0}, OP_TWICE},

    {"weights in fp32", build_wide, {64, 48, 32}, OP_NO_GRAD | OP_BF16},
    {"weights in fp32, primes", build_wide, {13, 7, 5}, OP_NO_GRAD | OP_BF16},

    {"bias of rows", build_bias, {-1, 17, 2, 5, 17}, OP_TWICE | OP_BF16},
    {"bias of one", build_bias, {0, 1, 1, 1}, OP_TWICE},
    {"bias of channels", build_bias, {1, 5, 4, 2, 5, 3, 7}, OP_TWICE | OP_BF16},
    {"bias of 16 channels", build_bias, {1, 16, 4, 2, 16, 3, 7}, OP_TWICE},
    {"bias of the first", build_bias, {0, 3, 2, 3, 7}, OP_TWICE},
    {"bias rank 6", build_bias, {-3, 3, 6, 2, 1, 2, 3, 2, 2}, OP_TWICE},
    {"bias of an empty batch", build_bias, {1, 5, 3, 0, 5, 3}, OP_TWICE},
    {"bias of no channels", build_bias, {1, 0, 3, 2, 0, 3}, OP_TWICE},
};

OP_CASE_LIST(matmul, cases);
