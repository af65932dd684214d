/* Cases of batch, instance and layer norm, and of the forms that fusion makes of the first two. */
#include "op_test.h"

/* H = 0 stands for a matrix (N, C).  MOMENTUM is in percent; EPS is one over eps. */
enum { N, C, H, W, EPS, MOMENTUM, UNBIASED };

static ls_norm_attr attr(const int64_t *p)
{
    return (ls_norm_attr){.eps = 1.0 / (double)p[EPS],
                          .momentum = (double)p[MOMENTUM] / 100,
                          .unbiased_running = p[UNBIASED] != 0,
                          .slope = 0.25};
}

static ls_shape x_shape(const int64_t *p)
{
    return p[H] == 0 ? LS_SHAPE(p[N], p[C]) : LS_SHAPE(p[N], p[C], p[H], p[W]);
}

static void advance(ls_value variable, ls_value next)
{
    ls_graph *g = variable.g;

    if (ls_value_ok(variable)) ls_graph_advance(g, ls_graph_value(g, variable.id)->var, next);
}

/* Adds a batch norm of x, with a residual where `residual` is valid; returns y. */
static ls_value add_batch(op_test *t, ls_value x, ls_value residual, const ls_norm_attr *a, const int64_t *p)
{
    ls_value in[6], y;

    in[0] = x;
    in[1] = op_in_wide(t, OP_NONZERO, LS_SHAPE(p[C]));
    in[2] = op_in_wide(t, OP_NORMAL, LS_SHAPE(p[C]));
    in[3] = op_state_wide(t, OP_NORMAL, LS_SHAPE(p[C]));
    in[4] = op_state_wide(t, OP_POSITIVE, LS_SHAPE(p[C]));
    in[5] = residual;
    op_length(t, ls_shape_count(x_shape(p)));
    y = ls_graph_add(op_graph(t), &ls_op_batch_norm, a->residual ? 6 : 5, in, a);
    for (int k = 1; k < 5; k++) op_out_fixed(t, ls_graph_out(y, k));
    advance(in[3], ls_graph_out(y, 3));
    advance(in[4], ls_graph_out(y, 4));
    return y;
}

static void build_batch(op_test *t, const int64_t *p)
{
    ls_norm_attr a = attr(p);
    ls_value x = op_in(t, OP_NORMAL, x_shape(p));

    op_out(t, add_batch(t, x, x, &a, p));
}

/* The second derivative also reaches dy when that depends on x. */
static void build_batch_square(op_test *t, const int64_t *p)
{
    ls_norm_attr a = attr(p);
    ls_value x = op_in(t, OP_NORMAL, x_shape(p));

    op_out(t, ls_square(add_batch(t, x, x, &a, p)));
}

/* One element per channel: y does not depend on x, and gradients are zero.  Adding x gives the comparison
 * between backends something to be relative to. */
static void build_batch_single(op_test *t, const int64_t *p)
{
    ls_norm_attr a = attr(p);
    ls_value x = op_in(t, OP_NORMAL, x_shape(p));

    op_out(t, ls_add(add_batch(t, x, x, &a, p), x));
}

/* A constant input, as the first layer sees it on blank images: the variance is exactly 0. */
static void build_batch_constant(op_test *t, const int64_t *p)
{
    ls_norm_attr a = attr(p);
    ls_value x = ls_fill(op_graph(t), x_shape(p), op_dtype(t), 3.0);

    op_out(t, add_batch(t, x, x, &a, p));
}

/* -- fused forms
 * ------------------------------------------------------------------------------------------------- */

enum { ACT = UNBIASED + 1, RESIDUAL };

static ls_norm_attr fused_attr(const int64_t *p)
{
    ls_norm_attr a = attr(p);

    a.act = (ls_act)p[ACT];
    a.residual = p[RESIDUAL] != 0;
    return a;
}

