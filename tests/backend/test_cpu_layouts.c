/* The CPU kernels on every layout they take: a node planned by hand on a graph whose feature maps are C16,
 * run on reordered data, against the reference kernel on plain data; on one and on several threads.  Also the
 * other kernels on sizes beyond one vector, one tile and one thread, for which finite differences would take
 * too long. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/c16.h"
#include "base/rng.h"
#include "check.h"
#include "ops/ops.h"

#define MAX_TENSORS 16

/* -- tensors ----------------------------------------------------------------------------------------------
 */

static size_t bytes_of(const ls_vinfo *v)
{
    return (size_t)ls_shape_count(v->shape) * ls_dtype_size(v->dtype);
}

static void *take(size_t bytes)
{
    void *p = ls_alloc(LS_MEM_TEST, bytes + 64);

    if (p == NULL) abort();
    return p;
}

/* Copies a (N, C, H, W) tensor between plain and C16. */
static void reorder(void *to, const void *from, const ls_vinfo *v, bool to_c16)
{
    int64_t C = v->shape.dim[1], S = v->shape.dim[2] * v->shape.dim[3];
    size_t size = ls_dtype_size(v->dtype);

    for (int64_t i = 0; i < ls_shape_count(v->shape); i++) {
        int64_t n = i / (C * S), c = i / S % C, s = i % S;
        size_t plain = (size_t)i * size;
        size_t blocked = (size_t)(((n * (C / 16) + c / 16) * S + s) * 16 + c % 16) * size;
        memcpy((char *)to + (to_c16 ? blocked : plain), (const char *)from + (to_c16 ? plain : blocked),
               size);
    }
}

/* Values on a grid of 1/8 in -4..4: exact in every sum of products that a test makes. */
static void fill(void *data, const ls_vinfo *v, uint32_t seed, int32_t limit)
{
    const ls_rng_key key = {seed, 7, 1, 0};

    for (int64_t i = 0; i < ls_shape_count(v->shape); i++) {
        uint32_t w = ls_rng_word(&key, 1, 0, (uint64_t)i);
        if (v->dtype == LS_F32)
            ((float *)data)[i] = (float)((int)(w % 64) - 32) / 8.0f;
        else if (v->dtype == LS_U8)
            ((uint8_t *)data)[i] = (uint8_t)(w % (uint32_t)limit);
        else if (v->dtype == LS_BF16 || v->dtype == LS_F16)
            ((uint16_t *)data)[i] = (uint16_t)(w & 0x3fff); /* finite in both */
        else
            ((int32_t *)data)[i] = (int32_t)(w % (uint32_t)limit);
    }
}

/* -- one node ---------------------------------------------------------------------------------------------
 */

typedef struct run_result {
    void *out[MAX_TENSORS];
} run_result;

static bool is_map(const ls_vinfo *v)
{
    return v->layout == &lsi_layout_c16;
}

/* Plans and runs the node on `device` with the layouts that the graph's values have; inputs and results are
 * plain. */
static bool run_node(const ls_graph *g, const ls_node *n, const char *device, int threads,
                     void *const *plain_in, run_result *r)
{
    ls_device *dev = NULL;
    ls_kernel k = {0};
    ls_err err = {0};
    void *in[MAX_TENSORS], *out[MAX_TENSORS], *scratch;
    bool own;

    if (ls_device_open(&dev, device, threads, &err) != LS_OK) abort();
    if (dev->backend->plan(dev, g, n, &k, &err) != LS_OK) {
        printf("%s: %s\n", n->op->name, err.text);
        abort();
    }
    own = strcmp(k.impl, "ref") != 0;
    scratch = take(k.scratch_bytes);
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *v = g->values[n->in[i]];
        in[i] = take(bytes_of(v));
        if (is_map(v))
            reorder(in[i], plain_in[i], v, true);
        else
            memcpy(in[i], plain_in[i], bytes_of(v));
    }
    for (int i = 0; i < n->n_out; i++) out[i] = take(bytes_of(g->values[n->out[i]]));
    k.run(k.state, &(ls_call){.in = in, .out = out, .scratch = scratch});
    for (int i = 0; i < n->n_out; i++) {
        const ls_vinfo *v = g->values[n->out[i]];
        r->out[i] = out[i];
        if (!is_map(v)) continue;
        r->out[i] = take(bytes_of(v));
        reorder(r->out[i], out[i], v, false);
        ls_free(out[i]);
    }
    for (int i = 0; i < n->n_in; i++) ls_free(in[i]);
    ls_free(scratch);
    if (k.destroy != NULL) k.destroy(k.state);
    ls_device_close(dev);
    return own;
}

