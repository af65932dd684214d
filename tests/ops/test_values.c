/* Kernels against numbers worked out by hand: the case lists compare other backends with the
 * reference and gradients with the forward pass, so somebody has to vouch for the forward pass itself. */
#include <math.h>
#include <stdio.h>

#include "backend/backend.h"
#include "check.h"
#include "op_plan.h"
#include "ops/ops.h"
#include "passes/autodiff.h"

#define MOST 32

/* Runs `build` on x (1, 2, 3, ... unless `x` is given) and compares its result with the numbers in `want`. */
typedef struct value_case {
    const char *name;
    ls_value (*build)(ls_value x);
    ls_shape in;
    const double *x;
    int n;
    double want[MOST];
} value_case;

static void run_case(const value_case *c, const char *device, ls_dtype dtype)
{
    op_plan p;
    double x[MOST], relative = dtype == LS_F64 ? 1e-11 : 1e-6;
    const ls_tensor *t;
    bool ok;

    for (int i = 0; i < MOST; i++) x[i] = c->x != NULL ? c->x[i] : i + 1;
    op_plan_begin(&p);
    ls_graph_fetch(c->build(ls_graph_input(p.g, "x", dtype, c->in)), "y");
    op_plan_compile(&p, device);
    op_set(op_plan_find(&p, "x"), x, ls_shape_count(c->in));
    run_plan(p.plan);
    t = op_plan_find(&p, "y");
    ok = CHECK_EQ_INT(ls_shape_count(t->shape), c->n);
    for (int i = 0; ok && i < c->n; i++) {
        double got = tensor_get(t, i), want = c->want[i];
        ok = isnan(want)   ? CHECK(isnan(got))
             : isinf(want) ? CHECK(got == want)
                           : CHECK_NEAR(got, want, relative * (1 + fabs(want)));
        if (!ok) printf("element %d\n", i);
    }
    if (!ok) printf("%s %s: %s\n", device, ls_dtype_name(dtype), c->name);
    op_plan_end(&p);
}

/* -- what is run -------------------------------------------------------------------------------------------
 */

static ls_value row(ls_value x)
{
    return ls_slice(x, 0, 0, 1);
}
static ls_value column(ls_value x)
{
    return ls_slice(x, 1, 0, 1);
}
static ls_value sub_broadcast(ls_value x)
{
    return ls_sub(row(x), column(x));
}
static ls_value div_row(ls_value x)
{
    return ls_div(x, row(x));
}
static ls_value affine(ls_value x)
{
    return ls_affine(x, -2, 0.5);
}
static ls_value leaky(ls_value x)
{
    return ls_leaky_relu(x, 0.25);
}
static ls_value maximum_next(ls_value x)
{
    return ls_maximum(ls_slice(x, 0, 0, 5), ls_slice(x, 0, 1, 5));
}
static ls_value minimum_next(ls_value x)
{
    return ls_minimum(ls_slice(x, 0, 0, 5), ls_slice(x, 0, 1, 5));
}
static ls_value to_i32(ls_value x)
{
    return ls_cast(x, LS_I32);
}
static ls_value to_u8(ls_value x)
{
    return ls_cast(x, LS_U8);
}
static ls_value to_bool(ls_value x)
{
    return ls_cast(x, LS_BOOL);
}
static ls_value to_bf16(ls_value x)
{
    return ls_cast(x, LS_BF16);
}
static ls_value to_f16(ls_value x)
{
    return ls_cast(x, LS_F16);
}
/* In units of the smallest number. */
static ls_value tiny_f16(ls_value x)
{
    return ls_scale(ls_cast(ls_cast(x, LS_F16), LS_F32), 0x1p24);
}
static ls_value transpose(ls_value x)
{
    return ls_transpose(x, (const int[]){2, 0, 1});
}
static ls_value slice_middle(ls_value x)
{
    return ls_slice(x, 1, 1, 1);
}
static ls_value concat_middle(ls_value x)
{
    return ls_concat(2, (ls_value[]){ls_slice(x, 1, 1, 1), x}, 1);
}
static ls_value broadcast(ls_value x)
{
    return ls_broadcast_to(x, LS_SHAPE(2, 2, 3));
}
static ls_value sum_outer(ls_value x)
{
    return ls_reduce_sum(x, 5, false);
}
static ls_value mean_middle(ls_value x)
{
    return ls_reduce_mean(x, 2, false);
}
static ls_value mean_all(ls_value x)
{
    return ls_reduce_mean(x, LS_ALL_AXES, false);
}
static ls_value sum_to_column(ls_value x)
{
    return ls_sum_to(x, LS_SHAPE(2, 1));
}
static ls_value max_rows(ls_value x)
{
    return ls_reduce_max(x, 1);
}
static ls_value max_rows_index(ls_value x)
{
    return ls_graph_out(ls_reduce_max(x, 1), 1);
}
static ls_value max_columns_index(ls_value x)
{
    return ls_graph_out(ls_reduce_max(x, 0), 1);
}
static ls_value max_grad(ls_value x)
{
    ls_value y = ls_reduce_max(x, 1);

    return ls_reduce_max_grad(ls_affine(y, 0, 7), ls_graph_out(y, 1), 1, 3);
}
/* x is (4, 3): its upper half times the transpose of the lower, and the transpose of the upper times the
 * lower, each stored both ways. */
