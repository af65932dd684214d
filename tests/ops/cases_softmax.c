/* Cases of softmax, log_softmax and attention. */
#include "op_test.h"

enum { SCALE, RANK, DIMS };

static ls_value rows(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[RANK], p + DIMS);

    op_length(t, s.dim[s.rank - 1]);
    return ls_scale(op_in(t, OP_NORMAL, s), (double)p[SCALE]);
}

static void softmax(op_test *t, const int64_t *p)
{
    op_out(t, ls_softmax(rows(t, p)));
}

static void log_softmax(op_test *t, const int64_t *p)
{
    op_out(t, ls_log_softmax(rows(t, p)));
}

enum { B, T, D };

static void attention(op_test *t, const int64_t *p)
{
    ls_shape s = LS_SHAPE(p[B], p[T], p[D]);
    ls_value q = op_in(t, OP_NORMAL, s), k = op_in(t, OP_NORMAL, s), v = op_in(t, OP_NORMAL, s);
    ls_value out = ls_attention(q, k, v, 0.5);

    op_length(t, p[T] + p[D]);
    op_out(t, out);
    op_out_fixed(t, ls_graph_out(out, 1));
}

/* Only some of the three gradients are wanted. */
static void attention_fixed_keys(op_test *t, const int64_t *p)
{
    ls_shape s = LS_SHAPE(p[B], p[T], p[D]);
    ls_value q = op_in(t, OP_NORMAL, s), k = op_fixed(t, OP_NORMAL, s), v = op_in(t, OP_NORMAL, s);

    op_length(t, p[T] + p[D]);
    op_out(t, ls_attention(q, k, v, 1.0));
}

/*                                       scale rank dims */
static const op_case cases[] = {
    {"softmax: one", softmax, {1, 1, 1}, OP_TWICE},
    {"softmax: one row", softmax, {1, 1, 7}, OP_TWICE},
    {"softmax: matrix", softmax, {1, 2, 5, 13}, OP_TWICE | OP_BF16},
    {"softmax: one column", softmax, {1, 2, 11, 1}, OP_TWICE},
    {"softmax: four dimensions", softmax, {1, 4, 2, 3, 1, 17}, OP_TWICE},
    {"softmax: long row", softmax, {1, 2, 3, 1031}, 0},
    {"softmax: logits in the hundreds", softmax, {128, 2, 3, 19}, OP_NO_GRAD},
    {"softmax: empty batch", softmax, {1, 2, 0, 5}, OP_TWICE},
    {"softmax: empty rows", softmax, {1, 2, 3, 0}, 0},
    {"log_softmax: one", log_softmax, {1, 1, 1}, OP_TWICE},
    {"log_softmax: one row", log_softmax, {1, 1, 7}, OP_TWICE},
    {"log_softmax: matrix", log_softmax, {1, 2, 5, 13}, OP_TWICE | OP_BF16},
    {"log_softmax: four dimensions", log_softmax, {1, 4, 2, 3, 1, 17}, OP_TWICE},
    {"log_softmax: long row", log_softmax, {1, 2, 3, 1031}, 0},
    {"log_softmax: logits in the hundreds", log_softmax, {128, 2, 3, 19}, OP_NO_GRAD},
    {"log_softmax: empty batch", log_softmax, {1, 2, 0, 5}, OP_TWICE},
    {"log_softmax: empty rows", log_softmax, {1, 2, 3, 0}, 0},
    {"attention: one", attention, {1, 1, 1}, 0},
    {"attention: one position", attention, {3, 1, 4}, 0},
    {"attention: odd", attention, {2, 7, 5}, OP_BF16},
    {"attention: tokens and heads", attention, {6, 17, 16}, OP_BF16},
    {"attention: long", attention, {1, 131, 3}, 0},
    {"attention: empty batch", attention, {0, 4, 3}, 0},
    {"attention: no positions", attention, {2, 0, 3}, 0},
    {"attention: fixed keys", attention_fixed_keys, {2, 5, 3}, 0},
};

OP_CASE_LIST(softmax, cases);