static void compare(const char *name, const ls_vinfo *v, int k, const void *want, const void *got)
{
    int64_t n = ls_shape_count(v->shape);
    double largest = 0, worst = 0;
    int64_t at = 0;

    if (v->dtype != LS_F32) {
        if (memcmp(want, got, bytes_of(v)) != 0) printf("%s: output %d differs\n", name, k);
        CHECK(memcmp(want, got, bytes_of(v)) == 0);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double w = (double)((const float *)want)[i], e = fabs(w - (double)((const float *)got)[i]);
        if (fabs(w) > largest) largest = fabs(w);
        if (!(e <= worst)) {
            worst = e;
            at = i;
        }
    }
    if (!(worst <= 1e-5 * largest + 1e-6))
        printf("%s: output %d [%lld] is %.9g, reference %.9g\n", name, k, (long long)at,
               (double)((const float *)got)[at], (double)((const float *)want)[at]);
    CHECK(worst <= 1e-5 * largest + 1e-6);
}

/* Values that may be C16 are made so, or all are left plain. */
static void set_layouts(ls_graph *g, bool c16)
{
    for (int32_t i = 0; i < g->n_values; i++) {
        ls_vinfo *v = g->values[i];
        bool can = ls_layout_allowed(&lsi_layout_c16, v->dtype, v->shape);
        v->layout = c16 && can ? &lsi_layout_c16 : &ls_layout_plain;
    }
}

/* Runs the graph's last node both ways and compares; the graph is destroyed. */
static void check_last(const char *name, ls_graph *g)
{
    static const int threads[] = {1, 2, 3};
    const ls_node *n;
    void *in[MAX_TENSORS];
    run_result want, got;
    ls_err err = {0};

    if (ls_graph_status(g, &err) != LS_OK) {
        printf("%s: %s\n", name, err.text);
        abort();
    }
    n = g->nodes[g->n_nodes - 1];
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *v = g->values[n->in[i]];
        in[i] = take(bytes_of(v));
        fill(in[i], v, (uint32_t)(100 + i), 4);
        /* Standard deviations and learning rates must be positive. */
        if (v->dtype == LS_F32 && (v->shape.rank <= 2))
            for (int64_t j = 0; j < ls_shape_count(v->shape); j++)
                ((float *)in[i])[j] = fabsf(((float *)in[i])[j]) + 0.5f;
    }
    set_layouts(g, false);
    run_node(g, n, "ref", 1, in, &want);
    for (int c16 = 0; c16 < 2; c16++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            char text[128];
            bool own;
            set_layouts(g, c16 != 0);
            own = run_node(g, n, "cpu", threads[t], in, &got);
            snprintf(text, sizeof text, "%s %s on %d threads", name, c16 ? "c16" : "plain", threads[t]);
            if (!own) printf("%s: no kernel of its own\n", text);
            CHECK(own || !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
            for (int k = 0; k < n->n_out; k++) {
                compare(text, g->values[n->out[k]], k, want.out[k], got.out[k]);
                ls_free(got.out[k]);
            }
        }
    for (int i = 0; i < n->n_in; i++) ls_free(in[i]);
    for (int k = 0; k < n->n_out; k++) ls_free(want.out[k]);
    ls_graph_destroy(g);
}

/* -- building ---------------------------------------------------------------------------------------------
 */

