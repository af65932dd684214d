/* Cases of the optimisers: one update of a group from given states; test_optim_values.c follows whole
 * trajectories. */
#include <math.h>

#include "op_test.h"

typedef struct setting {
    const ls_op *op;
    ls_optim_attr attr;
} setting;

enum {
    SGD,
    SGD_MOMENTUM,
    SGD_NESTEROV,
    ADAM_TORCH,
    ADAM_TF,
    ADAM_W,
    RMSPROP,
    RMSPROP_MOMENTUM,
    LARS,
    LAMB,
};

static const setting settings[] = {
    [SGD] = {&ls_op_sgd, {.weight_decay = 0.01}},
    [SGD_MOMENTUM] = {&ls_op_sgd, {.momentum = 0.9, .weight_decay = 0.01}},
    [SGD_NESTEROV] = {&ls_op_sgd, {.momentum = 0.9, .nesterov = true}},
    [ADAM_TORCH] = {&ls_op_adam, {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01}},
    [ADAM_TF] = {&ls_op_adam, {.beta1 = 0.5, .beta2 = 0.999, .eps = 1e-7, .form = LS_ADAM_TF}},
    [ADAM_W] = {&ls_op_adam,
                {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .form = LS_ADAM_W}},
    [RMSPROP] = {&ls_op_rmsprop, {.alpha = 0.99, .eps = 1e-8, .weight_decay = 0.01}},
    [RMSPROP_MOMENTUM] = {&ls_op_rmsprop, {.alpha = 0.9, .eps = 1e-8, .momentum = 0.9}},
    [LARS] = {&ls_op_lars, {.momentum = 0.9, .weight_decay = 1e-4, .trust = 0.001}},
    [LAMB] = {&ls_op_lamb, {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01}},
};

enum { SETTING, UPDATES, GROUP };

#define MAX_PARAMS 5

/* Group 0 is a single element; group 1 has every rank and odd sizes; group 2 an empty parameter. */
static int group(int64_t which, ls_shape *shapes)
{
    if (which == 0) {
        shapes[0] = LS_SHAPE(1);
        return 1;
    }
    shapes[0] = LS_SHAPE(5, 7);
    shapes[1] = LS_SHAPE(13);
    if (which == 2) {
        shapes[2] = LS_SHAPE(0, 3);
        return 3;
    }
    shapes[2] = LS_SHAPE(3, 2, 3, 3);
    shapes[3] = LS_SHAPE_SCALAR;
    shapes[4] = LS_SHAPE(1, 1031);
    return 5;
}

static void update(op_test *t, const int64_t *p)
{
    const setting *s = &settings[p[SETTING]];
    ls_shape shapes[MAX_PARAMS];
    ls_optim_attr a = s->attr;
    ls_value in[3 + 4 * MAX_PARAMS], out;
    int n_states = ls_optim_states(s->op, &a), n_in = 0, n_out;

    a.n = group(p[GROUP], shapes);
    in[n_in++] = op_fixed_wide(t, OP_POSITIVE, p[GROUP] == 0 ? LS_SHAPE(1) : LS_SHAPE_SCALAR);
    in[n_in++] = op_fixed_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR);
    in[n_in++] = op_counter(t, (int32_t)p[UPDATES]);
    for (int i = 0; i < a.n; i++) in[n_in++] = op_state(t, OP_NORMAL, shapes[i]);
    for (int i = 0; i < a.n; i++) in[n_in++] = op_fixed(t, OP_NONZERO, shapes[i]);
    /* Positive, because some of them are means of squares. */
    for (int k = 0; k < n_states; k++)
        for (int i = 0; i < a.n; i++) in[n_in++] = op_state_wide(t, OP_POSITIVE, shapes[i]);
    op_length(t, 1031);
    out = ls_graph_add(op_graph(t), s->op, n_in, in, &a);
    n_out = 1 + (1 + n_states) * a.n;
    for (int k = 0; k < n_out; k++) {
        ls_value next = ls_graph_out(out, k), from = in[s->op->alias(n_in, &a, k)];
        if (ls_value_ok(next)) ls_graph_advance(op_graph(t), ls_graph_value(op_graph(t), from.id)->var, next);
        op_out_fixed(t, next);
    }
}

enum { KEEP, EMPTY, NOTHING };