static void build_batch_fused(op_test *t, const int64_t *p)
{
    ls_norm_attr a = fused_attr(p);
    ls_value x = op_in(t, OP_NORMAL, x_shape(p)), residual = op_in(t, OP_NORMAL, x_shape(p));

    op_out(t, add_batch(t, x, residual, &a, p));
}

/* The gradients take everything they need from inputs: mean, invstd and y need not belong to x. */
static void add_outputs(op_test *t, ls_value v, int n)
{
    for (int k = 0; k < n; k++) op_out(t, ls_graph_out(v, k));
}

static void build_batch_grad_fused(op_test *t, const int64_t *p)
{
    ls_norm_attr a = fused_attr(p);
    ls_value in[6];

    in[0] = op_in(t, OP_NORMAL, x_shape(p));
    in[1] = op_in(t, OP_NORMAL, x_shape(p));
    in[2] = op_in_wide(t, OP_NONZERO, LS_SHAPE(p[C]));
    in[3] = op_in_wide(t, OP_NORMAL, LS_SHAPE(p[C]));
    in[4] = op_in_wide(t, OP_POSITIVE, LS_SHAPE(p[C]));
    in[5] = ls_scale(op_in(t, OP_NONZERO, x_shape(p)), 0.25);
    op_length(t, p[N] * p[H] * p[W]);
    add_outputs(t, ls_graph_add(op_graph(t), &ls_op_batch_norm_grad, a.act != LS_ACT_NONE ? 6 : 5, in, &a),
                a.residual ? 4 : 3);
}

/* dy in two parts. */
static void build_batch_grad_sums(op_test *t, const int64_t *p)
{
    ls_norm_attr a = fused_attr(p);
    ls_value in[7];
    int n = 5;

    a.sums = true;
    in[0] = op_in(t, OP_NORMAL, x_shape(p));
    in[1] = op_in(t, OP_NORMAL, x_shape(p));
    in[2] = op_in_wide(t, OP_NONZERO, LS_SHAPE(p[C]));
    in[3] = op_in_wide(t, OP_NORMAL, LS_SHAPE(p[C]));
    in[4] = op_in_wide(t, OP_POSITIVE, LS_SHAPE(p[C]));
    if (a.act != LS_ACT_NONE) in[n++] = ls_scale(op_in(t, OP_NONZERO, x_shape(p)), 0.25);
    in[n++] = op_in(t, OP_NORMAL, x_shape(p));
    op_length(t, p[N] * p[H] * p[W]);
    add_outputs(t, ls_graph_add(op_graph(t), &ls_op_batch_norm_grad, n, in, &a), 4);
}

/* The sign of y from x, gamma and beta; half of all gammas are negative.  Elements whose y is near 0 would be
 * masked by rounding alone: beta is far from what x makes of them. */
static void build_batch_grad_by_beta(op_test *t, const int64_t *p)
{
    ls_norm_attr a = fused_attr(p);
    ls_value in[6];

    a.by_beta = true;
    in[0] = op_in(t, OP_NORMAL, x_shape(p));
    in[1] = op_in(t, OP_NONZERO, x_shape(p));
    in[2] = op_in_wide(t, OP_NONZERO, LS_SHAPE(p[C]));
    in[3] = ls_fill(op_graph(t), LS_SHAPE(p[C]), op_dtype(t) == LS_F64 ? LS_F64 : LS_F32, 0.0);
    in[4] = op_in_wide(t, OP_POSITIVE, LS_SHAPE(p[C]));
    in[5] = ls_scale(op_in_wide(t, OP_NONZERO, LS_SHAPE(p[C])), 1e-3);
    op_length(t, p[N] * p[H] * p[W]);
    add_outputs(t, ls_graph_add(op_graph(t), &ls_op_batch_norm_grad, 6, in, &a), 3);
}

