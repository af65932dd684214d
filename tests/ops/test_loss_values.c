/* test_loss_values.c: losses, softmax and attention at points that can be worked out by hand, and at the
 * edges where data from outside could do harm: labels and indices out of range, ties, infinities, and
 * gradients that do not exist.  On every backend. */
#include <math.h>

#include "backend/backend.h"
#include "check.h"
#include "op_plan.h"
#include "ops/ops.h"
#include "passes/autodiff.h"

static const char *device; /* of the current round */

#define LIST(...) ((const double[]){__VA_ARGS__})

/* Compares a fetched tensor with n numbers; NaN equals NaN. */
static void check_values(const op_plan *p, const char *name, const double *want, int64_t n)
{
    const ls_tensor *t = op_plan_find(p, name);

    CHECK_EQ_INT(ls_shape_count(t->shape), n);
    for (int64_t i = 0; i < n && i < ls_shape_count(t->shape); i++) {
        double got = tensor_get(t, i);
        if (isnan(want[i]))
            CHECK(isnan(got));
        else if (isinf(want[i]))
            CHECK(got == want[i]);
        else
            CHECK_NEAR(got, want[i], 1e-6 * (1 + fabs(want[i])));
    }
}

static ls_value input(op_plan *p, const char *name, ls_dtype t, ls_shape s)
{
    return ls_graph_input(p->g, name, t, s);
}

/* Fetches v and its gradient with respect to x (of the sum of v) as "y" and "dx". */
static void fetch_both(op_plan *p, ls_value v, ls_value x)
{
    ls_value dx;

    ls_graph_fetch(v, "y");
    ls_autodiff(v, (ls_value){p->g, -1}, 1, &x, &dx);
    ls_graph_fetch(dx, "dx");
    op_plan_compile(p, device);
}

/* -- cross entropy and accuracy -----------------------------------------------------------------------------
 */

static void cross_entropy_by_hand(void)
{
    op_plan p;
    ls_value x, labels, loss;

    op_plan_begin(&p);
    x = input(&p, "x", LS_F32, LS_SHAPE(2, 3));
    labels = input(&p, "labels", LS_I32, LS_SHAPE(2));
    loss = ls_cross_entropy(x, labels);
    ls_graph_fetch(ls_graph_out(loss, 1), "probs");
    ls_graph_fetch(ls_accuracy(x, labels), "right");
    fetch_both(&p, loss, x);
    /* Probabilities 1/4, 1/4, 1/2, and 1/5, 3/5, 1/5 from logits near the end of f32's range of exp. */
    op_set(op_plan_find(&p, "x"), LIST(0, 0, log(2), 500, 500 + log(3), 500), 6);
    op_set(op_plan_find(&p, "labels"), LIST(2, 0), 2);
    run_plan(p.plan);
    CHECK_NEAR(tensor_get(op_plan_find(&p, "y"), 0), (log(2) + log(5)) / 2, 2e-5); /* 500 + log 3 in f32 */
    CHECK_NEAR(tensor_get(op_plan_find(&p, "right"), 0), 1, 0);
    for (int i = 0; i < 6; i++) {
        double probs = LIST(0.25, 0.25, 0.5, 0.2, 0.6, 0.2)[i], onehot = LIST(0, 0, 1, 1, 0, 0)[i];
        CHECK_NEAR(tensor_get(op_plan_find(&p, "probs"), i), probs, 1e-5);
        CHECK_NEAR(tensor_get(op_plan_find(&p, "dx"), i), (probs - onehot) / 2, 1e-5);
    }
    op_plan_end(&p);
}

