/* conv_impls.c: times every applicable convolution implementation on the layers of the networks we care
 * about.
 *
 * Usage: bench_conv [layer substring] [implementation substring] [threads].  The implementations of one
 * problem take turns, round by round, so that other load hits all of them alike; the median counts.  GFLOP/s
 * are by the dense direct count (2 n co ho wo ci kh kw) whatever the algorithm does; `ratio` is against
 * oneDNN's direct kernel (0 where it has none), of the medians and of the best rounds.  The first result of
 * every implementation is compared with that one too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/conv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"

enum { MAX_IMPLS = 32, MAX_ROUNDS = 15, MIN_ROUNDS = 3 };

typedef struct layer {
    const char *name;
    int64_t n, ci, hi, wi, co, ho, wo;
    int kh, kw, s, pt, pl;
} layer;

static const layer layers[] = {
    {"resnet224 56x56x64", 16, 64, 56, 56, 64, 56, 56, 3, 3, 1, 1, 1},
    {"resnet224 56->28", 16, 64, 56, 56, 128, 28, 28, 3, 3, 2, 1, 1},
    {"resnet224 56->28 1x1", 16, 64, 56, 56, 128, 28, 28, 1, 1, 2, 0, 0},
    {"resnet224 28x28x128", 16, 128, 28, 28, 128, 28, 28, 3, 3, 1, 1, 1},
    {"resnet224 28->14", 16, 128, 28, 28, 256, 14, 14, 3, 3, 2, 1, 1},
    {"resnet224 14x14x256", 16, 256, 14, 14, 256, 14, 14, 3, 3, 1, 1, 1},
    {"resnet224 14->7", 16, 256, 14, 14, 512, 7, 7, 3, 3, 2, 1, 1},
    {"resnet224 7x7x512", 16, 512, 7, 7, 512, 7, 7, 3, 3, 1, 1, 1},
    {"resnet32 8x8x64", 96, 64, 8, 8, 64, 8, 8, 3, 3, 1, 1, 1},
    {"resnet32 8->4", 96, 64, 8, 8, 128, 4, 4, 3, 3, 2, 1, 1},
    {"resnet32 8->4 1x1", 96, 64, 8, 8, 128, 4, 4, 1, 1, 2, 0, 0},
    {"resnet32 4x4x128", 96, 128, 4, 4, 128, 4, 4, 3, 3, 1, 1, 1},
    {"resnet32 4->2", 96, 128, 4, 4, 256, 2, 2, 3, 3, 2, 1, 1},
    {"resnet32 2x2x256", 96, 256, 2, 2, 256, 2, 2, 3, 3, 1, 1, 1},
    {"resnet32 2->1", 96, 256, 2, 2, 512, 1, 1, 3, 3, 2, 1, 1},
    {"resnet32 1x1x512", 96, 512, 1, 1, 512, 1, 1, 3, 3, 1, 1, 1},
    {"dcgan 64->128", 8, 64, 128, 128, 128, 64, 64, 5, 5, 2, 1, 1},
    {"dcgan 128->256", 8, 128, 64, 64, 256, 32, 32, 5, 5, 2, 1, 1},
    {"dcgan 256->384", 8, 256, 32, 32, 384, 16, 16, 5, 5, 2, 1, 1},
    {"dcgan-g 512->256", 8, 256, 32, 32, 512, 16, 16, 5, 5, 2, 1, 1},
    {"mnist 32->64", 64, 32, 26, 26, 64, 24, 24, 3, 3, 1, 0, 0},
    {"cyclegan 256", 1, 256, 66, 66, 256, 64, 64, 3, 3, 1, 0, 0},
    {"pointnet 64->128 k5", 32, 64, 1, 3371, 128, 1, 3371, 1, 5, 1, 0, 2},
    {"pointnet 128->256 k3", 32, 128, 1, 3371, 256, 1, 3371, 1, 3, 1, 0, 1},
    {"pointnet 256->256 k1", 32, 256, 1, 3371, 256, 1, 3371, 1, 1, 1, 0, 0},
    {"pointnet 256->512 k1", 32, 256, 1, 3371, 512, 1, 3371, 1, 1, 1, 0, 0},
    {"few mnist net-t 1->32", 64, 1, 28, 28, 32, 26, 26, 3, 3, 1, 0, 0},
    {"few mnist net-p 1->10", 64, 1, 28, 28, 10, 24, 24, 5, 5, 1, 0, 0},
    {"few mnist net-p 10->20", 64, 10, 12, 12, 20, 8, 8, 5, 5, 1, 0, 0},
    {"few resnet224 stem", 16, 3, 224, 224, 64, 112, 112, 7, 7, 2, 3, 3},
    {"few resnet32 stem", 96, 3, 32, 32, 64, 16, 16, 7, 7, 2, 3, 3},
    {"few dcgan 1->64", 8, 1, 256, 256, 64, 128, 128, 5, 5, 2, 1, 1},
    {"few cyclegan 3->64", 1, 3, 262, 262, 64, 256, 256, 7, 7, 1, 0, 0},
    {"few cyclegan 64->3", 1, 64, 262, 262, 3, 256, 256, 7, 7, 1, 0, 0},
    {"few patchgan 3->64", 1, 3, 256, 256, 64, 128, 128, 4, 4, 2, 1, 1},
    {"few patchgan 512->1", 1, 512, 31, 31, 1, 30, 30, 4, 4, 1, 1, 1},
    {"few pointnet 3->64 k5", 32, 3, 1, 3375, 64, 1, 3371, 1, 5, 1, 0, 0},
};

static const char *const pass_names[] = {"fwd", "dx", "dw"};

typedef struct candidate {
    const lsi_conv_impl *impl;
    void *state, *scratch;
    double seconds[MAX_ROUNDS];
    double error; /* against the first candidate, relative to its largest value */
} candidate;