static void accumulate(op_test *t, const int64_t *p)
{
    const ls_shape shape = p[EMPTY] ? LS_SHAPE(0, 3) : LS_SHAPE(3, 1031);
    const ls_value sum = op_state_wide(t, OP_NORMAL, shape), g = op_fixed(t, OP_NORMAL, shape);
    const ls_value zero = ls_fill(op_graph(t), LS_SHAPE_SCALAR, ls_value_dtype(sum), (double)p[KEEP]);
    /* What weighs nothing may be anything. */
    const ls_value none = ls_fill(op_graph(t), shape, ls_value_dtype(g), INFINITY),
                   weight = p[NOTHING] ? ls_fill(op_graph(t), LS_SHAPE_SCALAR, ls_value_dtype(sum), 0)
                                       : op_fixed_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR);
    const ls_value next = ls_accumulate(sum, p[NOTHING] ? none : g, zero, weight);

    if (ls_value_ok(next)) ls_graph_advance(op_graph(t), ls_graph_value(op_graph(t), sum.id)->var, next);
    op_out_fixed(t, next);
}

static void assign(op_test *t, const int64_t *p)
{
    const ls_value var = op_state(t, OP_NORMAL, LS_SHAPE(p[0], 7));
    const ls_value next = ls_assign(var, op_fixed(t, OP_NORMAL, LS_SHAPE(p[0], 7)));

    if (ls_value_ok(next)) ls_graph_advance(op_graph(t), ls_graph_value(op_graph(t), var.id)->var, next);
    op_out_fixed(t, next);
}

/* p: rows of the table, rows to store, width.  Indices run past the table, so that some rows go nowhere. */
static void store_rows(op_test *t, const int64_t *p)
{
    const ls_value table = op_state(t, OP_NORMAL, LS_SHAPE(p[0], p[2]));
    const ls_value rows = op_fixed(t, OP_NORMAL, LS_SHAPE(p[1], p[2]));
    const ls_value next = ls_store_rows(table, rows, op_index(t, p[0] + 2, LS_SHAPE(p[1])));

    if (ls_value_ok(next)) ls_graph_advance(op_graph(t), ls_graph_value(op_graph(t), table.id)->var, next);
    op_out_fixed(t, next);
}

static void all_reduce(op_test *t, const int64_t *p)
{
    ls_shape shapes[MAX_PARAMS];
    ls_value x[MAX_PARAMS], in[1 + MAX_PARAMS], y;
    const int n = group(p[0], shapes);

    for (int i = 0; i < n; i++) x[i] = op_in_wide(t, OP_NORMAL, shapes[i]);
    y = ls_all_reduce(op_fixed_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR), n, x,
                      (ls_collective_attr){.bucket = -1, .plain = (int)p[1]}, in);
    for (int i = 0; i < n; i++) op_out(t, ls_graph_out(y, i));
}

enum { LEAF, SCATTER, GATHER, BROADCAST };

static void collective(op_test *t, const int64_t *p)
{
    const ls_collective_attr attr = {.bucket = -1, .ranks = p[0] == SCATTER || p[0] == GATHER ? 1 : 0};
    const bool weighs = p[0] == LEAF || p[0] == SCATTER;
    ls_shape shapes[MAX_PARAMS];
    ls_value x[MAX_PARAMS], in[2 + MAX_PARAMS], weight = {0}, y;
    const int n = group(p[1], shapes);

    for (int i = 0; i < n; i++)
        x[i] = p[0] == SCATTER
                   ? op_in_wide(t, OP_NORMAL, shapes[i])
                   : op_fixed_wide(t, OP_NORMAL,
                                   p[0] == GATHER ? LS_SHAPE(ls_shape_count(shapes[i])) : shapes[i]);
    if (weighs) weight = op_fixed_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR);
    if (p[0] == LEAF) {
        op_out_fixed(t, ls_all_reduce_leaf(weight, op_fixed_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR), n, x,
                                           (ls_collective_attr){.shards = 2}, in));
        return;
    }
    y = p[0] == SCATTER  ? ls_reduce_scatter(weight, n, x, attr, in)
        : p[0] == GATHER ? ls_all_gather(n, x, attr, in)
                         : ls_broadcast(n, x, attr, in);
    for (int i = 0; i < n; i++)
        p[0] == SCATTER ? op_out(t, ls_graph_out(y, i)) : op_out_fixed(t, ls_graph_out(y, i));
}

/* On one rank it returns its token and waits for nobody. */
static void barrier(op_test *t, const int64_t *p)
{
    op_out_fixed(t, ls_barrier(op_graph(t), (ls_barrier_at)p[0]));
}