static void bad_labels_make_nan(void)
{
    static const double bad[] = {-1, 2, 2147483647, -2147483648.0};

    for (int k = 0; k < 4; k++) {
        op_plan p;
        ls_value x, labels;
        op_plan_begin(&p);
        x = input(&p, "x", LS_F32, LS_SHAPE(2, 2));
        labels = input(&p, "labels", LS_I32, LS_SHAPE(2));
        ls_graph_fetch(ls_accuracy(x, labels), "right");
        fetch_both(&p, ls_cross_entropy(x, labels), x);
        op_set(op_plan_find(&p, "x"), LIST(0, 0, 1, 0), 4);
        op_set(op_plan_find(&p, "labels"), LIST(bad[k], 0), 2);
        run_plan(p.plan);
        CHECK(isnan(tensor_get(op_plan_find(&p, "y"), 0)));
        CHECK(isnan(tensor_get(op_plan_find(&p, "dx"), 0)) && isnan(tensor_get(op_plan_find(&p, "dx"), 1)));
        CHECK(isfinite(tensor_get(op_plan_find(&p, "dx"), 2)) &&
              isfinite(tensor_get(op_plan_find(&p, "dx"), 3)));
        CHECK_NEAR(tensor_get(op_plan_find(&p, "right"), 0), 1, 0); /* the good sample only */
        op_plan_end(&p);
    }
}

static void accuracy_at_the_edges(void)
{
    op_plan p;

    op_plan_begin(&p);
    ls_graph_fetch(
        ls_accuracy(input(&p, "x", LS_F32, LS_SHAPE(5, 3)), input(&p, "labels", LS_I32, LS_SHAPE(5))),
        "right");
    op_plan_compile(&p, device);
    /* Of equals the first counts; a row with NaN is never right. */
    op_set(op_plan_find(&p, "x"), LIST(1, 1, 0, 1, 1, 0, NAN, 0, 1, 1, NAN, 0, -INFINITY, 0, 3), 15);
    op_set(op_plan_find(&p, "labels"), LIST(0, 1, 0, 0, 2), 5);
    run_plan(p.plan);
    CHECK_NEAR(tensor_get(op_plan_find(&p, "right"), 0), 2, 0);
    op_plan_end(&p);
}

/* -- softmax and attention
 * ------------------------------------------------------------------------------------ */

static void softmax_at_the_edges(void)
{
    op_plan p;
    ls_value x;

    op_plan_begin(&p);
    x = input(&p, "x", LS_F32, LS_SHAPE(3, 3));
    ls_graph_fetch(ls_softmax(x), "softmax");
    ls_graph_fetch(ls_log_softmax(x), "log_softmax");
    op_plan_compile(&p, device);
    /* Beyond the range of exp, a masked logit, and NaN, which spreads over its row only. */
    op_set(op_plan_find(&p, "x"), LIST(1000, 1000, -1000, 0, -INFINITY, 0, 1, NAN, 2), 9);
    run_plan(p.plan);
    check_values(&p, "softmax", LIST(0.5, 0.5, 0, 0.5, 0, 0.5, NAN, NAN, NAN), 9);
    check_values(&p, "log_softmax",
                 LIST(-log(2), -log(2), -2000 - log(2), -log(2), -INFINITY, -log(2), NAN, NAN, NAN), 9);
    op_plan_end(&p);
}

static void attention_by_hand(void)
{
    op_plan p;
    ls_value q, k, v, out;

    op_plan_begin(&p);
    q = input(&p, "q", LS_F32, LS_SHAPE(1, 2, 1));
    k = input(&p, "k", LS_F32, LS_SHAPE(1, 2, 1));
    v = input(&p, "v", LS_F32, LS_SHAPE(1, 2, 1));
    out = ls_attention(q, k, v, 0.5);
    ls_graph_fetch(out, "out");
    ls_graph_fetch(ls_graph_out(out, 1), "lse");
    op_plan_compile(&p, device);
    /* Scores 0 and log 3 for the first query, 0 and 200 log 3 (too much for exp in f32) for the second. */
    op_set(op_plan_find(&p, "q"), LIST(1, 200), 2);
    op_set(op_plan_find(&p, "k"), LIST(0, 2 * log(3)), 2);
    op_set(op_plan_find(&p, "v"), LIST(4, 8), 2);
    run_plan(p.plan);
    check_values(&p, "out", LIST(7, 8), 2);
    CHECK_NEAR(tensor_get(op_plan_find(&p, "lse"), 0), log(4), 1e-6);
    CHECK_NEAR(tensor_get(op_plan_find(&p, "lse"), 1), 200 * log(3), 1e-4);
    op_plan_end(&p);
}