typedef struct bench {
    lsi_conv_problem p;
    lsi_conv_args a;
    size_t out_bytes;
    float *out, *first;
    candidate c[MAX_IMPLS];
    int n;
} bench;

static void *take(size_t bytes)
{
    void *p = ls_alloc(LS_MEM_TEST, bytes);

    if (!p) {
        fprintf(stderr, "bench_conv: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static float *random_floats(int64_t n, uint32_t seed)
{
    float *f = take((size_t)n * sizeof *f);

    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        f[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    return f;
}

static lsi_conv_problem problem_of(const layer *l, lsi_conv_pass pass, int threads)
{
    return (lsi_conv_problem){.pass = pass,
                              .n = l->n,
                              .ci = l->ci,
                              .hi = l->hi,
                              .wi = l->wi,
                              .co = l->co,
                              .ho = l->ho,
                              .wo = l->wo,
                              .kh = l->kh,
                              .kw = l->kw,
                              .sh = l->hi == 1 ? 1 : l->s,
                              .sw = l->s,
                              .dh = 1,
                              .dw = 1,
                              .pt = l->pt,
                              .pl = l->pl,
                              .groups = 1,
                              .x_layout = l->ci % 16 ? &ls_layout_plain : &lsi_layout_c16,
                              .y_layout = l->co % 16 ? &ls_layout_plain : &lsi_layout_c16,
                              .threads = threads};
}

/* Largest difference from the first candidate's output over that output's largest value. */
static double difference(const bench *b)
{
    double worst = 0, size = 0;

    for (size_t i = 0; i < b->out_bytes / sizeof(float); i++) {
        const double d = fabs((double)b->out[i] - (double)b->first[i]), s = fabs((double)b->first[i]);
        if (!(d <= worst)) worst = d;
        if (s > size) size = s;
    }
    return size > 0 ? worst / size : worst;
}

static void add_candidates(bench *b, const char *impl_filter)
{
    for (int i = 0; lsi_conv_impls[i] && b->n < MAX_IMPLS; i++) {
        const lsi_conv_impl *impl = lsi_conv_impls[i];
        candidate *c = &b->c[b->n];
        ls_err err = {0};
        const bool is_base = strcmp(impl->name, "onednn") == 0;
        if (strcmp(impl->name, "naive") == 0 || !impl->applicable(&b->p)) continue;
        if (impl_filter && !is_base && !strstr(impl->name, impl_filter)) continue;
        *c = (candidate){.impl = impl};
        if (impl->create && impl->create(&c->state, &b->p, &err) != LS_OK) {
            printf("  %-18s %s\n", impl->name, err.text);
            continue;
        }
        c->scratch = take(impl->scratch ? impl->scratch(&b->p) : 0);
        b->n++;
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run_once(bench *b, int i, int round)
{
    candidate *c = &b->c[i];
    lsi_conv_args a = b->a;

    a.scratch = c->scratch;
    const double t0 = ls_clock_seconds();
    c->impl->run(c->state, &b->p, &a);
    if (round >= 0) {
        c->seconds[round] = ls_clock_seconds() - t0;
        return;
    }
    if (i == 0) memcpy(b->first, b->out, b->out_bytes);
    c->error = difference(b);
}

static void report(bench *b, int rounds, double flop)
{
    double base = 0, base_best = 0;

    for (int i = 0; i < b->n; i++) {
        qsort(b->c[i].seconds, (size_t)rounds, sizeof(double), by_value);
        if (strcmp(b->c[i].impl->name, "onednn") != 0) continue;
        base = b->c[i].seconds[rounds / 2];
        base_best = b->c[i].seconds[0];
    }
    for (int i = 0; i < b->n; i++) {
        const double s = b->c[i].seconds[rounds / 2], best = b->c[i].seconds[0];
        printf("  %-18s %9.3f ms %8.1f GFLOP/s  ratio %5.2f  best %5.2f  difference %.1e\n",
               b->c[i].impl->name, s * 1e3, flop / s * 1e-9, base / s, base_best / best, b->c[i].error);
    }
    fflush(stdout);
}

static void bench_problem(const layer *l, lsi_conv_pass pass, const char *impl_filter, int threads)
{
    static bench b;
    const int64_t nx = l->n * l->ci * l->hi * l->wi, ny = l->n * l->co * l->ho * l->wo;
    const int64_t nw = l->co * l->ci * l->kh * l->kw;
    const double flop = 2.0 * (double)(ny * l->ci * l->kh * l->kw);

    memset(&b, 0, sizeof b);
    b.p = problem_of(l, pass, threads);
    b.a = (lsi_conv_args){.x = random_floats(nx, 1), .w = random_floats(nw, 2), .y = random_floats(ny, 3)};
    b.out = pass == LSI_CONV_FWD ? b.a.y : pass == LSI_CONV_DX ? b.a.x : b.a.w;
    b.out_bytes = sizeof(float) * (size_t)(pass == LSI_CONV_FWD ? ny : pass == LSI_CONV_DX ? nx : nw);
    b.first = take(b.out_bytes);
    add_candidates(&b, impl_filter);
    for (int i = 0; i < b.n; i++) run_once(&b, i, -1);
    int rounds = 0;
    for (const double t0 = ls_clock_seconds();
         rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || ls_clock_seconds() - t0 < 0.3); rounds++)
        for (int i = 0; i < b.n; i++) run_once(&b, i, rounds);
    printf("%s %s\n", l->name, pass_names[pass]);
    report(&b, rounds, flop);
    for (int i = 0; i < b.n; i++) {
        if (b.c[i].impl->destroy) b.c[i].impl->destroy(b.c[i].state);
        ls_free(b.c[i].scratch);
    }
    ls_free(b.a.x);
    ls_free(b.a.w);
    ls_free(b.a.y);
    ls_free(b.first);
}

int main(int argc, char **argv)
{
    const char *layer_filter = argc > 1 ? argv[1] : "";
    const char *impl_filter = argc > 2 && *argv[2] ? argv[2] : NULL;
    const int threads = argc > 3 ? atoi(argv[3]) : ls_parallel_default_threads(1);

    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (!strstr(layers[i].name, layer_filter)) continue;
        for (int pass = 0; pass < 3; pass++)
            bench_problem(&layers[i], (lsi_conv_pass)pass, impl_filter, threads);
    }
    return 0;
}
