/* test_map_fused.c: what fusion makes of convolutions, pooling and norms equals the ops it replaces.
 *
 * Each test builds both, on the reference backend, and compares number by number. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "op_plan.h"
#include "ops/ops.h"

static ls_value in(op_plan *p, const char *name, ls_shape shape)
{
    return ls_graph_input(p->g, name, LS_F64, shape);
}

/* Fetches both; compare_pairs checks them after the run. */
static void pair(ls_value fused, ls_value composed, const char *name)
{
    char other[64];

    snprintf(other, sizeof other, "%s composed", name);
    ls_graph_fetch(ls_copy(fused), name);
    ls_graph_fetch(ls_copy(composed), other);
}

/* Gives every input small numbers of both signs, runs, and compares every pair. */
static void compare_pairs(op_plan *p)
{
    op_plan_compile(p, "ref");
    for (int k = 0; k < ls_plan_input_count(p->plan); k++) {
        const ls_tensor *t = ls_plan_input_at(p->plan, k);
        for (int64_t i = 0; i < ls_shape_count(t->shape); i++)
            tensor_put(t, i, (double)((i * 5 + 3 * k) % 13 - 6) / 8);
    }
    run_plan(p->plan);
    for (int k = 0; k < ls_plan_fetch_count(p->plan); k++) {
        const ls_tensor *a = ls_plan_fetch_at(p->plan, k), *b;
        char other[64];
        if (strstr(a->name, " composed") != NULL) continue;
        snprintf(other, sizeof other, "%s composed", a->name);
        b = op_plan_find(p, other);
        CHECK_EQ_INT(ls_shape_count(a->shape), ls_shape_count(b->shape));
        for (int64_t i = 0; i < ls_shape_count(a->shape); i++)
            if (!CHECK_NEAR(tensor_get(a, i), tensor_get(b, i), 1e-12))
                printf("  in %s[%lld]\n", a->name, (long long)i);
    }
    op_plan_end(p);
}

static void fused_convolution(void)
{
    op_plan p;
    ls_conv_attr a = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}, fused;
    ls_value x, w, y, dx, b[2];

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(2, 3, 5, 4));
    w = in(&p, "w", LS_SHAPE(4, 3, 3, 3));
    b[0] = in(&p, "b", LS_SHAPE(4));
    b[1] = in(&p, "bt", LS_SHAPE(3));
    y = ls_conv2d(x, w, a);
    memcpy(a.in, ls_value_shape(x).dim, sizeof a.in);
    dx = ls_conv2d_dx(y, w, a);
    fused = a;
    fused.act = LS_ACT_LEAKY;
    fused.slope = 0.2;
    pair(ls_graph_add(p.g, &ls_op_conv2d, 3, (ls_value[]){x, w, b[0]}, &fused),
         ls_leaky_relu(ls_bias(y, b[0], 1), 0.2), "conv2d");
    fused.act = LS_ACT_TANH;
    pair(ls_graph_add(p.g, &ls_op_conv2d_dx, 3, (ls_value[]){y, w, b[1]}, &fused),
         ls_tanh(ls_bias(dx, b[1], 1)), "conv2d_dx");
    compare_pairs(&p);
}

static void fused_bias_gradient(void)
{
    op_plan p;
    ls_bias_act_attr a = {.act = LS_ACT_TANH, .axis = 1};
    ls_value dy, y, dz, fused;

    op_plan_begin(&p);
    dy = in(&p, "dy", LS_SHAPE(2, 3, 5, 4));
    y = in(&p, "y", LS_SHAPE(2, 3, 5, 4));
    fused = ls_graph_add(p.g, &ls_op_bias_act_grad, 2, (ls_value[]){dy, y}, &a);
    dz = ls_tanh_grad(dy, y);
    pair(fused, dz, "dz");
    pair(ls_graph_out(fused, 1), ls_reduce_sum(dz, 1u << 0 | 1u << 2 | 1u << 3, false), "dbias");
    compare_pairs(&p);
}

static void fused_pooling(void)
{
    op_plan p;
    ls_pool_attr a = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .in = {7, 6}}, fused = a;
    ls_value x, dy, y, r, index;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(2, 3, 7, 6));
    dy = in(&p, "dy", LS_SHAPE(2, 3, 4, 3));
    x = ls_affine(x, 1.0, -0.5); /* so that some windows hold no positive element */
    fused.relu = true;
    y = ls_maxpool2d(x, a);
    index = ls_graph_out(y, 1);
    r = ls_maxpool2d(x, fused);
    pair(r, ls_relu(y), "pool");
    pair(ls_graph_add(p.g, &ls_op_maxpool2d_grad, 3, (ls_value[]){dy, index, r}, &fused),
         ls_maxpool2d_grad(ls_relu_grad(dy, r), index, a), "pool gradient");
    compare_pairs(&p);
}