static void build_instance(op_test *t, const int64_t *p)
{
    ls_norm_attr a = fused_attr(p);
    ls_value in[2] = {op_in(t, OP_NORMAL, x_shape(p))}, y;

    if (a.residual) in[1] = op_in(t, OP_NORMAL, x_shape(p));
    op_length(t, p[H] * p[W]);
    y = ls_graph_add(op_graph(t), &ls_op_instance_norm, a.residual ? 2 : 1, in, &a);
    op_out(t, y);
    op_out_fixed(t, ls_graph_out(y, 1));
    op_out_fixed(t, ls_graph_out(y, 2));
}

static void build_instance_square(op_test *t, const int64_t *p)
{
    op_length(t, p[H] * p[W]);
    op_out(t, ls_square(ls_instance_norm(op_in(t, OP_NORMAL, x_shape(p)), attr(p))));
}

static void build_instance_single(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, x_shape(p));

    op_out(t, ls_add(ls_instance_norm(x, attr(p)), x));
}

static void build_instance_grad_fused(op_test *t, const int64_t *p)
{
    ls_norm_attr a = fused_attr(p);
    ls_value in[5];

    in[0] = op_in(t, OP_NORMAL, x_shape(p));
    in[1] = op_in(t, OP_NORMAL, x_shape(p));
    in[2] = op_in_wide(t, OP_NORMAL, LS_SHAPE(p[N], p[C]));
    in[3] = op_in_wide(t, OP_POSITIVE, LS_SHAPE(p[N], p[C]));
    in[4] = ls_scale(op_in(t, OP_NONZERO, x_shape(p)), 0.25);
    op_length(t, p[H] * p[W]);
    add_outputs(t, ls_graph_add(op_graph(t), &ls_op_instance_norm_grad, a.act != LS_ACT_NONE ? 5 : 4, in, &a),
                a.residual ? 2 : 1);
}

/* The sign of y from x, none of which is near the mean. */
static void build_instance_grad_by_x(op_test *t, const int64_t *p)
{
    const ls_dtype wide = op_dtype(t) == LS_F64 ? LS_F64 : LS_F32;
    ls_norm_attr a = fused_attr(p);
    ls_value in[4];

    a.by_beta = true;
    in[0] = op_in(t, OP_NORMAL, x_shape(p));
    in[1] = op_in(t, OP_NONZERO, x_shape(p));
    in[2] = ls_fill(op_graph(t), LS_SHAPE(p[N], p[C]), wide, 0.0);
    in[3] = op_in_wide(t, OP_POSITIVE, LS_SHAPE(p[N], p[C]));
    op_length(t, p[H] * p[W]);
    add_outputs(t, ls_graph_add(op_graph(t), &ls_op_instance_norm_grad, 4, in, &a), 1);
}

/* -- layer norm
 * --------------------------------------------------------------------------------------------------- */

enum { LAYER_EPS, RANK, D0 };

static ls_value add_layer(op_test *t, ls_value x, const int64_t *p)
{
    ls_norm_attr a = {.eps = 1.0 / (double)p[LAYER_EPS]};
    int64_t d = p[D0 + p[RANK] - 1];
    ls_value gamma = op_in_wide(t, OP_NONZERO, LS_SHAPE(d)), beta = op_in_wide(t, OP_NORMAL, LS_SHAPE(d));
    ls_value y = ls_layer_norm(x, gamma, beta, a);

    op_length(t, ls_shape_count(ls_value_shape(x)));
    op_out_fixed(t, ls_graph_out(y, 1));
    op_out_fixed(t, ls_graph_out(y, 2));
    return y;
}

static void build_layer(op_test *t, const int64_t *p)
{
    op_out(t, add_layer(t, op_in(t, OP_NORMAL, ls_shape_make((int)p[RANK], p + D0)), p));
}

static void build_layer_square(op_test *t, const int64_t *p)
{
    op_out(t, ls_square(add_layer(t, op_in(t, OP_NORMAL, ls_shape_make((int)p[RANK], p + D0)), p)));
}

static void build_layer_single(op_test *t, const int64_t *p)
{
    ls_value x = op_in(t, OP_NORMAL, ls_shape_make((int)p[RANK], p + D0));

    op_out(t, ls_add(add_layer(t, x, p), x));
}

