/* pointwise_template.h: the element-wise functions in vectors; included by pointwise_avx512.c and _avx2.c,
 * which define PW_TABLE.
 *
 * Each function has a version for every combination of full and single operands, so that single elements need
 * no buffer.  In every step both operands are read before the result is written: results may overwrite them.
 */
#include "backend/cpu/pointwise.h"
#include "backend/cpu/vec_math.h"

#define PW_LOOP(A, B, EXPR)                                                                                  \
    do {                                                                                                     \
        int64_t i = 0;                                                                                       \
        for (; i + LSI_VL <= n; i += LSI_VL) {                                                               \
            const vf a = (A) ? v_load(x + i) : first_x, b = (B) ? v_load(y + i) : first_y;                   \
            (void)b;                                                                                         \
            v_store(o + i, EXPR);                                                                            \
        }                                                                                                    \
        if (i < n) {                                                                                         \
            const vf a = (A) ? v_load_n(x + i, n - i) : first_x, b = (B) ? v_load_n(y + i, n - i) : first_y; \
            (void)b;                                                                                         \
            v_store_n(o + i, EXPR, n - i);                                                                   \
        }                                                                                                    \
    } while (0)

#define PW_BINARY(NAME, EXPR)                                                                                \
    static void NAME(float *o, const float *x, const float *y, int sa, int sb, int64_t n, float p0,          \
                     float p1)                                                                               \
    {                                                                                                        \
        const vf first_x = v_set1(n > 0 ? x[0] : 0), first_y = v_set1(n > 0 ? y[0] : 0);                     \
        const vf p = v_set1(p0);                                                                             \
        (void)p;                                                                                             \
        (void)p1;                                                                                            \
        if (sa && sb)                                                                                        \
            PW_LOOP(1, 1, EXPR);                                                                             \
        else if (sa)                                                                                         \
            PW_LOOP(1, 0, EXPR);                                                                             \
        else if (sb)                                                                                         \
            PW_LOOP(0, 1, EXPR);                                                                             \
        else                                                                                                 \
            PW_LOOP(0, 0, EXPR);                                                                             \
    }

#define PW_UNARY(NAME, EXPR)                                                                                 \
    static void NAME(float *o, const float *x, const float *y, int sa, int sb, int64_t n, float p0,          \
                     float p1)                                                                               \
    {                                                                                                        \
        const vf first_x = v_set1(n > 0 ? x[0] : 0), first_y = v_zero(), p = v_set1(p0), q = v_set1(p1);     \
        (void)y;                                                                                             \
        (void)sb;                                                                                            \
        (void)p;                                                                                             \
        (void)q;                                                                                             \
        if (sa)                                                                                              \
            PW_LOOP(1, 0, EXPR);                                                                             \
        else                                                                                                 \
            PW_LOOP(0, 0, EXPR);                                                                             \
    }

PW_BINARY(pw_add, v_add(a, b))
PW_BINARY(pw_sub, v_sub(a, b))
PW_BINARY(pw_mul, v_mul(a, b))
PW_BINARY(pw_div, v_div(a, b))
PW_BINARY(pw_max, v_max_nan(a, b))
PW_BINARY(pw_min, v_min_nan(a, b))
PW_BINARY(pw_relu_grad, v_graph_act_grad(a, b, LS_ACT_RELU, 0))
PW_BINARY(pw_leaky_grad, v_leaky_grad(a, b, p))
PW_BINARY(pw_gelu_grad, v_gelu_grad(a, b))
PW_BINARY(pw_tanh_grad, v_graph_act_grad(a, b, LS_ACT_TANH, 0))
PW_BINARY(pw_sigmoid_grad, v_mul(v_mul(a, b), v_sub(v_set1(1.0f), b)))
PW_UNARY(pw_affine, v_fma(p, a, q))
PW_UNARY(pw_relu, v_max(v_zero(), a))
PW_UNARY(pw_leaky, v_leaky_grad(a, a, p))
PW_UNARY(pw_gelu, v_gelu(a))
PW_UNARY(pw_tanh, v_tanh(a))
PW_UNARY(pw_sigmoid, v_sigmoid(a))
PW_UNARY(pw_exp, v_exp(a))
PW_UNARY(pw_log, v_log(a))
PW_UNARY(pw_sqrt, v_sqrt(a))
PW_UNARY(pw_rsqrt, v_div(v_set1(1.0f), v_sqrt(a)))
PW_UNARY(pw_square, v_mul(a, a))
PW_UNARY(pw_abs, v_abs(a))
PW_UNARY(pw_sign, v_select_gt(v_abs(a), v_zero(), v_copysign(v_set1(1.0f), a), a))
PW_UNARY(pw_softplus, v_softplus(a))
PW_UNARY(pw_copy, a)

const lsi_pw_table PW_TABLE = {
    .fn =
        {
            [LS_PW_ADD] = pw_add,
            [LS_PW_SUB] = pw_sub,
            [LS_PW_MUL] = pw_mul,
            [LS_PW_DIV] = pw_div,
            [LS_PW_MAX] = pw_max,
            [LS_PW_MIN] = pw_min,
            [LS_PW_AFFINE] = pw_affine,
            [LS_PW_RELU] = pw_relu,
            [LS_PW_RELU_GRAD] = pw_relu_grad,
            [LS_PW_LEAKY] = pw_leaky,
            [LS_PW_LEAKY_GRAD] = pw_leaky_grad,
            [LS_PW_GELU] = pw_gelu,
            [LS_PW_GELU_GRAD] = pw_gelu_grad,
            [LS_PW_TANH] = pw_tanh,
            [LS_PW_TANH_GRAD] = pw_tanh_grad,
            [LS_PW_SIGMOID] = pw_sigmoid,
            [LS_PW_SIGMOID_GRAD] = pw_sigmoid_grad,
            [LS_PW_EXP] = pw_exp,
            [LS_PW_LOG] = pw_log,
            [LS_PW_SQRT] = pw_sqrt,
            [LS_PW_RSQRT] = pw_rsqrt,
            [LS_PW_SQUARE] = pw_square,
            [LS_PW_ABS] = pw_abs,
            [LS_PW_SIGN] = pw_sign,
            [LS_PW_SOFTPLUS] = pw_softplus,
            [LS_PW_COPY] = pw_copy,
        },
    .impl = PW_IMPL,
};