/* p: group, the tensor that is not finite (-1: none), what is wrong with it. */
static void all_finite(op_test *t, const int64_t *p)
{
    ls_shape shapes[MAX_PARAMS];
    ls_value x[MAX_PARAMS];
    const int n = group(p[0], shapes);

    for (int i = 0; i < n; i++) {
        x[i] = op_fixed(t, OP_NORMAL, shapes[i]);
        if (i == p[1]) /* x / 0, or x / 0 - x / 0 */
            x[i] = ls_div(x[i], ls_fill(op_graph(t), LS_SHAPE_SCALAR, op_dtype(t), 0));
        if (i == p[1] && p[2]) x[i] = ls_sub(x[i], x[i]);
    }
    op_out_fixed(t, ls_all_finite(n, x, 7));
}

static void unless(op_test *t, const int64_t *p)
{
    const ls_value found = ls_fill(op_graph(t), LS_SHAPE_SCALAR, LS_F32, (double)p[0]);

    op_out_fixed(t, ls_unless(found, op_fixed(t, OP_NORMAL, LS_SHAPE(p[1]))));
}

static void either(op_test *t, const int64_t *p)
{
    const ls_value known = ls_fill(op_graph(t), LS_SHAPE_SCALAR, LS_F32, (double)p[1]);
    const ls_value a = op_fixed_wide(t, OP_NORMAL, LS_SHAPE_SCALAR),
                   b = op_fixed_wide(t, OP_NORMAL, LS_SHAPE_SCALAR);

    op_out_fixed(t, ls_either(op_counter(t, (int32_t)p[0]), known, a, b));
}

/* p: whether the scale changes, good steps so far, what two updates have found. */
static void rescale(op_test *t, const int64_t *p)
{
    const ls_rescale_attr a = {
        .counts = true, .dynamic = p[0] != 0, .growth = 5, .least = 1, .most = 1 << 24};
    const int moved = a.dynamic ? 3 : 1;
    ls_graph *g = op_graph(t);
    ls_value in[5], out;
    int n = 0;

    in[n++] = a.dynamic ? op_state_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR)
                        : op_fixed_wide(t, OP_POSITIVE, LS_SHAPE_SCALAR);
    in[n++] = op_counter(t, 11);
    if (a.dynamic) in[n++] = op_counter(t, (int32_t)p[1]);
    for (int i = 0; i < 2; i++) in[n++] = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, (double)p[2 + i]);
    out = ls_rescale(n, in, &a);
    for (int k = 0; k <= moved; k++) {
        const int from = ls_op_rescale.alias(n, &a, k);
        if (ls_value_ok(out) && from >= 0)
            ls_graph_advance(g, ls_graph_value(g, in[from].id)->var, ls_graph_out(out, k));
        op_out_fixed(t, ls_graph_out(out, k));
    }
}

