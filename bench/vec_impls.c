/* vec_impls.c: how fast the memory-bound kernels of the CPU backend move bytes, against copying memory.
 *
 * Usage: bench_vec [case substring] [threads].  Every case is one node, planned as the executor would.  GB/s
 * count each input and output once; `ratio` is against a copy of as many bytes (half read, half written) by
 * memcpy on the same threads, timed in turns with the kernel: of the medians and of the best rounds.  Above 1
 * the tensors stayed in a cache that the copy missed, below 1 the kernel computes, or passes over memory more
 * than once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/c16.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "ops/ops.h"

enum { MAX_ROUNDS = 41, MIN_ROUNDS = 5, MAX_TENSORS = 16 };

typedef struct bench_case {
    const char *name;
    void (*build)(ls_graph *g, const int64_t *p);
    int64_t p[8];
    bool c16;
} bench_case;

/* -- what is timed ----------------------------------------------------------------------------------------
 */

static ls_value input(ls_graph *g, ls_dtype t, ls_shape s)
{
    char name[16];

    snprintf(name, sizeof name, "x%d", g->n_values);
    return ls_graph_input(g, name, t, s);
}

static ls_value map(ls_graph *g, const int64_t *p)
{
    return input(g, LS_F32, LS_SHAPE(p[0], p[1], p[2], p[3]));
}

static ls_value per_channel(ls_graph *g, const int64_t *p)
{
    return input(g, LS_F32, LS_SHAPE(p[1]));
}

