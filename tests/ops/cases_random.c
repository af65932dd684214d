/* Cases of ops that draw random numbers; test_random.c looks at the numbers themselves. */
#include "op_test.h"

enum { PERCENT, PER_CHANNEL, RANK, DIMS };

static void dropout(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NONZERO, ls_shape_make((int)p[RANK], p + DIMS));

    op_out(t, ls_dropout(x, op_key(t), (double)p[PERCENT] / 100, p[PER_CHANNEL] != 0, "test.dropout"));
}

/* Two layers draw from streams of their own. */
static void dropout_twice(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NONZERO, ls_shape_make((int)p[RANK], p + DIMS)), key = op_key(t);

    x = ls_dropout(x, key, 0.5, false, "test.dropout1");
    op_out(t, ls_dropout(ls_square(x), key, 0.25, false, "test.dropout2"));
}

static void normal(op_test *t, const int64_t *p)
{
    op_out_fixed(t, ls_random_normal(op_key(t), ls_shape_make((int)p[RANK], p + DIMS), 0.5, "test.normal"));
}

static void uniform(op_test *t, const int64_t *p)
{
    op_out_fixed(t, ls_random_uniform(op_key(t), ls_shape_make((int)p[RANK], p + DIMS), "test.uniform"));
}

/* p: slots, of them filled from the first on, images, width. */
static void replay(op_test *t, const int64_t *p)
{
    const ls_dtype wide = op_dtype(t) == LS_F64 ? LS_F64 : LS_F32;
    const ls_value filled[] = {ls_fill(op_graph(t), LS_SHAPE(p[1], 1), wide, 1),
                               ls_fill(op_graph(t), LS_SHAPE(p[0] - p[1], 1), wide, 0)};
    const ls_value pool = op_fixed(t, OP_NORMAL, LS_SHAPE(p[0], p[3])),
                   x = op_fixed(t, OP_NORMAL, LS_SHAPE(p[2], p[3]));
    const ls_value shown = ls_replay_choice(pool, ls_concat(2, filled, 0), x, op_key(t), "test.replay");

    for (int k = 0; k < 3 && ls_value_ok(shown); k++) op_out_fixed(t, ls_graph_out(shown, k));
}

/*                               percent per_channel rank dims */
static const op_case cases[] = {
    {"dropout: one", dropout, {50, 0, 1, 1}, OP_TWICE},
    {"dropout: odd", dropout, {30, 0, 2, 7, 13}, OP_TWICE | OP_BF16},
    {"dropout: feature maps", dropout, {25, 0, 4, 3, 5, 7, 3}, 0},
    {"dropout: nothing dropped", dropout, {0, 0, 2, 3, 5}, 0},
    {"dropout: nearly all dropped", dropout, {99, 0, 2, 11, 67}, 0},
    {"dropout: whole channels", dropout, {50, 1, 4, 3, 5, 3, 3}, OP_TWICE | OP_BF16},
    {"dropout: whole channels of a matrix", dropout, {50, 1, 2, 3, 19}, 0},
    {"dropout: empty batch", dropout, {50, 0, 2, 0, 5}, 0},
    {"dropout: empty maps", dropout, {50, 1, 4, 2, 3, 0, 5}, 0},
    {"dropout: two in a row", dropout_twice, {0, 0, 2, 5, 31}, OP_TWICE},
    {"random_normal: one", normal, {0, 0, 1, 1}, OP_NO_GRAD},
    {"random_normal: odd", normal, {0, 0, 2, 7, 13}, OP_NO_GRAD},
    {"random_normal: feature maps", normal, {0, 0, 4, 2, 3, 5, 7}, OP_NO_GRAD},
    {"random_normal: empty batch", normal, {0, 0, 2, 0, 5}, OP_NO_GRAD},
    {"random_uniform: one", uniform, {0, 0, 1, 1}, OP_NO_GRAD},
    {"random_uniform: odd", uniform, {0, 0, 2, 7, 13}, OP_NO_GRAD},
    {"random_uniform: one per sample", uniform, {0, 0, 2, 37, 1}, OP_NO_GRAD},
    {"random_uniform: empty batch", uniform, {0, 0, 2, 0, 5}, OP_NO_GRAD},
    {"replay: empty", replay, {5, 0, 3, 7}, OP_NO_GRAD | OP_BF16},
    {"replay: more images than empty slots", replay, {5, 3, 4, 7}, OP_NO_GRAD | OP_BF16},
    {"replay: full", replay, {50, 50, 64, 31}, OP_NO_GRAD | OP_BF16},
    {"replay: wide", replay, {7, 7, 5, 20011}, OP_NO_GRAD},
    {"replay: one slot", replay, {1, 1, 2, 1}, OP_NO_GRAD},
    {"replay: empty batch", replay, {3, 3, 0, 5}, OP_NO_GRAD},
    {"replay: empty images", replay, {3, 3, 2, 0}, OP_NO_GRAD},
};

OP_CASE_LIST(random, cases);