static ls_value upper(ls_value x)
{
    return ls_slice(x, 0, 0, 2);
}
static ls_value lower(ls_value x)
{
    return ls_slice(x, 0, 2, 2);
}
static ls_value turned(ls_value x)
{
    return ls_transpose(x, (const int[]){1, 0});
}
static ls_value product(ls_value x)
{
    return ls_matmul(upper(x), turned(lower(x)), false, false);
}
static ls_value product_trans_b(ls_value x)
{
    return ls_matmul(upper(x), lower(x), false, true);
}
static ls_value product_trans_a(ls_value x)
{
    return ls_matmul(upper(x), lower(x), true, false);
}
static ls_value product_trans_both(ls_value x)
{
    return ls_matmul(upper(x), turned(lower(x)), true, true);
}
static ls_value product_batch(ls_value x)
{
    return ls_matmul(x, x, false, false);
}
static ls_value product_shared(ls_value x)
{
    return ls_matmul(x, ls_reshape(ls_slice(x, 0, 0, 1), LS_SHAPE(2, 2)), false, false);
}
static ls_value product_fused(ls_value x)
{
    ls_matmul_attr attr = {.trans_b = true, .act = LS_ACT_LEAKY, .slope = 0.5};
    ls_value bias = ls_affine(ls_reshape(column(x), LS_SHAPE(2)), -10, 0);

    return ls_graph_add(x.g, &ls_op_matmul, 3, (ls_value[]){x, x, bias}, &attr);
}
static ls_value bias_first(ls_value x)
{
    return ls_bias(x, ls_reshape(column(x), LS_SHAPE(2)), 0);
}
static ls_value bias_last(ls_value x)
{
    return ls_bias(x, ls_reshape(row(x), LS_SHAPE(3)), -1);
}
/* (x + 1) * (x - 0.5), clipped at 3 from above. */
static ls_value chain(ls_value x)
{
    ls_pointwise_attr attr = {.n_steps = 4,
                              .step = {{LS_PW_AFFINE, 0, 0, {1, 1}},
                                       {LS_PW_AFFINE, 0, 0, {1, -0.5}},
                                       {LS_PW_MUL, 2, 3, {0}},
                                       {LS_PW_MIN, 4, 1, {0}}}};
    ls_value three = ls_fill(x.g, LS_SHAPE_SCALAR, ls_value_dtype(x), 3);

    return ls_graph_add(x.g, &ls_op_pointwise, 2, (ls_value[]){x, three}, &attr);
}

/* Gradients where finite differences cannot look. */
static ls_value slope(ls_value y, ls_value x)
{
    ls_value dx;

    ls_autodiff(y, (ls_value){y.g, -1}, 1, &x, &dx);
    return dx;
}
static ls_value relu_slope(ls_value x)
{
    return slope(ls_relu(x), x);
}
static ls_value leaky_slope(ls_value x)
{
    return slope(leaky(x), x);
}
static ls_value abs_slope(ls_value x)
{
    return slope(ls_abs(x), x);
}
static ls_value both_slopes(ls_value y, ls_value a, ls_value b)
{
    return ls_concat(2, (ls_value[]){slope(y, a), slope(y, b)}, 0);
}
static ls_value maximum_ties(ls_value x)
{
    ls_value a = ls_copy(x), b = ls_copy(x);

    return both_slopes(ls_maximum(a, b), a, b);
}
static ls_value minimum_ties(ls_value x)
{
    ls_value a = ls_copy(x), b = ls_copy(x);

    return both_slopes(ls_minimum(a, b), a, b);
}