/* -- point clouds and tables
 * ------------------------------------------------------------------------------------ */

static void chamfer_by_hand(void)
{
    op_plan p;
    ls_value a, b, loss, grads[2];

    op_plan_begin(&p);
    a = input(&p, "a", LS_F32, LS_SHAPE(1, 3, 2));
    b = input(&p, "b", LS_F32, LS_SHAPE(1, 3, 3));
    loss = ls_chamfer(a, b);
    ls_graph_fetch(loss, "loss");
    ls_graph_fetch(ls_graph_out(loss, 1), "near_a");
    ls_graph_fetch(ls_graph_out(loss, 2), "near_b");
    ls_autodiff(loss, (ls_value){p.g, -1}, 2, (ls_value[]){a, b}, grads);
    ls_graph_fetch(grads[0], "da");
    ls_graph_fetch(grads[1], "db");
    op_plan_compile(&p, device);
    /* On the x axis: a at 0 and 4, b at 1, -1 and 2.  a0 is equally far from b0 and b1, b2 from a0 and a1:
     * the first counts. */
    op_set(op_plan_find(&p, "a"), LIST(0, 4, 0, 0, 0, 0), 6);
    op_set(op_plan_find(&p, "b"), LIST(1, -1, 2, 0, 0, 0, 0, 0, 0), 9);
    run_plan(p.plan);
    check_values(&p, "loss", LIST(1 + 4 + 1 + 1 + 4), 1);
    check_values(&p, "near_a", LIST(0, 2), 2);
    check_values(&p, "near_b", LIST(0, 0, 0), 3);
    /* a0: its own -2 to b0, then -2, +2, -4 from b; a1: 2 * (4 - 2). */
    check_values(&p, "da", LIST(-6, 4, 0, 0, 0, 0), 6);
    check_values(&p, "db", LIST(4, -2, 0, 0, 0, 0, 0, 0, 0), 9);
    op_plan_end(&p);
}

static void indices_out_of_range_touch_nothing(void)
{
    op_plan p;
    ls_value index;

    op_plan_begin(&p);
    index = input(&p, "index", LS_I32, LS_SHAPE(5));
    ls_graph_fetch(ls_gather_rows(input(&p, "table", LS_F32, LS_SHAPE(2, 1)), index), "gathered");
    ls_graph_fetch(ls_scatter_rows(input(&p, "rows", LS_F32, LS_SHAPE(5, 1)), index, 2), "scattered");
    op_plan_compile(&p, device);
    op_set(op_plan_find(&p, "index"), LIST(1, -1, 2, 1, -2147483648.0), 5);
    op_set(op_plan_find(&p, "table"), LIST(10, 20), 2);
    op_set(op_plan_find(&p, "rows"), LIST(1, 2, 4, 8, 16), 5);
    run_plan(p.plan);
    check_values(&p, "gathered", LIST(20, NAN, NAN, 20, NAN), 5);
    check_values(&p, "scattered", LIST(0, 9), 2);
    op_plan_end(&p);
}

/* -- composites
 * --------------------------------------------------------------------------------------------------- */