static const op_case cases[] = {
    {"all_finite: they are", all_finite, {1, -1}, OP_NO_GRAD | OP_BF16},
    {"all_finite: one is infinite", all_finite, {1, 2, 0}, OP_NO_GRAD | OP_BF16},
    {"all_finite: the last is not a number", all_finite, {1, 4, 1}, OP_NO_GRAD | OP_BF16},
    {"all_finite: one element", all_finite, {0, 0, 1}, OP_NO_GRAD},
    {"all_finite: an empty one", all_finite, {2, -1}, OP_NO_GRAD},
    {"unless: it is", unless, {0, 17}, OP_NO_GRAD | OP_BF16},
    {"unless: it is not", unless, {3, 17}, OP_NO_GRAD | OP_BF16},
    {"either: equal", either, {4, 4}, OP_NO_GRAD},
    {"either: one more", either, {5, 4}, OP_NO_GRAD},
    {"rescale: a good step", rescale, {1, 2, 0, 0}, OP_NO_GRAD},
    {"rescale: the last good step", rescale, {1, 4, 0, 0}, OP_NO_GRAD},
    {"rescale: an overflow", rescale, {1, 4, 0, 9}, OP_NO_GRAD},
    {"rescale: two overflows", rescale, {1, 3, 2, 9}, OP_NO_GRAD},
    {"rescale: only counted", rescale, {0, 0, 2, 0}, OP_NO_GRAD},
    {"sgd: one", update, {SGD, 0, 0}, OP_NO_GRAD},
    {"sgd: group", update, {SGD, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"sgd with momentum: one", update, {SGD_MOMENTUM, 0, 0}, OP_NO_GRAD},
    {"sgd with momentum: group", update, {SGD_MOMENTUM, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"sgd with momentum: empty parameter", update, {SGD_MOMENTUM, 3, 2}, OP_NO_GRAD},
    {"sgd with Nesterov's momentum: group", update, {SGD_NESTEROV, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"adam, torch: first update", update, {ADAM_TORCH, 0, 0}, OP_NO_GRAD},
    {"adam, torch: group", update, {ADAM_TORCH, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"adam, torch: empty parameter", update, {ADAM_TORCH, 3, 2}, OP_NO_GRAD},
    {"adam, torch: late", update, {ADAM_TORCH, 100000, 1}, OP_NO_GRAD},
    {"adam, tf: first update", update, {ADAM_TF, 0, 0}, OP_NO_GRAD},
    {"adam, tf: group", update, {ADAM_TF, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"adamw: first update", update, {ADAM_W, 0, 0}, OP_NO_GRAD},
    {"adamw: group", update, {ADAM_W, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"rmsprop: one", update, {RMSPROP, 0, 0}, OP_NO_GRAD},
    {"rmsprop: group", update, {RMSPROP, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"rmsprop with momentum: group", update, {RMSPROP_MOMENTUM, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"lars: one", update, {LARS, 0, 0}, OP_NO_GRAD},
    {"lars: group", update, {LARS, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"lars: empty parameter", update, {LARS, 3, 2}, OP_NO_GRAD},
    {"lamb: first update", update, {LAMB, 0, 0}, OP_NO_GRAD},
    {"lamb: group", update, {LAMB, 3, 1}, OP_NO_GRAD | OP_BF16},
    {"lamb: empty parameter", update, {LAMB, 3, 2}, OP_NO_GRAD},
    {"accumulate: first", accumulate, {0, 0}, OP_NO_GRAD | OP_BF16},
    {"accumulate: next", accumulate, {1, 0}, OP_NO_GRAD | OP_BF16},
    {"accumulate: empty", accumulate, {1, 1}, OP_NO_GRAD},
    {"accumulate: nothing, first", accumulate, {0, 0, 1}, OP_NO_GRAD | OP_BF16},
    {"accumulate: nothing, next", accumulate, {1, 0, 1}, OP_NO_GRAD | OP_BF16},
    {"assign", assign, {149}, OP_NO_GRAD | OP_BF16},
    {"assign: empty", assign, {0}, OP_NO_GRAD},
    {"store_rows: one", store_rows, {1, 1, 1}, OP_NO_GRAD},
    {"store_rows: places taken twice", store_rows, {5, 17, 13}, OP_NO_GRAD | OP_BF16},
    {"store_rows: wide", store_rows, {7, 3, 20011}, OP_NO_GRAD},
    {"store_rows: nothing", store_rows, {3, 0, 5}, OP_NO_GRAD},
    {"store_rows: empty rows", store_rows, {3, 2, 0}, OP_NO_GRAD},
    {"all_reduce, one rank: one", all_reduce, {0}, OP_TWICE},
    {"all_reduce, one rank: group", all_reduce, {1}, OP_TWICE},
    {"all_reduce, one rank: group, the last without weight", all_reduce, {1, 1}, OP_TWICE},
    {"all_reduce, one rank: empty tensor", all_reduce, {2}, OP_TWICE},
    {"all_reduce_leaf, one rank", collective, {LEAF, 1}, OP_NO_GRAD},
    {"reduce_scatter, one rank: one", collective, {SCATTER, 0}, OP_TWICE},
    {"reduce_scatter, one rank: group", collective, {SCATTER, 1}, OP_TWICE},
    {"reduce_scatter, one rank: empty tensor", collective, {SCATTER, 2}, OP_TWICE},
    {"all_gather, one rank: group", collective, {GATHER, 1}, OP_NO_GRAD},
    {"all_gather, one rank: empty tensor", collective, {GATHER, 2}, OP_NO_GRAD},
    {"broadcast, one rank: group", collective, {BROADCAST, 1}, OP_NO_GRAD},
    {"broadcast, one rank: empty tensor", collective, {BROADCAST, 2}, OP_NO_GRAD},
    {"barrier, one rank: before", barrier, {LS_BARRIER_BEFORE_UPDATE}, OP_NO_GRAD},
    {"barrier, one rank: after", barrier, {LS_BARRIER_AFTER_UPDATE}, OP_NO_GRAD},
};

OP_CASE_LIST(optim, cases);
