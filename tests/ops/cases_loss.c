/* Cases of losses, metrics and row gathering. */
#include "op_test.h"

enum { N, C, LIMIT }; /* labels are drawn below LIMIT */

static void cross_entropy(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, LS_SHAPE(p[N], p[C])), labels = op_index(t, p[LIMIT], LS_SHAPE(p[N]));
    ls_value loss = ls_cross_entropy(x, labels);

    op_length(t, p[N] + p[C]);
    op_out(t, loss);
    op_out_fixed(t, ls_graph_out(loss, 1));
    op_out_fixed(t, ls_accuracy(x, labels));
}

/* The gradient op by itself, so that labels may be out of range: finite differences of NaN say nothing. */
static void cross_entropy_grad(op_test *t, const int64_t *p)
{
    ls_value dloss = op_fixed(t, OP_NORMAL, LS_SHAPE_SCALAR);
    ls_value probs = op_fixed(t, OP_POSITIVE, LS_SHAPE(p[N], p[C]));

    op_out_fixed(t, ls_cross_entropy_grad(dloss, probs, op_index(t, p[LIMIT], LS_SHAPE(p[N]))));
}

/* All logits are equal: the first counts as the largest. */
static void accuracy_ties(op_test *t, const int64_t *p)
{
    ls_value x = ls_fill(op_graph(t), LS_SHAPE(p[N], p[C]), op_dtype(t), 0.5);

    op_out_fixed(t, ls_accuracy(x, op_index(t, p[LIMIT], LS_SHAPE(p[N]))));
}

enum { B, P, Q };

/* Points near distinct integers plus `shift` on the x axis.  Two clouds shifted by a quarter have no two
 * candidates nearly equally near, so that the loss is smooth where finite differences look. */
static ls_value spaced_cloud(op_test *t, int64_t n_clouds, int64_t n_points, double shift)
{
    ls_value noise = ls_scale(op_in(t, OP_NORMAL, LS_SHAPE(n_clouds, 3, n_points)), 0.03125);
    ls_value x = ls_affine(op_fixed(t, OP_DISTINCT, LS_SHAPE(n_points)), 16, shift);
    ls_value zero = ls_fill(op_graph(t), LS_SHAPE(1, 2, n_points), op_dtype(t), 0);
    ls_value axis = ls_concat(2, (ls_value[]){ls_reshape(x, LS_SHAPE(1, 1, n_points)), zero}, 1);

    return ls_add(noise, axis);
}

static void chamfer_out(op_test *t, const int64_t *p, ls_value loss)
{
    op_length(t, p[B] * (p[P] + p[Q]));
    op_out(t, loss);
    op_out_fixed(t, ls_graph_out(loss, 1));
    op_out_fixed(t, ls_graph_out(loss, 2));
}

static void chamfer(op_test *t, const int64_t *p)
{
    ls_value a = spaced_cloud(t, p[B], p[P], 0), b = spaced_cloud(t, p[B], p[Q], 0.25);

    chamfer_out(t, p, ls_chamfer(a, b));
}

/* Clouds without order; their gradient is compared, but not with finite differences. */
static void chamfer_loose(op_test *t, const int64_t *p)
{
    ls_value a = op_fixed(t, OP_NORMAL, LS_SHAPE(p[B], 3, p[P]));
    ls_value b = op_fixed(t, OP_NORMAL, LS_SHAPE(p[B], 3, p[Q]));
    ls_value dloss = op_fixed_wide(t, OP_NORMAL, LS_SHAPE_SCALAR), loss = ls_chamfer(a, b);

    chamfer_out(t, p, loss);
    op_out_fixed(t, ls_chamfer_grad(dloss, a, b, ls_graph_out(loss, 1), ls_graph_out(loss, 2)));
}

enum { V, ROWS, WIDTH, BOUND }; /* indices are drawn below BOUND */

static void gather(op_test *t, const int64_t *p)
{
    ls_value table = op_in(t, OP_NORMAL, LS_SHAPE(p[V], p[WIDTH]));

    op_length(t, p[ROWS]);
    op_out(t, ls_gather_rows(table, op_index(t, p[BOUND], LS_SHAPE(p[ROWS]))));
}

static void scatter(op_test *t, const int64_t *p)
{
    ls_value rows = op_in(t, OP_NORMAL, LS_SHAPE(p[ROWS], p[WIDTH]));

    op_length(t, p[ROWS]);
    op_out(t, ls_scatter_rows(rows, op_index(t, p[BOUND], LS_SHAPE(p[ROWS])), p[V]));
}