/* What is added to dx is x's gradient by another way. */
static void build_layer_grad(op_test *t, const int64_t *p)
{
    const ls_norm_attr a = {.eps = 1.0 / (double)p[LAYER_EPS], .residual = true};
    const ls_shape x = ls_shape_make((int)p[RANK], p + D0), stat = ls_shape_make((int)p[RANK] - 1, p + D0);
    const int64_t d = p[D0 + p[RANK] - 1];
    ls_value in[6], out;

    in[0] = op_in(t, OP_NORMAL, x);
    in[1] = op_in(t, OP_NORMAL, x);
    in[2] = op_in_wide(t, OP_NONZERO, LS_SHAPE(d));
    in[3] = op_in_wide(t, OP_NORMAL, stat);
    in[4] = op_in_wide(t, OP_POSITIVE, stat);
    in[5] = op_in(t, OP_NORMAL, x);
    op_length(t, ls_shape_count(x));
    out = ls_graph_add(op_graph(t), &ls_op_layer_norm_grad, 6, in, &a);
    add_outputs(t, out, 3);
}

enum { NONE = LS_ACT_NONE, RELU = LS_ACT_RELU, LEAKY = LS_ACT_LEAKY, TANH = LS_ACT_TANH, GELU = LS_ACT_GELU };