static const double mixed[MOST] = {-2, -0.5, 0, 0.5, 2, 40};
static const double huge[MOST] = {-1000, -1, 0, 1, 1000, 5};
static const double with_nan[MOST] = {1, 3, NAN, 2, 2, -1};
static const double casts[MOST] = {-2.75, 2.75, 3e9, -3e9, NAN, 300};
static const double ties[MOST] = {5, 2, 5, 1, 1, 1};
static const double rounding[MOST] = {1.00390625, 1.01171875, 1.005, -256.5};
static const double half_ties[MOST] = {2049, 2051, -2049, 65519, 1.0 / 3};
static const double half_large[MOST] = {65504, 65520, 1e30, -65536, NAN};
static const double half_small[MOST] = {0x1p-24, 0x1p-25, 0x1.8p-24, 0x1p-26, 0x1.ff8p-15, -0x1.4p-24};

static const value_case cases[] = {
    {"sub, broadcast", sub_broadcast, {2, {2, 3}}, NULL, 6, {0, 1, 2, -3, -2, -1}},
    {"div, broadcast", div_row, {2, {2, 3}}, NULL, 6, {1, 1, 1, 4, 2.5, 2}},
    {"affine", affine, {1, {3}}, NULL, 3, {-1.5, -3.5, -5.5}},
    {"relu", ls_relu, {1, {6}}, mixed, 6, {0, 0, 0, 0.5, 2, 40}},
    {"leaky_relu", leaky, {1, {6}}, mixed, 6, {-0.5, -0.125, 0, 0.5, 2, 40}},
    {"gelu",
     ls_gelu,
     {1, {5}},
     mixed,
     5,
     {-0.045500263896, -0.154268769363, 0, 0.345731230637, 1.954499736104}},
    {"tanh",
     ls_tanh,
     {1, {5}},
     mixed,
     5,
     {-0.964027580076, -0.462117157260, 0, 0.462117157260, 0.964027580076}},
    {"sigmoid", ls_sigmoid, {1, {5}}, huge, 5, {0, 0.268941421370, 0.5, 0.731058578630, 1}},
    {"softplus", ls_softplus, {1, {5}}, huge, 5, {0, 0.313261687518, 0.693147180560, 1.313261687518, 1000}},
    {"exp", ls_exp, {1, {4}}, mixed, 4, {0.135335283237, 0.606530659713, 1, 1.648721270700}},
    {"log", ls_ln, {1, {3}}, NULL, 3, {0, 0.693147180560, 1.098612288668}},
    {"sqrt", ls_sqrt, {1, {4}}, NULL, 4, {1, 1.414213562373, 1.732050807569, 2}},
    {"rsqrt", ls_rsqrt, {1, {4}}, NULL, 4, {1, 0.707106781187, 0.577350269190, 0.5}},
    {"square", ls_square, {1, {3}}, mixed, 3, {4, 0.25, 0}},
    {"abs", ls_abs, {1, {4}}, mixed, 4, {2, 0.5, 0, 0.5}},
    {"sign", ls_sign, {1, {6}}, with_nan, 6, {1, 1, NAN, 1, 1, -1}},
    {"relu", ls_relu, {1, {6}}, with_nan, 6, {1, 3, NAN, 2, 2, 0}},
    {"sign of zero", ls_sign, {1, {4}}, mixed, 4, {-1, -1, 0, 1}},
    {"maximum, NaN on either side", maximum_next, {1, {6}}, with_nan, 5, {3, NAN, NAN, 2, 2}},
    {"minimum, NaN on either side", minimum_next, {1, {6}}, with_nan, 5, {1, NAN, NAN, 2, -1}},
    {"cast to i32", to_i32, {1, {6}}, casts, 6, {-2, 2, 2147483647, -2147483648.0, 0, 300}},
    {"cast to u8", to_u8, {1, {6}}, casts, 6, {0, 2, 255, 0, 0, 255}},
    {"cast to bool", to_bool, {1, {6}}, mixed, 6, {1, 1, 0, 1, 1, 1}},
    {"cast to bf16, ties to even", to_bf16, {1, {4}}, rounding, 4, {1, 1.015625, 1.0078125, -256}},

    {"cast to f16, ties to even", to_f16, {1, {5}}, half_ties, 5, {2048, 2052, -2048, 65504, 0.333251953125}},
    {"cast to f16, overflow", to_f16, {1, {5}}, half_large, 5, {65504, INFINITY, INFINITY, -INFINITY, NAN}},
    {"cast to f16, subnormals", tiny_f16, {1, {6}}, half_small, 6, {1, 0, 2, 0, 1023, -1}},

    {"transpose", transpose, {3, {2, 2, 3}}, NULL, 12, {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}},
    {"slice", slice_middle, {3, {2, 2, 3}}, NULL, 6, {4, 5, 6, 10, 11, 12}},
    {"concat", concat_middle, {3, {2, 2, 2}}, NULL, 12, {3, 4, 1, 2, 3, 4, 7, 8, 5, 6, 7, 8}},
    {"broadcast_to", broadcast, {3, {2, 1, 3}}, NULL, 12, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},

    {"reduce_sum", sum_outer, {3, {2, 2, 3}}, NULL, 2, {1 + 2 + 3 + 7 + 8 + 9, 4 + 5 + 6 + 10 + 11 + 12}},
    {"reduce_mean", mean_middle, {3, {2, 2, 3}}, NULL, 6, {2.5, 3.5, 4.5, 8.5, 9.5, 10.5}},
    {"reduce_mean of none", mean_all, {1, {0}}, NULL, 1, {NAN}},
    {"sum_to", sum_to_column, {3, {2, 2, 2}}, NULL, 2, {1 + 2 + 5 + 6, 3 + 4 + 7 + 8}},
    {"reduce_max", max_rows, {2, {2, 3}}, with_nan, 2, {NAN, 2}},
    {"reduce_max, first of equals", max_rows_index, {2, {2, 3}}, ties, 2, {0, 0}},
    {"reduce_max, index of NaN", max_rows_index, {2, {2, 3}}, with_nan, 2, {2, 0}},
    {"reduce_max over rows", max_columns_index, {2, {3, 2}}, ties, 2, {0, 0}},
    {"reduce_max over rows, index of NaN", max_columns_index, {2, {3, 2}}, with_nan, 2, {1, 0}},
    {"reduce_max_grad", max_grad, {2, {2, 3}}, with_nan, 6, {0, 0, NAN, 7, 0, 0}},

    {"matmul", product, {2, {4, 3}}, NULL, 4, {50, 68, 122, 167}},
    {"matmul, b transposed", product_trans_b, {2, {4, 3}}, NULL, 4, {50, 68, 122, 167}},
    {"matmul, a transposed", product_trans_a, {2, {4, 3}}, NULL, 9, {47, 52, 57, 64, 71, 78, 81, 90, 99}},
    {"matmul, both transposed",
     product_trans_both,
     {2, {4, 3}},
     NULL,
     9,
     {47, 52, 57, 64, 71, 78, 81, 90, 99}},
    {"matmul, batch", product_batch, {3, {2, 2, 2}}, NULL, 8, {7, 10, 15, 22, 67, 78, 91, 106}},
    {"matmul, shared b", product_shared, {3, {2, 2, 2}}, NULL, 8, {7, 10, 15, 22, 23, 34, 31, 46}},
    {"matmul, bias and leaky relu", product_fused, {2, {2, 3}}, NULL, 4, {4, -4, 22, 37}},
    {"bias of the first", bias_first, {2, {2, 3}}, NULL, 6, {2, 3, 4, 8, 9, 10}},
    {"bias of the last", bias_last, {2, {2, 3}}, NULL, 6, {2, 4, 6, 5, 7, 9}},
    {"pointwise", chain, {1, {5}}, mixed, 5, {2.5, -0.5, -0.5, 0, 3}},

    {"gradient of equal operands: maximum", maximum_ties, {1, {2}}, NULL, 4, {0, 0, 1, 1}},
    {"gradient of equal operands: minimum", minimum_ties, {1, {2}}, NULL, 4, {0, 0, 1, 1}},
    {"gradient at the kink: relu", relu_slope, {1, {5}}, mixed, 5, {0, 0, 0, 1, 1}},
    {"gradient at the kink: leaky_relu", leaky_slope, {1, {5}}, mixed, 5, {0.25, 0.25, 0.25, 1, 1}},
    {"gradient at the kink: abs", abs_slope, {1, {5}}, mixed, 5, {-1, -1, 0, 1, 1}},
};