static ls_graph *graph(void)
{
    ls_graph *g;
    ls_err err = {0};

    if (ls_graph_create(&g, &err) != LS_OK) abort();
    return g;
}

static ls_value input(ls_graph *g, ls_dtype t, ls_shape s)
{
    char name[16];

    snprintf(name, sizeof name, "x%d", g->n_values);
    return ls_graph_input(g, name, t, s);
}

static ls_value f32(ls_graph *g, ls_shape s)
{
    return input(g, LS_F32, s);
}

/* Small, with odd sides; more than one thread's worth; images of one pixel. */
static const int64_t maps[][4] = {{2, 16, 3, 5}, {3, 48, 7, 11}, {2, 32, 33, 17}, {5, 32, 1, 1}};
#define N_MAPS (sizeof maps / sizeof maps[0])

static ls_shape map_shape(size_t m)
{
    return LS_SHAPE(maps[m][0], maps[m][1], maps[m][2], maps[m][3]);
}

static void pointwise(void)
{
    for (size_t m = 0; m < N_MAPS; m++) {
        ls_graph *g = graph();
        ls_pointwise_attr a = {.n_steps = 3};
        ls_value in[] = {f32(g, map_shape(m)), f32(g, map_shape(m)), f32(g, LS_SHAPE_SCALAR)};
        a.step[0].pw = LS_PW_MUL;
        a.step[0].b = 2;
        a.step[1].pw = LS_PW_ADD;
        a.step[1].a = 3;
        a.step[1].b = 1;
        a.step[2].pw = LS_PW_RELU;
        a.step[2].a = 4;
        ls_graph_add(g, &ls_op_pointwise, 3, in, &a);
        check_last("pointwise", g);
        g = graph();
        ls_relu_grad(f32(g, map_shape(m)), f32(g, map_shape(m)));
        check_last("relu_grad", g);
    }
}

static const struct {
    ls_act act;
    bool residual;
} fused[] = {{LS_ACT_NONE, false},
             {LS_ACT_RELU, false},
             {LS_ACT_RELU, true},
             {LS_ACT_LEAKY, true},
             {LS_ACT_TANH, false}};
#define N_FUSED (sizeof fused / sizeof fused[0])

static ls_norm_attr norm_attr(size_t f)
{
    return (ls_norm_attr){.eps = 1e-5,
                          .momentum = 0.1,
                          .unbiased_running = true,
                          .act = fused[f].act,
                          .slope = 0.2,
                          .residual = fused[f].residual};
}

static void norms(void)
{
    for (size_t m = 0; m < N_MAPS; m++)
        for (size_t f = 0; f < N_FUSED; f++) {
            ls_norm_attr a = norm_attr(f);
            ls_shape x = map_shape(m), c = LS_SHAPE(x.dim[1]), nc = LS_SHAPE(x.dim[0], x.dim[1]);
            int res = a.residual ? 1 : 0, act = a.act != LS_ACT_NONE ? 1 : 0;
            ls_graph *g = graph();
            ls_value bn[] = {f32(g, x), f32(g, c), f32(g, c), f32(g, c), f32(g, c), f32(g, x)};
            ls_graph_add(g, &ls_op_batch_norm, 5 + res, bn, &a);
            check_last("batch_norm", g);
            g = graph();
            ls_value bg[] = {f32(g, x), f32(g, x), f32(g, c), f32(g, c), f32(g, c), f32(g, x)};
            ls_graph_add(g, &ls_op_batch_norm_grad, 5 + act, bg, &a);
            check_last("batch_norm_grad", g);
            g = graph();
            ls_value in[] = {f32(g, x), f32(g, x)};
            ls_graph_add(g, &ls_op_instance_norm, 1 + res, in, &a);
            check_last("instance_norm", g);
            g = graph();
            ls_value ig[] = {f32(g, x), f32(g, x), f32(g, nc), f32(g, nc), f32(g, x)};
            ls_graph_add(g, &ls_op_instance_norm_grad, 4 + act, ig, &a);
            check_last("instance_norm_grad", g);
        }
}

