/* op_test.h: one case list per family of ops serves every test of an op.
 *
 * A case is a function that builds a small graph.  For each case the harness
 *   1. evaluates outputs and gradients with the reference kernels in double precision,
 *   2. checks the gradients against central finite differences (and, with OP_TWICE, the gradient of the
 * gradient),
 *   3. compares every other backend, in f32 (with OP_BF16 in bf16 and f16, too), with the reference, within a
 * tolerance computed from dtype and reduction length,
 *   4. runs each backend twice and requires identical bits.
 * At the end every op of the list must have been exercised, or the test fails. */
#ifndef TESTS_OPS_OP_TEST_H
#define TESTS_OPS_OP_TEST_H

#include "ops/ops.h"

typedef struct op_test op_test;

/* How random inputs are drawn.  Functions with kinks need inputs that stay away from them, or finite
 * differences would measure the kink. */
typedef enum op_range {
    OP_NORMAL,   /* standard normal */
    OP_NONZERO,  /* standard normal pushed at least 0.1 away from zero */
    OP_POSITIVE, /* 0.5 to 2 */
    OP_DISTINCT  /* a shuffled grid with spacing 0.05: no two elements are close */
} op_range;

enum {
    OP_NO_GRAD = 1, /* not differentiable, or made by fusion after differentiation */
    OP_TWICE = 2,   /* also check the gradient of the gradient */
    OP_BF16 = 4,    /* also run with bf16 and f16 storage */
};

typedef struct op_case {
    const char *name;
    void (*build)(op_test *t, const int64_t *p);
    int64_t p[14]; /* free for the build function */
    unsigned flags;
} op_case;

typedef struct op_case_list {
    const char *name;
    const op_case *cases;
    int n;
} op_case_list;

/* Used by build functions.  Float inputs have the dtype of the run (f64, f32, bf16 or f16). */
ls_graph *op_graph(op_test *t);
ls_dtype op_dtype(const op_test *t);
ls_value op_in(op_test *t, op_range range, ls_shape shape);    /* differentiated */
ls_value op_fixed(op_test *t, op_range range, ls_shape shape); /* not differentiated */
/* The same in the type that statistics and losses have beside the run's: f32, or f64 in f64 runs. */
ls_value op_in_wide(op_test *t, op_range range, ls_shape shape);
ls_value op_fixed_wide(op_test *t, op_range range, ls_shape shape);
ls_value op_index(op_test *t, int64_t limit, ls_shape shape); /* i32, 0 <= index < limit */
ls_value op_key(op_test *t);                                  /* random key, i32 (4) */
/* A variable of the run's dtype (for ops that write the next version); `op_counter` is an i32 (1) one holding
 * `value`. */
ls_value op_state(op_test *t, op_range range, ls_shape shape);
ls_value op_state_wide(op_test *t, op_range range, ls_shape shape); /* of the type of op_in_wide */
ls_value op_counter(op_test *t, int32_t value);
/* The numbers of terms summed into one output element: sets the tolerance (default 1). */
void op_length(op_test *t, int64_t n);
/* An output to compare; floating outputs also enter the differentiated loss. */
void op_out(op_test *t, ls_value v);
/* An output to compare that must not enter the loss (indices, statistics without gradient, new variable
 * versions). */
void op_out_fixed(op_test *t, ls_value v);

/* Every list: one line here, one file cases_<name>.c that defines op_cases_<name>. */
#define OP_LISTS(X)                                                                                          \
    X(elementwise)                                                                                           \
    X(shape)                                                                                                 \
    X(reduce)                                                                                                \
    X(matmul)                                                                                                \
    X(fused)                                                                                                 \
    X(conv)                                                                                                  \
    X(pool)                                                                                                  \
    X(norm)                                                                                                  \
    X(norm_pool)                                                                                             \
    X(softmax)                                                                                               \
    X(loss)                                                                                                  \
    X(random)                                                                                                \
    X(optim)

#define OP_DECLARE_LIST(name) extern const op_case_list op_cases_##name;
OP_LISTS(OP_DECLARE_LIST)
#undef OP_DECLARE_LIST

#define OP_CASE_LIST(name, cases)                                                                            \
    const op_case_list op_cases_##name = {#name, cases, (int)(sizeof(cases) / sizeof(cases)[0])}

#endif