static void composites_by_hand(void)
{
    op_plan p;
    ls_value a, b;

    op_plan_begin(&p);
    a = input(&p, "a", LS_F32, LS_SHAPE(4));
    b = input(&p, "b", LS_F32, LS_SHAPE(4));
    ls_graph_fetch(ls_mse_loss(a, b), "mse");
    ls_graph_fetch(ls_l1_loss(a, b), "l1");
    fetch_both(&p, ls_bce_with_logits(a, b), a);
    /* Logistic function 1/2, 3/4; logits of 1000 are as sure as they are wrong or right. */
    op_set(op_plan_find(&p, "a"), LIST(0, log(3), 1000, -1000), 4);
    op_set(op_plan_find(&p, "b"), LIST(1, 0, 0, 0), 4);
    run_plan(p.plan);
    check_values(&p, "y", LIST((log(2) + log(4) + 1000 + 0) / 4), 1);
    check_values(&p, "dx", LIST(-0.5 / 4, 0.75 / 4, 0.25, 0), 4);
    check_values(&p, "mse", LIST((1 + log(3) * log(3) + 2e6) / 4), 1);
    check_values(&p, "l1", LIST((1 + log(3) + 2000) / 4), 1);
    op_plan_end(&p);
}

static void losses_of_16_bits_are_f32(void)
{
    op_plan p;
    ls_value x, y, loss;

    op_plan_begin(&p);
    x = input(&p, "x", LS_BF16, LS_SHAPE(2, 3));
    y = input(&p, "y", LS_BF16, LS_SHAPE(2, 3));
    loss = ls_cross_entropy(x, input(&p, "labels", LS_I32, LS_SHAPE(2)));
    CHECK_EQ_STR(ls_dtype_name(ls_value_dtype(loss)), "f32");
    CHECK_EQ_STR(ls_dtype_name(ls_value_dtype(ls_graph_out(loss, 1))), "f32");
    CHECK_EQ_STR(ls_dtype_name(ls_value_dtype(ls_mse_loss(x, y))), "f32");
    CHECK_EQ_STR(ls_dtype_name(ls_value_dtype(ls_l1_loss(x, y))), "f32");
    CHECK_EQ_STR(ls_dtype_name(ls_value_dtype(ls_bce_with_logits(x, y))), "f32");
    fetch_both(&p, loss, x);
    CHECK_EQ_STR(ls_dtype_name(op_plan_find(&p, "dx")->dtype), "bf16");
    op_plan_end(&p);
}

static void an_empty_batch_costs_nothing(void)
{
    op_plan p;
    ls_value x, y;

    op_plan_begin(&p);
    x = input(&p, "a", LS_F32, LS_SHAPE(0, 3));
    y = input(&p, "b", LS_F32, LS_SHAPE(0, 3));
    ls_graph_fetch(ls_cross_entropy(x, input(&p, "labels", LS_I32, LS_SHAPE(0))), "cross_entropy");
    ls_graph_fetch(ls_mse_loss(x, y), "mse");
    ls_graph_fetch(ls_l1_loss(x, y), "l1");
    ls_graph_fetch(ls_bce_with_logits(x, y), "bce");
    op_plan_compile(&p, device);
    run_plan(p.plan);
    check_values(&p, "cross_entropy", LIST(0), 1);
    check_values(&p, "mse", LIST(0), 1);
    check_values(&p, "l1", LIST(0), 1);
    check_values(&p, "bce", LIST(0), 1);
    op_plan_end(&p);
}

/* -- refusals
 * ------------------------------------------------------------------------------------------------------ */

static void check_refused(op_plan *p, ls_status status, const char *part)
{
    ls_err err = {0};

    CHECK_STATUS(ls_graph_status(p->g, &err), status, &err);
    CHECK_CONTAINS(err.text, part);
    op_plan_end(p);
}