static void relu(ls_graph *g, const int64_t *p)
{
    ls_relu(map(g, p));
}
static void add(ls_graph *g, const int64_t *p)
{
    ls_add(map(g, p), map(g, p));
}
static void gelu(ls_graph *g, const int64_t *p)
{
    ls_gelu(map(g, p));
}
static void chain(ls_graph *g, const int64_t *p)
{
    ls_pointwise_attr a = {.n_steps = 3};
    ls_value in[] = {map(g, p), map(g, p)};

    a.step[0].pw = LS_PW_AFFINE;
    a.step[0].p[0] = 0.5;
    a.step[1].pw = LS_PW_ADD;
    a.step[1].a = 2;
    a.step[1].b = 1;
    a.step[2].pw = LS_PW_RELU;
    a.step[2].a = 3;
    ls_graph_add(g, &ls_op_pointwise, 2, in, &a);
}
static void bias(ls_graph *g, const int64_t *p)
{
    ls_bias(map(g, p), per_channel(g, p), 1);
}
static void bias_act_grad(ls_graph *g, const int64_t *p)
{
    ls_bias_act_attr a = {.act = LS_ACT_RELU, .axis = 1};

    ls_graph_add(g, &ls_op_bias_act_grad, 2, (ls_value[]){map(g, p), map(g, p)}, &a);
}
/* p[4]: activation, p[5]: residual */
static ls_norm_attr norm_attr(const int64_t *p)
{
    return (ls_norm_attr){.eps = 1e-5, .momentum = 0.1, .act = (ls_act)p[4], .residual = p[5] != 0};
}
static void batch_norm(ls_graph *g, const int64_t *p)
{
    ls_norm_attr a = norm_attr(p);
    ls_value in[] = {map(g, p),         per_channel(g, p), per_channel(g, p),
                     per_channel(g, p), per_channel(g, p), map(g, p)};

    ls_graph_add(g, &ls_op_batch_norm, a.residual ? 6 : 5, in, &a);
}
static void batch_norm_grad(ls_graph *g, const int64_t *p)
{
    ls_norm_attr a = norm_attr(p);
    ls_value in[] = {map(g, p),         map(g, p),         per_channel(g, p),
                     per_channel(g, p), per_channel(g, p), map(g, p)};

    ls_graph_add(g, &ls_op_batch_norm_grad, a.act != LS_ACT_NONE ? 6 : 5, in, &a);
}
static void instance_norm(ls_graph *g, const int64_t *p)
{
    ls_norm_attr a = norm_attr(p);

    ls_graph_add(g, &ls_op_instance_norm, a.residual ? 2 : 1, (ls_value[]){map(g, p), map(g, p)}, &a);
}
/* p[4]: size of the window, p[5]: padding, p[6]: relu; stride 2 */
static ls_pool_attr window(const int64_t *p)
{
    int k = (int)p[4], pad = (int)p[5];

    return (ls_pool_attr){.kernel = {k, k},
                          .stride = {2, 2},
                          .pad = {pad, pad, pad, pad},
                          .in = {p[2], p[3]},
                          .relu = p[6] != 0};
}
static void maxpool(ls_graph *g, const int64_t *p)
{
    ls_maxpool2d(map(g, p), window(p));
}
static void maxpool_grad(ls_graph *g, const int64_t *p)
{
    int64_t h = (p[2] + 2 * p[5] - p[4]) / 2 + 1, w = (p[3] + 2 * p[5] - p[4]) / 2 + 1;
    ls_shape y = LS_SHAPE(p[0], p[1], h, w);
    ls_pool_attr a = window(p);
    ls_value in[] = {input(g, LS_F32, y), input(g, LS_U8, y), input(g, LS_F32, y)};

    ls_graph_add(g, &ls_op_maxpool2d_grad, a.relu ? 3 : 2, in, &a);
}
static void upsample(ls_graph *g, const int64_t *p)
{
    ls_upsample2d(map(g, p), 2);
}
static void pad_reflect(ls_graph *g, const int64_t *p)
{
    ls_pad2d(map(g, p), LS_PAD_REFLECT, 1, 1, 1, 1);
}
static void global_pool(ls_graph *g, const int64_t *p)
{
    ls_reduce_sum(map(g, p), 0xc, false);
}
static void dropout(ls_graph *g, const int64_t *p)
{
    ls_dropout(map(g, p), input(g, LS_I32, LS_SHAPE(4)), 0.5, p[4] != 0, "bench");
}
static void transpose(ls_graph *g, const int64_t *p)
{
    ls_transpose(map(g, p), (const int[]){0, 2, 3, 1});
}
static void softmax(ls_graph *g, const int64_t *p)
{
    ls_softmax(map(g, p));
}
static void reduce_max(ls_graph *g, const int64_t *p)
{
    ls_reduce_max(map(g, p), 3);
}
static void chamfer(ls_graph *g, const int64_t *p)
{
    ls_chamfer(input(g, LS_F32, LS_SHAPE(p[0], 3, p[1])), input(g, LS_F32, LS_SHAPE(p[0], 3, p[1])));
}
/* p[0]: parameters of p[1] x p[2] */
static void optimiser(ls_graph *g, const int64_t *p, const ls_op *op, ls_optim_attr a)
{
    int n = (int)p[0], each = 2 + ls_optim_states(op, &a);
    ls_value in[3 + MAX_TENSORS] = {input(g, LS_F32, LS_SHAPE_SCALAR), input(g, LS_F32, LS_SHAPE_SCALAR),
                                    input(g, LS_I32, LS_SHAPE(1))};

    a.n = n;
    for (int i = 0; i < n * each; i++) in[3 + i] = input(g, LS_F32, LS_SHAPE(p[1], p[2]));
    ls_graph_add(g, op, 3 + n * each, in, &a);
}
static void sgd(ls_graph *g, const int64_t *p)
{
    optimiser(g, p, &ls_op_sgd, (ls_optim_attr){.momentum = 0.9, .weight_decay = 1e-4});
}
static void adam(ls_graph *g, const int64_t *p)
{
    optimiser(g, p, &ls_op_adam, (ls_optim_attr){.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8});
}