enum { RANK, DIMS };

static ls_shape dims(op_test *t, const int64_t *p)
{
    ls_shape s = ls_shape_make((int)p[RANK], p + DIMS);

    op_length(t, ls_shape_count(s));
    return s;
}

static void bce(op_test *t, const int64_t *p)
{
    ls_shape s = dims(t, p);
    ls_value x = op_in(t, OP_NORMAL, s);

    op_out(t, ls_bce_with_logits(x, op_in(t, OP_POSITIVE, s)));
}

static void l1(op_test *t, const int64_t *p)
{
    ls_shape s = dims(t, p);
    ls_value a = op_in(t, OP_DISTINCT, s);
    /* Both lie on one grid; half a spacing keeps the differences away from the kink at zero. */
    ls_value b = ls_affine(op_in(t, OP_DISTINCT, s), 1.0, 0.03125);

    op_out(t, ls_l1_loss(a, b));
}

static void mse(op_test *t, const int64_t *p)
{
    ls_shape s = dims(t, p);
    ls_value a = op_in(t, OP_NORMAL, s);

    op_out(t, ls_mse_loss(a, op_in(t, OP_NORMAL, s)));
}

static const op_case cases[] = {
    {"cross_entropy: one", cross_entropy, {1, 1, 1}, 0},
    {"cross_entropy: one sample", cross_entropy, {1, 10, 10}, 0},
    {"cross_entropy: odd", cross_entropy, {7, 13, 13}, OP_BF16},
    {"cross_entropy: batch of 64", cross_entropy, {64, 10, 10}, OP_BF16},
    {"cross_entropy: many classes", cross_entropy, {3, 1031, 1031}, 0},
    {"cross_entropy: empty batch", cross_entropy, {0, 5, 5}, 0},
    {"cross_entropy: labels out of range", cross_entropy, {17, 5, 9}, OP_NO_GRAD},
    {"cross_entropy_grad: odd", cross_entropy_grad, {7, 13, 13}, OP_NO_GRAD},
    {"cross_entropy_grad: labels out of range", cross_entropy_grad, {17, 5, 9}, OP_NO_GRAD},
    {"accuracy: ties", accuracy_ties, {31, 3, 3}, OP_NO_GRAD},
    {"chamfer: one point", chamfer, {1, 1, 1}, 0},
    {"chamfer: one against many", chamfer, {2, 1, 7}, 0},
    {"chamfer: odd", chamfer, {3, 11, 7}, 0},
    {"chamfer: more than a vector", chamfer, {1, 67, 131}, 0},
    {"chamfer: empty batch", chamfer, {0, 5, 3}, 0},
    {"chamfer: loose clouds", chamfer_loose, {3, 13, 11}, OP_NO_GRAD | OP_BF16},
    {"chamfer: many points", chamfer_loose, {2, 257, 131}, OP_NO_GRAD},
    {"gather_rows: one", gather, {1, 1, 1, 1}, OP_TWICE},
    {"gather_rows: odd", gather, {5, 13, 7, 5}, OP_TWICE | OP_BF16},
    {"gather_rows: no rows", gather, {5, 0, 7, 5}, OP_TWICE},
    {"gather_rows: out of range", gather, {5, 13, 7, 9}, OP_NO_GRAD},
    {"scatter_rows: one", scatter, {1, 1, 1, 1}, OP_TWICE},
    {"scatter_rows: odd", scatter, {5, 13, 7, 5}, OP_TWICE},
    {"scatter_rows: no rows", scatter, {5, 0, 7, 5}, OP_TWICE},
    {"scatter_rows: out of range", scatter, {5, 13, 7, 9}, OP_NO_GRAD},
    {"bce_with_logits: one", bce, {1, 1}, OP_TWICE},
    {"bce_with_logits: odd", bce, {3, 3, 5, 7}, OP_TWICE | OP_BF16},
    {"bce_with_logits: empty batch", bce, {2, 0, 5}, 0},
    {"l1_loss: one", l1, {1, 1}, 0},
    {"l1_loss: odd", l1, {2, 5, 7}, OP_BF16},
    {"l1_loss: empty batch", l1, {2, 0, 5}, 0},
    {"mse_loss: one", mse, {1, 1}, OP_TWICE},
    {"mse_loss: odd", mse, {4, 2, 3, 5, 7}, OP_TWICE | OP_BF16},
    {"mse_loss: empty batch", mse, {2, 0, 5}, 0},
};

OP_CASE_LIST(loss, cases);