static void biases(void)
{
    for (size_t m = 0; m < N_MAPS; m++) {
        ls_shape x = map_shape(m);
        ls_graph *g = graph();
        ls_bias(f32(g, x), f32(g, LS_SHAPE(x.dim[1])), 1);
        check_last("bias", g);
        for (int act = LS_ACT_NONE; act <= LS_ACT_TANH; act++) {
            ls_bias_act_attr a = {.act = (ls_act)act, .slope = 0.2, .axis = 1};
            g = graph();
            ls_value in[] = {f32(g, x), f32(g, x)};
            ls_graph_add(g, &ls_op_bias_act_grad, 2, in, &a);
            check_last("bias_act_grad", g);
        }
    }
}

static void sums(void)
{
    static const unsigned axes[] = {0xc, 0xd};

    for (size_t m = 0; m < 3; m++)
        for (int k = 0; k < 4; k++) {
            ls_graph *g = graph();
            ls_reduce_sum(f32(g, map_shape(m)), axes[k / 2], k % 2 == 1);
            check_last("reduce_sum", g);
        }
}

static void dropouts(void)
{
    for (size_t m = 0; m < N_MAPS; m++)
        for (int per_channel = 0; per_channel < 2; per_channel++) {
            ls_graph *g = graph();
            ls_value key = input(g, LS_I32, LS_SHAPE(4));
            ls_dropout(f32(g, map_shape(m)), key, 0.3, per_channel != 0, "test");
            check_last("dropout", g);
        }
}

static const ls_pool_attr windows[] = {
    {.kernel = {2, 2}, .stride = {2, 2}},
    {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}},
    {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}, .relu = true},
    {.kernel = {3, 2}, .stride = {1, 3}, .pad = {2, 0, 1, 1}, .count_pad = true},
};

static void pooling(void)
{
    for (size_t m = 0; m < 3; m++)
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
            ls_shape x = map_shape(m), y;
            ls_pool_attr a = windows[w];
            ls_graph *g = graph();
            ls_value v = ls_maxpool2d(f32(g, x), a);
            y = ls_value_shape(v);
            check_last("maxpool2d", g);
            a.in[0] = x.dim[2];
            a.in[1] = x.dim[3];
            /* The positions are drawn from 0..3 and may lie in the padding, so pad nothing here. */
            memset(a.pad, 0, sizeof a.pad);
            g = graph();
            y = ls_value_shape(ls_maxpool2d(f32(g, x), a));
            ls_graph_destroy(g);
            g = graph();
            ls_value in[] = {f32(g, y), input(g, LS_U8, y), f32(g, y)};
            ls_graph_add(g, &ls_op_maxpool2d_grad, a.relu ? 3 : 2, in, &a);
            check_last("maxpool2d_grad", g);
            a = windows[w];
            a.relu = false;
            g = graph();
            y = ls_value_shape(ls_avgpool2d(f32(g, x), a));
            check_last("avgpool2d", g);
            a.in[0] = x.dim[2];
            a.in[1] = x.dim[3];
            g = graph();
            ls_avgpool2d_grad(f32(g, y), a);
            check_last("avgpool2d_grad", g);
        }
}

static void resizing(void)
{
    for (size_t m = 0; m < N_MAPS; m++) {
        ls_shape x = map_shape(m), y = x;
        for (int f = 2; f < 4; f++) {
            ls_graph *g = graph();
            ls_upsample2d(f32(g, x), f);
            check_last("upsample2d", g);
            y.dim[2] = x.dim[2] * f;
            y.dim[3] = x.dim[3] * f;
            g = graph();
            ls_upsample2d_grad(f32(g, y), f);
            check_last("upsample2d_grad", g);
        }
        for (int mode = LS_PAD_ZERO; mode <= LS_PAD_REFLECT; mode++) {
            ls_graph *g = graph();
            if (mode == LS_PAD_REFLECT && x.dim[2] < 3) {
                ls_graph_destroy(g);
                continue;
            }
            ls_pad2d(f32(g, x), (ls_pad_mode)mode, 1, 2, 2, 0);
            check_last("pad", g);
            y.dim[2] = x.dim[2] + 3;
            y.dim[3] = x.dim[3] + 2;
            g = graph();
            ls_pad2d_adjoint(f32(g, y), (ls_pad_mode)mode, 1, 2, 2, 0);
            check_last("pad_adjoint", g);
        }
    }
}

