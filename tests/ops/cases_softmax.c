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

/* Both ways without finite differences, which would take long for as many positions as heads have in use. */
static void attention_both_ways(op_test *t, const int64_t *p)
{
    const ls_shape shape = LS_SHAPE(p[0], p[1], p[2]);
    ls_value q = op_in(t, OP_NORMAL, shape), k = op_in(t, OP_NORMAL, shape), v = op_in(t, OP_NORMAL, shape);
    ls_value dout = op_in(t, OP_NORMAL, shape), out = ls_attention(q, k, v, 0.25), d;

    op_length(t, p[1] + p[2]);
    d = ls_attention_grad(q, k, v, out, ls_graph_out(out, 1), dout, 0.25);
    op_out(t, out);
    op_out(t, ls_graph_out(out, 1));
    /* With one position the gradients of q and k are 0, and what is computed is rounding alone. */
    for (int i = p[1] == 1 ? 2 : 0; i < 3; i++) op_out(t, ls_graph_out(d, i));
}

/* The same where heads lie as a product left them. */
static void self_attention_both_ways(op_test *t, const int64_t *p)
{
    const ls_attention_attr a = {0.25};
    ls_value in[4];

    in[0] = op_in(t, OP_NORMAL, LS_SHAPE(p[0], p[1], 3, p[2], p[3]));
    in[1] = ls_graph_add(op_graph(t), &ls_op_self_attention, 1, in, &a);
    in[2] = ls_graph_out(in[1], 1);
    in[3] = op_in(t, OP_NORMAL, LS_SHAPE(p[0], p[1], p[2], p[3]));
    op_length(t, p[1] + p[3]);
    op_out(t, in[1]);
    op_out(t, in[2]);
    op_out(t, ls_graph_add(op_graph(t), &ls_op_self_attention_grad, 4, in, &a));
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
    {"attention: heads of 32", attention_both_ways, {3, 17, 32}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, a patch too many", attention_both_ways, {2, 197, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, one tile", attention_both_ways, {1, 64, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, one token", attention_both_ways, {3, 1, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, five tokens", attention_both_ways, {3, 5, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, one above a tile", attention_both_ways, {3, 65, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, two tiles", attention_both_ways, {2, 128, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, 200 tokens", attention_both_ways, {1, 200, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, 209 tokens", attention_both_ways, {1, 209, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, as many tokens as are kept",
     attention_both_ways,
     {1, 256, 64},
     OP_NO_GRAD | OP_BF16},
    {"attention: heads of 64, one more", attention_both_ways, {1, 257, 64}, OP_NO_GRAD | OP_BF16},
    {"attention: heads of 128", attention_both_ways, {1, 70, 128}, OP_NO_GRAD | OP_BF16},
    {"attention: more tokens than are kept", attention_both_ways, {1, 520, 16}, OP_NO_GRAD | OP_BF16},
    {"self-attention: heads of 16", self_attention_both_ways, {2, 9, 3, 16}, OP_NO_GRAD | OP_BF16},
    {"self-attention: heads of 32", self_attention_both_ways, {2, 17, 3, 32}, OP_NO_GRAD | OP_BF16},
    {"self-attention: heads of 64", self_attention_both_ways, {1, 197, 2, 64}, OP_NO_GRAD | OP_BF16},
    {"self-attention: heads of 64, few tokens",
     self_attention_both_ways,
     {2, 5, 3, 64},
     OP_NO_GRAD | OP_BF16},
    {"self-attention: heads of 64, two tiles",
     self_attention_both_ways,
     {2, 70, 2, 64},
     OP_NO_GRAD | OP_BF16},
    {"self-attention: heads of 64, many tokens",
     self_attention_both_ways,
     {1, 256, 3, 64},
     OP_NO_GRAD | OP_BF16},
    {"self-attention: empty batch", self_attention_both_ways, {0, 5, 2, 32}, OP_NO_GRAD},
    {"attention: fixed keys", attention_fixed_keys, {2, 5, 3}, 0},
};

OP_CASE_LIST(softmax, cases);