static void reference_kernels_compute_known_numbers(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) run_case(&cases[i], "ref", LS_F64);
}

static void all_backends_compute_known_numbers(void)
{
    for (int b = 0; ls_backends[b] != NULL; b++)
        for (size_t i = 0; device_is_tested(ls_backends[b]) && i < sizeof cases / sizeof cases[0]; i++)
            run_case(&cases[i], ls_backends[b]->name, LS_F32);
}

/* -- the table of element-wise functions -------------------------------------------------------------------
 */

static void every_function_code_belongs_to_one_op(void)
{
    int n;
    const ls_op *const *ops = ls_ops_all(&n);

    for (int pw = LS_PW_NONE + 1; pw < LS_PW_N; pw++) {
        int found = 0;
        for (int i = 0; i < n; i++) found += ops[i]->pw == (ls_pw)pw;
        if (!CHECK_EQ_INT(found, 1)) printf("code %d\n", pw);
    }
    for (int i = 0; i < n; i++) {
        if (ops[i]->pw == LS_PW_NONE) continue;
        CHECK(ops[i]->pw_eval != NULL && ops[i]->n_out == 1 && ops[i]->min_in == ops[i]->max_in);
        CHECK_EQ_STR(ls_pw_name(ops[i]->pw), ops[i]->name);
        CHECK_EQ_INT(ls_pw_is_binary(ops[i]->pw), ops[i]->min_in == 2);
    }
    CHECK_NEAR(ls_pw_eval(LS_PW_SUB, 5, 3, NULL), 2, 0);
    CHECK_NEAR(ls_pw_eval(LS_PW_AFFINE, 5, 0, (const double[]){2, -1}), 9, 0);
    CHECK_NEAR(ls_pw_eval(LS_PW_SIGMOID_GRAD, 2, 0.25, NULL), 0.375, 0);
    CHECK_NEAR(ls_pw_eval(LS_PW_GELU_GRAD, 2, 1, NULL), 2 * 1.083315470588, 1e-9);
}