/* -- sizes ------------------------------------------------------------------------------------------------
 */

/* Elements of a tensor that several threads share, with a rest behind the last vector. */
#define MANY 40003

static void elementwise(void)
{
    static ls_value (*const unary[])(ls_value) = {ls_relu,   ls_gelu, ls_tanh, ls_sigmoid,  ls_exp,
                                                  ls_square, ls_abs,  ls_sign, ls_softplus, ls_copy};
    static ls_value (*const binary[])(ls_value, ls_value) = {ls_add,       ls_sub,       ls_mul,
                                                             ls_maximum,   ls_minimum,   ls_relu_grad,
                                                             ls_gelu_grad, ls_tanh_grad, ls_sigmoid_grad};

    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++) {
        ls_graph *g = graph();
        unary[i](f32(g, LS_SHAPE(MANY, 1, 1)));
        check_last("unary", g);
    }
    for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++) {
        ls_graph *g = graph();
        binary[i](f32(g, LS_SHAPE(MANY, 1, 1)), f32(g, LS_SHAPE(MANY, 1, 1)));
        check_last("binary", g);
        g = graph();
        binary[i](f32(g, LS_SHAPE(7, 53, 1, 61)), f32(g, LS_SHAPE(53, 3, 1)));
        check_last("binary, broadcast", g);
        g = graph();
        binary[i](f32(g, LS_SHAPE(300, 1)), f32(g, LS_SHAPE(1, 77)));
        check_last("binary, outer product", g);
    }
}

static void reductions(void)
{
    static const int64_t shape[] = {5, 37, 6, 41};
    static const unsigned axes[] = {0xf, 0x1, 0x8, 0xc, 0xd, 0x6, 0x2, 0x7, 0xe};

    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        ls_graph *g = graph();
        ls_reduce_sum(f32(g, ls_shape_make(4, shape)), axes[i], i % 2 == 0);
        check_last("reduce_sum", g);
    }
    for (int axis = 0; axis < 3; axis++) {
        ls_graph *g = graph();
        ls_reduce_max(f32(g, LS_SHAPE(17, 53, 71)), axis);
        check_last("reduce_max", g);
        g = graph();
        ls_reduce_max_grad(f32(g, LS_SHAPE(53, 71)), input(g, LS_I32, LS_SHAPE(53, 71)), axis, 9);
        check_last("reduce_max_grad", g);
    }
}

static void rows(void)
{
    static const int64_t widths[] = {5, 64, 1031};

    for (size_t i = 0; i < 3; i++) {
        int64_t w = widths[i];
        ls_norm_attr a = {.eps = 1e-5};
        ls_graph *g = graph();
        ls_softmax(f32(g, LS_SHAPE(3, 13, w)));
        check_last("softmax", g);
        g = graph();
        ls_log_softmax(f32(g, LS_SHAPE(3, 13, w)));
        check_last("log_softmax", g);
        g = graph();
        ls_layer_norm(f32(g, LS_SHAPE(3, 13, w)), f32(g, LS_SHAPE(w)), f32(g, LS_SHAPE(w)), a);
        check_last("layer_norm", g);
        g = graph();
        ls_layer_norm_grad(f32(g, LS_SHAPE(3, 13, w)), f32(g, LS_SHAPE(3, 13, w)), f32(g, LS_SHAPE(w)),
                           f32(g, LS_SHAPE(3, 13)), f32(g, LS_SHAPE(3, 13)), a);
        check_last("layer_norm_grad", g);
        g = graph();
        ls_cross_entropy(f32(g, LS_SHAPE(39, w)), input(g, LS_I32, LS_SHAPE(39)));
        check_last("cross_entropy", g);
        g = graph();
        ls_accuracy(f32(g, LS_SHAPE(39, w)), input(g, LS_I32, LS_SHAPE(39)));
        check_last("accuracy", g);
        g = graph();
        ls_gather_rows(f32(g, LS_SHAPE(39, w)), input(g, LS_I32, LS_SHAPE(50)));
        check_last("gather_rows", g);
        g = graph();
        ls_scatter_rows(f32(g, LS_SHAPE(50, w)), input(g, LS_I32, LS_SHAPE(50)), 39);
        check_last("scatter_rows", g);
    }
}