static void wrong_shapes_are_refused(void)
{
    op_plan p;

    op_plan_begin(&p);
    ls_cross_entropy(input(&p, "x", LS_F32, LS_SHAPE(2, 3)), input(&p, "labels", LS_I32, LS_SHAPE(3)));
    check_refused(&p, LS_INVALID, "one label (N) per sample");
    op_plan_begin(&p);
    ls_accuracy(input(&p, "x", LS_F32, LS_SHAPE(2, 3)), input(&p, "labels", LS_F32, LS_SHAPE(2)));
    check_refused(&p, LS_INVALID, "labels must be i32, got f32");
    op_plan_begin(&p);
    ls_chamfer(input(&p, "a", LS_F32, LS_SHAPE(2, 3, 5)), input(&p, "b", LS_F32, LS_SHAPE(2, 3, 0)));
    check_refused(&p, LS_INVALID, "a cloud has no points");
    op_plan_begin(&p);
    ls_attention(input(&p, "q", LS_F32, LS_SHAPE(2, 3, 5)), input(&p, "k", LS_F32, LS_SHAPE(2, 4, 5)),
                 input(&p, "v", LS_F32, LS_SHAPE(2, 4, 5)), 1);
    check_refused(&p, LS_INVALID, "one shape (B, T, D)");
    op_plan_begin(&p);
    ls_mse_loss(input(&p, "a", LS_F32, LS_SHAPE(4, 1)), input(&p, "b", LS_F32, LS_SHAPE(4)));
    check_refused(&p, LS_INVALID, "mse_loss: prediction (4, 1) and target (4,) differ in shape");
    op_plan_begin(&p);
    ls_softmax(input(&p, "x", LS_F32, LS_SHAPE_SCALAR));
    check_refused(&p, LS_INVALID, "at least one dimension");
    op_plan_begin(&p);
    ls_gather_rows(input(&p, "table", LS_F32, LS_SHAPE(4, 1)), input(&p, "index", LS_U8, LS_SHAPE(4)));
    check_refused(&p, LS_INVALID, "i32 indices, got f32 and u8");
}

/* A gradient that does not exist is an error: zero would train the wrong thing in silence. */
static void missing_gradients_are_refused(void)
{
    op_plan p;
    ls_value x, y, dx;

    op_plan_begin(&p);
    x = input(&p, "x", LS_F32, LS_SHAPE(2, 3));
    y = ls_graph_out(ls_cross_entropy(x, input(&p, "labels", LS_I32, LS_SHAPE(2))), 1);
    ls_autodiff(y, (ls_value){p.g, -1}, 1, &x, &dx);
    check_refused(&p, LS_UNSUPPORTED, "use softmax");
    op_plan_begin(&p);
    x = input(&p, "x", LS_F32, LS_SHAPE(2, 3, 5));
    y = ls_graph_out(ls_attention(x, x, x, 1), 1);
    ls_autodiff(y, (ls_value){p.g, -1}, 1, &x, &dx);
    check_refused(&p, LS_UNSUPPORTED, "log-sum-exp");
    op_plan_begin(&p);
    x = input(&p, "x", LS_F32, LS_SHAPE(2, 3, 5));
    ls_autodiff(ls_attention(x, x, x, 1), (ls_value){p.g, -1}, 1, &x, &dx);
    ls_autodiff(dx, (ls_value){p.g, -1}, 1, &x, &y);
    check_refused(&p, LS_UNSUPPORTED, "op attention_grad has no gradient");
}

int main(void)
{
    for (int i = 0; ls_backends[i] != NULL; i++) {
        if (!device_is_tested(ls_backends[i])) continue;
        device = ls_backends[i]->name;
        CHECK_RUN(cross_entropy_by_hand);
        CHECK_RUN(bad_labels_make_nan);
        CHECK_RUN(accuracy_at_the_edges);
        CHECK_RUN(softmax_at_the_edges);
        CHECK_RUN(attention_by_hand);
        CHECK_RUN(chamfer_by_hand);
        CHECK_RUN(indices_out_of_range_touch_nothing);
        CHECK_RUN(composites_by_hand);
        CHECK_RUN(losses_of_16_bits_are_f32);
        CHECK_RUN(an_empty_batch_costs_nothing);
    }
    CHECK_RUN(wrong_shapes_are_refused);
    CHECK_RUN(missing_gradients_are_refused);
    return CHECK_DONE();
}