/* clang-format off */
static const op_case cases[] = {
    /*                                                        N  C   H  W  1/eps   mom unbiased */
    {"batch", build_batch,                                   {3, 5,  4, 3, 100000, 10, 1}, OP_TWICE | OP_BF16},
    {"batch, biased running variance", build_batch,          {3, 5,  4, 3, 100000, 10, 0}, OP_TWICE},
    {"batch, large eps", build_batch,                        {2, 3,  3, 3, 2,      50, 1}, OP_TWICE},
    {"batch, squared", build_batch_square,                   {2, 3,  3, 2, 1000,   10, 1}, OP_TWICE},
    {"batch, matrix", build_batch,                           {7, 13, 0, 0, 100000, 10, 1}, OP_TWICE | OP_BF16},
    {"batch, matrix, 16 channels", build_batch,              {6, 16, 0, 0, 100000, 1,  0}, 0},
    {"batch, 16 channels", build_batch,                      {2, 16, 3, 5, 100000, 10, 1}, OP_BF16},
    {"batch, 32 channels", build_batch,                      {2, 32, 4, 4, 1000,   10, 0}, 0},
    {"batch, one image", build_batch,                        {1, 3,  5, 5, 100000, 10, 1}, 0},
    {"batch, one element", build_batch_single,               {1, 1,  1, 1, 10,     10, 1}, 0},
    {"batch, one row", build_batch_single,                   {1, 16, 1, 1, 10,     10, 1}, 0},
    {"batch, one row, matrix", build_batch_single,           {1, 3,  0, 0, 10,     10, 0}, 0},
    {"batch, constant", build_batch_constant,                {2, 3,  4, 4, 100000, 10, 1}, 0},
    {"batch, empty", build_batch,                            {0, 3,  4, 4, 100000, 10, 1}, 0},
    {"batch, no channels", build_batch,                      {2, 0,  4, 4, 100000, 10, 1}, 0},
    /*                                                        N  C   H  W  1/eps   mom unb act residual */
    {"batch, relu", build_batch_fused,                       {3, 5,  4, 3, 100000, 10, 1, RELU,  0}, OP_NO_GRAD | OP_BF16},
    {"batch, relu, 16 channels", build_batch_fused,          {2, 16, 4, 4, 100000, 10, 1, RELU,  0}, OP_NO_GRAD},
    {"batch, leaky", build_batch_fused,                      {3, 5,  4, 3, 100000, 10, 1, LEAKY, 0}, OP_NO_GRAD},
    {"batch, tanh, matrix", build_batch_fused,               {5, 7,  0, 0, 100000, 10, 0, TANH,  0}, OP_NO_GRAD},
    {"batch, gelu", build_batch_fused,                       {3, 5,  4, 3, 100000, 10, 1, GELU,  0}, OP_NO_GRAD},
    {"batch, residual", build_batch_fused,                   {3, 5,  4, 3, 100000, 10, 1, NONE,  1}, OP_NO_GRAD},
    {"batch, residual, relu", build_batch_fused,             {3, 5,  4, 3, 100000, 10, 1, RELU,  1}, OP_NO_GRAD | OP_BF16},
    {"batch, residual, relu, 32 channels", build_batch_fused, {2, 32, 4, 4, 100000, 10, 1, RELU, 1}, OP_NO_GRAD},
    {"batch, residual, relu, empty", build_batch_fused,      {0, 3,  4, 4, 100000, 10, 1, RELU,  1}, OP_NO_GRAD},
    {"batch gradient", build_batch_grad_fused,               {3, 5,  4, 3, 100000, 10, 1, NONE,  0}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, relu", build_batch_grad_fused,         {3, 5,  4, 3, 100000, 10, 1, RELU,  0}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, relu, 16 channels", build_batch_grad_fused, {2, 16, 4, 4, 100000, 10, 1, RELU, 0}, OP_NO_GRAD},
    {"batch gradient, leaky", build_batch_grad_fused,        {3, 5,  4, 3, 100000, 10, 1, LEAKY, 0}, OP_NO_GRAD},
    {"batch gradient, tanh", build_batch_grad_fused,         {3, 5,  4, 3, 100000, 10, 1, TANH,  0}, OP_NO_GRAD},
    {"batch gradient, residual", build_batch_grad_fused,     {3, 5,  4, 3, 100000, 10, 1, NONE,  1}, OP_NO_GRAD},
    {"batch gradient, residual, relu", build_batch_grad_fused, {3, 5, 4, 3, 100000, 10, 1, RELU, 1}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, residual, relu, 32 channels", build_batch_grad_fused, {2, 32, 4, 4, 100000, 10, 1, RELU, 1}, OP_NO_GRAD},
    {"batch gradient, residual, relu, empty", build_batch_grad_fused, {0, 3, 4, 4, 100000, 10, 1, RELU, 1}, OP_NO_GRAD},
    {"batch gradient, of a sum", build_batch_grad_sums,      {3, 5,  4, 3, 100000, 10, 1, NONE,  1}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, leaky, of a sum", build_batch_grad_sums, {3, 5, 4, 3, 100000, 10, 1, LEAKY, 1}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, relu, of a sum, 64 channels", build_batch_grad_sums, {3, 64, 8, 8, 100000, 10, 1, RELU, 1}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, relu by beta", build_batch_grad_by_beta, {3, 5, 4, 3, 100000, 10, 1, RELU, 0}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, leaky by beta, 64 channels", build_batch_grad_by_beta, {3, 64, 8, 8, 100000, 10, 1, LEAKY, 0}, OP_NO_GRAD | OP_BF16},
    {"batch gradient, relu by beta, empty", build_batch_grad_by_beta, {0, 3, 4, 4, 100000, 10, 1, RELU, 0}, OP_NO_GRAD},

    {"instance", build_instance,                             {2, 3,  4, 5, 100000, 0, 0, NONE, 0}, OP_TWICE | OP_BF16},
    {"instance, large eps", build_instance,                  {2, 3,  3, 3, 2,      0, 0, NONE, 0}, OP_TWICE},
    {"instance, squared", build_instance_square,             {2, 3,  3, 3, 1000,   0, 0, NONE, 0}, OP_TWICE},
    {"instance, 16 channels", build_instance,                {2, 16, 4, 4, 100000, 0, 0, NONE, 0}, 0},
    {"instance, 32 channels", build_instance,                {1, 32, 5, 3, 100000, 0, 0, NONE, 0}, 0},
    {"instance, one element", build_instance_single,         {1, 2,  1, 1, 10,     0, 0, NONE, 0}, 0},
    {"instance, empty batch", build_instance,                {0, 3,  4, 4, 100000, 0, 0, NONE, 0}, 0},
    {"instance, relu", build_instance,                       {2, 3,  4, 5, 100000, 0, 0, RELU, 0}, OP_NO_GRAD | OP_BF16},
    {"instance, leaky, 16 channels", build_instance,         {2, 16, 4, 4, 100000, 0, 0, LEAKY, 0}, OP_NO_GRAD},
    {"instance, residual", build_instance,                   {2, 3,  4, 5, 100000, 0, 0, NONE, 1}, OP_NO_GRAD},
    {"instance, residual, relu, 16 channels", build_instance, {1, 16, 4, 4, 100000, 0, 0, RELU, 1}, OP_NO_GRAD},
    {"instance gradient", build_instance_grad_fused,         {2, 3,  4, 5, 100000, 0, 0, NONE, 0}, OP_NO_GRAD | OP_BF16},
    {"instance gradient, relu", build_instance_grad_fused,   {2, 3,  4, 5, 100000, 0, 0, RELU, 0}, OP_NO_GRAD | OP_BF16},
    {"instance gradient, leaky, 16 channels", build_instance_grad_fused, {2, 16, 4, 4, 100000, 0, 0, LEAKY, 0}, OP_NO_GRAD},
    {"instance gradient, tanh", build_instance_grad_fused,   {2, 3,  4, 5, 100000, 0, 0, TANH, 0}, OP_NO_GRAD},
    {"instance gradient, residual", build_instance_grad_fused, {2, 3, 4, 5, 100000, 0, 0, NONE, 1}, OP_NO_GRAD},
    {"instance gradient, residual, relu", build_instance_grad_fused, {1, 16, 4, 4, 100000, 0, 0, RELU, 1}, OP_NO_GRAD},
    {"instance gradient, relu by x", build_instance_grad_by_x, {2, 3, 4, 5, 100000, 0, 0, RELU, 0}, OP_NO_GRAD | OP_BF16},
    {"instance gradient, leaky by x, 64 channels", build_instance_grad_by_x, {3, 64, 8, 8, 100000, 0, 0, LEAKY, 0}, OP_NO_GRAD | OP_BF16},
    {"instance gradient, relu by x, empty", build_instance_grad_by_x, {0, 3, 4, 4, 100000, 0, 0, RELU, 0}, OP_NO_GRAD},

    /*                                 1/eps   rank dims */
    {"layer", build_layer,            {100000, 2, 7, 11}, OP_TWICE | OP_BF16},
    {"layer, large eps", build_layer, {2,      2, 3, 5}, OP_TWICE},
    {"layer, squared", build_layer_square, {1000, 2, 3, 5}, OP_TWICE},
    {"layer, one row", build_layer,   {100000, 1, 13}, 0},
    {"layer, sequences", build_layer, {100000, 3, 2, 5, 16}, OP_TWICE},
    {"layer, 64 wide", build_layer,   {100000, 3, 2, 3, 64}, OP_BF16},
    {"layer, one element per row", build_layer_single, {10, 2, 5, 1}, 0},
    {"layer gradient, added to", build_layer_grad, {100000, 2, 7, 11}, OP_NO_GRAD | OP_BF16},
    {"layer gradient, added to, 768 wide", build_layer_grad, {100000, 3, 2, 9, 768}, OP_NO_GRAD | OP_BF16},
    {"layer gradient, added to, no rows", build_layer_grad, {100000, 2, 0, 5}, OP_NO_GRAD},
    {"layer, no rows", build_layer,   {100000, 2, 0, 5}, 0},
    {"layer, empty rows", build_layer, {100000, 2, 3, 0}, 0},
};
/* clang-format on */

OP_CASE_LIST(norm, cases);