static void moves(void)
{
    static const int perms[][4] = {{0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}, {1, 0, 2, 3}, {0, 2, 1, 3}};
    ls_shape x = LS_SHAPE(3, 37, 19, 23);

    for (size_t i = 0; i < sizeof perms / sizeof perms[0]; i++) {
        ls_graph *g = graph();
        ls_transpose(f32(g, x), perms[i]);
        check_last("transpose", g);
    }
    for (int axis = 0; axis < 4; axis++) {
        ls_graph *g = graph();
        ls_slice(f32(g, x), axis, 1, 2);
        check_last("slice", g);
        g = graph();
        ls_value in[] = {f32(g, x), f32(g, x), f32(g, x)};
        ls_concat(3, in, axis);
        check_last("concat", g);
    }
    for (int back = 0; back < 2; back++)
        for (int type = LS_BF16; type <= LS_F16; type++) {
            ls_graph *g = graph();
            if (back)
                ls_cast(input(g, (ls_dtype)type, LS_SHAPE(MANY)), LS_F32);
            else
                ls_cast(f32(g, LS_SHAPE(MANY, 1, 1)), (ls_dtype)type);
            check_last("cast", g);
        }
}

static void losses(void)
{
    ls_graph *g = graph();
    ls_chamfer(f32(g, LS_SHAPE(2, 3, 131)), f32(g, LS_SHAPE(2, 3, 77)));
    check_last("chamfer", g);
    g = graph();
    ls_chamfer_grad(f32(g, LS_SHAPE_SCALAR), f32(g, LS_SHAPE(2, 3, 131)), f32(g, LS_SHAPE(2, 3, 77)),
                    input(g, LS_I32, LS_SHAPE(2, 131)), input(g, LS_I32, LS_SHAPE(2, 77)));
    check_last("chamfer_grad", g);
    g = graph();
    ls_attention(f32(g, LS_SHAPE(3, 131, 24)), f32(g, LS_SHAPE(3, 131, 24)), f32(g, LS_SHAPE(3, 131, 24)),
                 0.05);
    check_last("attention", g);
}

static void draws(void)
{
    for (int64_t w = 1; w < 5000; w = w * 5 + 1) {
        ls_graph *g = graph();
        ls_random_uniform(input(g, LS_I32, LS_SHAPE(4)), LS_SHAPE(7, w), "test");
        check_last("random_uniform", g);
        g = graph();
        ls_random_normal(input(g, LS_I32, LS_SHAPE(4)), LS_SHAPE(7, w), 2.0, "test");
        check_last("random_normal", g);
        g = graph();
        ls_value key = input(g, LS_I32, LS_SHAPE(4));
        ls_dropout(f32(g, LS_SHAPE(7, w)), key, 0.3, false, "test");
        check_last("dropout", g);
    }
}

int main(void)
{
    CHECK_RUN(pointwise);
    CHECK_RUN(norms);
    CHECK_RUN(biases);
    CHECK_RUN(sums);
    CHECK_RUN(dropouts);
    CHECK_RUN(pooling);
    CHECK_RUN(resizing);
    CHECK_RUN(elementwise);
    CHECK_RUN(reductions);
    CHECK_RUN(rows);
    CHECK_RUN(moves);
    CHECK_RUN(losses);
    CHECK_RUN(draws);
    return CHECK_DONE();
}