static void activations_are_those_functions(void)
{
    CHECK_NEAR(ls_act_eval(LS_ACT_NONE, 0.25, -2), -2, 0);
    CHECK_NEAR(ls_act_eval(LS_ACT_RELU, 0.25, -2), 0, 0);
    CHECK_NEAR(ls_act_eval(LS_ACT_LEAKY, 0.25, -2), -0.5, 0);
    CHECK_NEAR(ls_act_eval(LS_ACT_TANH, 0.25, -2), -0.964027580076, 1e-9);
    CHECK_NEAR(ls_act_eval(LS_ACT_GELU, 0.25, -2), -0.045500263896, 1e-9);
    CHECK_NEAR(ls_act_grad_from_y(LS_ACT_NONE, 0.25, -2, 3), 3, 0);
    CHECK_NEAR(ls_act_grad_from_y(LS_ACT_RELU, 0.25, 0, 3), 0, 0);
    CHECK_NEAR(ls_act_grad_from_y(LS_ACT_RELU, 0.25, 2, 3), 3, 0);
    CHECK_NEAR(ls_act_grad_from_y(LS_ACT_LEAKY, 0.25, -2, 3), 0.75, 0);
    CHECK_NEAR(ls_act_grad_from_y(LS_ACT_TANH, 0.25, 0.5, 3), 2.25, 0);
    CHECK_EQ_STR(ls_act_name(LS_ACT_GELU), "gelu");
}

int main(void)
{
    CHECK_RUN(reference_kernels_compute_known_numbers);
    CHECK_RUN(all_backends_compute_known_numbers);
    CHECK_RUN(every_function_code_belongs_to_one_op);
    CHECK_RUN(activations_are_those_functions);
    return CHECK_DONE();
}