static const bench_case cases[] = {
    {"relu 12 MB", relu, {16, 64, 56, 56}, true},
    {"relu 51 MB", relu, {16, 64, 112, 112}, true},
    {"add 12 MB", add, {16, 64, 56, 56}, true},
    {"scale, add, relu 12 MB", chain, {16, 64, 56, 56}, true},
    {"gelu 12 MB", gelu, {16, 64, 56, 56}, true},
    {"bias 12 MB", bias, {16, 64, 56, 56}, true},
    {"bias plain 12 MB", bias, {16, 64, 56, 56}, false},
    {"bias_act_grad 12 MB", bias_act_grad, {16, 64, 56, 56}, true},
    {"batch_norm relu 51 MB", batch_norm, {16, 64, 112, 112, LS_ACT_RELU, 0}, true},
    {"batch_norm relu 12 MB", batch_norm, {16, 64, 56, 56, LS_ACT_RELU, 0}, true},
    {"batch_norm relu residual 12 MB", batch_norm, {16, 64, 56, 56, LS_ACT_RELU, 1}, true},
    {"batch_norm relu 14x14x256", batch_norm, {16, 256, 14, 14, LS_ACT_RELU, 0}, true},
    {"batch_norm plain 12 MB", batch_norm, {16, 64, 56, 56, LS_ACT_RELU, 0}, false},
    {"batch_norm_grad relu 51 MB", batch_norm_grad, {16, 64, 112, 112, LS_ACT_RELU, 0}, true},
    {"batch_norm_grad relu 12 MB", batch_norm_grad, {16, 64, 56, 56, LS_ACT_RELU, 0}, true},
    {"batch_norm_grad relu residual 12 MB", batch_norm_grad, {16, 64, 56, 56, LS_ACT_RELU, 1}, true},
    {"instance_norm 64x64x256", instance_norm, {1, 256, 64, 64, LS_ACT_RELU, 0}, true},
    {"maxpool 3x3/2 51 MB", maxpool, {16, 64, 112, 112, 3, 1}, true},
    {"maxpool 2x2/2", maxpool, {64, 64, 24, 24, 2, 0}, true},
    {"maxpool 2x2/2 plain", maxpool, {64, 64, 24, 24, 2, 0}, false},
    {"maxpool 2x2/2 relu", maxpool, {64, 64, 24, 24, 2, 0, 1}, true},
    {"maxpool 2x2/2 relu plain 24x24x10", maxpool, {64, 10, 24, 24, 2, 0, 1}, false},
    {"maxpool 2x2/2 relu plain 8x8x20", maxpool, {64, 20, 8, 8, 2, 0, 1}, false},
    {"maxpool_grad 3x3/2 51 MB", maxpool_grad, {16, 64, 112, 112, 3, 1}, true},
    {"maxpool_grad 2x2/2", maxpool_grad, {64, 64, 24, 24, 2, 0}, true},
    {"maxpool_grad 2x2/2 plain", maxpool_grad, {64, 64, 24, 24, 2, 0}, false},
    {"maxpool_grad 2x2/2 relu", maxpool_grad, {64, 64, 24, 24, 2, 0, 1}, true},
    {"maxpool_grad 2x2/2 relu plain 24x24x10", maxpool_grad, {64, 10, 24, 24, 2, 0, 1}, false},
    {"maxpool_grad 2x2/2 relu plain 8x8x20", maxpool_grad, {64, 20, 8, 8, 2, 0, 1}, false},
    {"upsample 2", upsample, {8, 64, 64, 64}, true},
    {"pad reflect", pad_reflect, {1, 256, 64, 64}, true},
    {"global pool", global_pool, {16, 512, 14, 14}, true},
    {"dropout", dropout, {16, 64, 56, 56, 0}, true},
    {"dropout plain", dropout, {16, 64, 56, 56, 0}, false},
    {"dropout per channel", dropout, {16, 64, 56, 56, 1}, true},
    {"dropout per channel plain 8x8x20", dropout, {64, 20, 8, 8, 1}, false},
    {"transpose nchw to nhwc", transpose, {16, 64, 56, 56}, false},
    {"softmax", softmax, {64, 12, 197, 197}, false},
    {"reduce_max of points", reduce_max, {32, 256, 1, 3371}, false},
    {"chamfer 2048", chamfer, {8, 2048}, false},
    {"sgd momentum 4 x 10 MB", sgd, {4, 1024, 2560}, false},
    {"adam 3 x 10 MB", adam, {3, 1024, 2560}, false},
};

/* -- timing -----------------------------------------------------------------------------------------------
 */