static void fused_norms(void)
{
    op_plan p;
    ls_norm_attr a = {.eps = 0.1, .momentum = 0.5},
                 fused = {.eps = 0.1, .act = LS_ACT_RELU, .residual = true};
    ls_shape s = LS_SHAPE(2, 3, 4, 5), c = LS_SHAPE(3);
    ls_value x, r, dy, y, dz, v[4], running[4], plain_grad, fused_grad;

    op_plan_begin(&p);
    x = in(&p, "x", s);
    r = in(&p, "r", s);
    dy = in(&p, "dy", s);
    v[0] = in(&p, "gamma", c);
    v[1] = in(&p, "beta", c);
    v[2] = in(&p, "mean", LS_SHAPE(2, 3));
    v[3] = in(&p, "invstd", LS_SHAPE(2, 3));
    y = ls_instance_norm(x, a);
    pair(ls_graph_add(p.g, &ls_op_instance_norm, 2, (ls_value[]){x, r}, &fused), ls_relu(ls_add(y, r)),
         "instance");
    dz = ls_relu_grad(dy, y);
    fused_grad = ls_graph_add(p.g, &ls_op_instance_norm_grad, 5, (ls_value[]){dy, x, v[2], v[3], y}, &fused);
    pair(fused_grad, ls_instance_norm_grad(dz, x, v[2], v[3], a), "instance dx");
    pair(ls_graph_out(fused_grad, 1), dz, "instance dresidual");

    v[2] = in(&p, "channel mean", c);
    v[3] = in(&p, "channel invstd", c);
    plain_grad = ls_batch_norm_grad(dz, x, v[0], v[2], v[3], a);
    fused_grad =
        ls_graph_add(p.g, &ls_op_batch_norm_grad, 6, (ls_value[]){dy, x, v[0], v[2], v[3], y}, &fused);
    pair(fused_grad, plain_grad, "batch dx");
    pair(ls_graph_out(fused_grad, 1), ls_graph_out(plain_grad, 1), "batch dgamma");
    pair(ls_graph_out(fused_grad, 2), ls_graph_out(plain_grad, 2), "batch dbeta");
    pair(ls_graph_out(fused_grad, 3), dz, "batch dresidual");
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"mean 1", "var 1", "mean 2", "var 2"};
        running[i] = ls_graph_var(p.g, names[i], LS_VAR_BUFFER, LS_F64, c, (ls_init){LS_INIT_CONST, 0});
    }
    pair(ls_graph_add(p.g, &ls_op_batch_norm, 6, (ls_value[]){x, v[0], v[1], running[0], running[1], r},
                      &fused),
         ls_relu(ls_add(ls_batch_norm(x, v[0], v[1], running[2], running[3], a), r)), "batch");
    compare_pairs(&p);
}

/* A pool behind a norm and a ReLU, of numbers many of which are equal. */
static void fused_norm_and_pool(void)
{
    op_plan p;
    const ls_pool_attr pool = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .in = {7, 6}};
    const ls_norm_attr norm = {.eps = 0.1, .momentum = 0.5};
    const ls_norm_pool_attr fused = {{.eps = 0.1, .momentum = 0.5, .act = LS_ACT_RELU}, pool};
    const ls_shape c = LS_SHAPE(3);
    ls_value x, dy, y, z, d, gamma, beta, running[4], back;

    op_plan_begin(&p);
    x = in(&p, "x", LS_SHAPE(2, 3, 7, 6));
    dy = in(&p, "dy", LS_SHAPE(2, 3, 4, 3));
    gamma = in(&p, "gamma", c); /* one of them is 0, and one negative */
    beta = in(&p, "beta", c);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"mean 1", "var 1", "mean 2", "var 2"};
        running[i] = ls_graph_var(p.g, names[i], LS_VAR_BUFFER, LS_F64, c, (ls_init){LS_INIT_CONST, 0});
    }
    y = ls_batch_norm(x, gamma, beta, running[0], running[1], norm);
    z = ls_maxpool2d(ls_relu(y), pool);
    d = ls_graph_add(p.g, &ls_op_batch_norm_pool, 5, (ls_value[]){x, gamma, beta, running[2], running[3]},
                     &fused);
    pair(d, z, "pooled");
    for (int k = 1; k < 5; k++) {
        static const char *const names[] = {"", "mean", "invstd", "running mean", "running variance"};
        pair(ls_graph_out(d, k), ls_graph_out(y, k), names[k]);
    }
    back = ls_relu_grad(ls_maxpool2d_grad(dy, ls_graph_out(z, 1), pool), ls_relu(y));
    back = ls_batch_norm_grad(back, x, gamma, ls_graph_out(y, 1), ls_graph_out(y, 2), norm);
    d = ls_graph_add(p.g, &ls_op_batch_norm_pool_grad, 8,
                     (ls_value[]){dy, x, gamma, beta, ls_graph_out(d, 1), ls_graph_out(d, 2),
                                  ls_graph_out(d, 5), ls_graph_out(d, 6)},
                     &fused);
    pair(d, back, "dx");
    pair(ls_graph_out(d, 1), ls_graph_out(back, 1), "dgamma");
    pair(ls_graph_out(d, 2), ls_graph_out(back, 2), "dbeta");
    compare_pairs(&p);
}

int main(void)
{
    CHECK_RUN(fused_convolution);
    CHECK_RUN(fused_bias_gradient);
    CHECK_RUN(fused_pooling);
    CHECK_RUN(fused_norms);
    CHECK_RUN(fused_norm_and_pool);
    return CHECK_DONE();
}