static void *take(size_t bytes)
{
    unsigned char *p = ls_alloc(LS_MEM_TEST, bytes + 64);

    if (p == NULL) {
        fprintf(stderr, "bench_vec: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

typedef struct copy_job {
    char *to, *from;
    int64_t bytes;
} copy_job;

static void copy_part(int thread, int n_threads, void *arg)
{
    const copy_job *j = arg;
    int64_t lo, hi;

    ls_parallel_range_grain(j->bytes, 4096, thread, n_threads, &lo, &hi);
    memcpy(j->to + lo, j->from + lo, (size_t)(hi - lo));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void *filled(const ls_vinfo *v)
{
    int64_t n = ls_shape_count(v->shape);
    void *p = take((size_t)n * ls_dtype_size(v->dtype));

    for (int64_t i = 0; i < n && v->dtype == LS_F32; i++)
        ((float *)p)[i] = (float)((uint32_t)i * 2654435761u >> 20) / 2048.0f - 0.5f;
    return p;
}

static void time_case(const bench_case *c, ls_device *dev)
{
    ls_graph *g;
    ls_kernel k = {0};
    ls_err err = {0};
    void *in[3 + MAX_TENSORS], *out[1 + MAX_TENSORS], *scratch;
    double mine[MAX_ROUNDS], copy[MAX_ROUNDS], bytes, spent = 0;
    copy_job job;
    const ls_node *n = NULL;
    int rounds = 0;

    if (ls_graph_create(&g, &err) != LS_OK) exit(1);
    c->build(g, c->p);
    if (ls_graph_status(g, &err) == LS_OK) {
        n = g->nodes[g->n_nodes - 1];
        for (int32_t i = 0; i < g->n_values; i++) {
            ls_vinfo *v = g->values[i];
            if (c->c16 && ls_layout_allowed(&lsi_layout_c16, v->dtype, v->shape)) v->layout = &lsi_layout_c16;
        }
        dev->backend->plan(dev, g, n, &k, &err);
    }
    if (err.status != LS_OK) {
        fprintf(stderr, "bench_vec: %s: %s\n", c->name, err.text);
        exit(1);
    }
    bytes = 0;
    for (int i = 0; i < n->n_in; i++) in[i] = filled(g->values[n->in[i]]);
    for (int i = 0; i < n->n_out; i++) out[i] = filled(g->values[n->out[i]]);
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        bytes += (double)ls_shape_count(v->shape) * (double)ls_dtype_size(v->dtype);
    }
    scratch = take(k.scratch_bytes);
    job = (copy_job){take((size_t)bytes / 2), take((size_t)bytes / 2), (int64_t)bytes / 2};
    k.run(k.state, &(ls_call){.in = in, .out = out, .scratch = scratch});
    while (rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || spent < 0.4)) {
        double t0 = ls_clock_seconds(), t1, t2;
        k.run(k.state, &(ls_call){.in = in, .out = out, .scratch = scratch});
        t1 = ls_clock_seconds();
        ls_parallel_run(dev->threads, copy_part, &job);
        t2 = ls_clock_seconds();
        mine[rounds] = t1 - t0;
        copy[rounds++] = t2 - t1;
        spent += t2 - t0;
    }
    qsort(mine, (size_t)rounds, sizeof mine[0], by_value);
    qsort(copy, (size_t)rounds, sizeof copy[0], by_value);
    printf("%-36s %-8s %9.1f us %7.1f GB/s  ratio %5.2f  best %5.2f\n", c->name, k.impl,
           mine[rounds / 2] * 1e6, bytes / mine[rounds / 2] * 1e-9, copy[rounds / 2] / mine[rounds / 2],
           copy[0] / mine[0]);
    fflush(stdout);
    for (int i = 0; i < n->n_in; i++) ls_free(in[i]);
    for (int i = 0; i < n->n_out; i++) ls_free(out[i]);
    ls_free(scratch);
    ls_free(job.to);
    ls_free(job.from);
    k.destroy(k.state);
    ls_graph_destroy(g);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    int threads = argc > 2 ? atoi(argv[2]) : ls_parallel_default_threads(1);
    ls_device *dev;
    ls_err err = {0};

    if (ls_device_open(&dev, "cpu", threads, &err) != LS_OK) {
        fprintf(stderr, "bench_vec: %s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strstr(cases[i].name, only) != NULL) time_case(&cases[i], dev);
    ls_device_close(dev);
    return 0;
}
