/* gemm_impls.c: times every matrix product implementation on the shapes of the networks we care about.
 *
 * Usage: bench_gemm [shape substring] [threads] [bf16].  The implementations of one problem take turns, round
 * by round, so that other load hits all of them alike; the median counts.  `ratio` is against dnnl_sgemm;
 * GB/s count every operand once, which is what thin shapes are limited by.  Operands are those of the round
 * before, so that small ones are in a cache.  With bf16, they are stored as in a step of that precision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/gemm.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"

enum { MAX_IMPLS = 8, MAX_ROUNDS = 31, MIN_ROUNDS = 5 };

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool trans_a, trans_b;
    int64_t batch;
} shape;

/* A layer of in -> out features at batch b: fwd is (b, in) (out, in)^T, dx (b, out) (out, in), dw (b, out)^T
 * (b, in). */
static const shape shapes[] = {
    {"mnist 9216->128 fwd", 64, 128, 9216, false, true, 1},
    {"mnist 9216->128 dx", 64, 9216, 128, false, false, 1},
    {"mnist 9216->128 dw", 128, 9216, 64, true, false, 1},
    {"mnist 320->50 fwd", 64, 50, 320, false, true, 1},
    {"mnist 320->50 dx", 64, 320, 50, false, false, 1},
    {"mnist 320->50 dw", 50, 320, 64, true, false, 1},
    {"mnist 128->10 fwd", 64, 10, 128, false, true, 1},
    {"resnet 512->10 fwd", 96, 10, 512, false, true, 1},
    {"resnet 512->10 dx", 96, 512, 10, false, false, 1},
    {"resnet 512->10 dw", 10, 512, 96, true, false, 1},
    {"resnet 512->1000 fwd", 16, 1000, 512, false, true, 1},
    {"resnet 512->1000 dx", 16, 512, 1000, false, false, 1},
    {"resnet 512->1000 dw", 1000, 512, 16, true, false, 1},
    {"dcgan-g h0 64->131072 fwd", 8, 131072, 64, false, true, 1},
    {"dcgan-g h0 64->131072 dx", 8, 64, 131072, false, false, 1},
    {"dcgan-g h0 64->131072 dw", 131072, 64, 8, true, false, 1},
    {"dcgan-d 98304->1 fwd", 8, 1, 98304, false, true, 1},
    {"dcgan-d 98304->1 dx", 8, 98304, 1, false, false, 1},
    {"dcgan-d 98304->1 dw", 1, 98304, 8, true, false, 1},
    {"aae 1024->10125 fwd", 32, 10125, 1024, false, true, 1},
    {"aae 1024->10125 dx", 32, 1024, 10125, false, false, 1},
    {"aae 1024->10125 dw", 10125, 1024, 32, true, false, 1},
    {"vit 768->768 fwd", 788, 768, 768, false, true, 1},
    {"vit 768->2304 fwd", 788, 2304, 768, false, true, 1},
    {"vit 768->3072 fwd", 788, 3072, 768, false, true, 1},
    {"vit 768->3072 dx", 788, 768, 3072, false, false, 1},
    {"vit 768->3072 dw", 3072, 768, 788, true, false, 1},
    {"vit attention q k^T", 197, 197, 64, false, true, 48},
    {"vit attention p v", 197, 64, 197, false, false, 48},
    {"square 512", 512, 512, 512, false, false, 1},
    {"square 64", 64, 64, 64, false, false, 1},
};

typedef struct candidate {
    const lsi_gemm_impl *impl;
    void *scratch;
    double seconds[MAX_ROUNDS];
} candidate;

static void *take(size_t bytes)
{
    void *p = ls_alloc(LS_MEM_TEST, bytes);

    if (!p) {
        fprintf(stderr, "bench_gemm: no memory for %zu bytes\n", bytes);
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

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Weights and their gradients are fp32; attention has none. */
static void store_as_bf16(lsi_gemm_problem *p)
{
    p->a_type = LS_BF16;
    p->b_type = p->trans_a || p->batch > 1 ? LS_BF16 : LS_F32;
    p->c_type = p->trans_a ? LS_F32 : LS_BF16;
}

static void *random_numbers(int64_t n, uint32_t seed, ls_dtype type)
{
    float *f = random_floats(n, seed);
    uint16_t *b;

    if (type == LS_F32) return f;
    b = take((size_t)n * sizeof *b);
    for (int64_t i = 0; i < n; i++) b[i] = ls_bf16_from_f32(f[i]);
    ls_free(f);
    return b;
}

static void report(const shape *s, const lsi_gemm_problem *p, candidate *c, int n, int rounds)
{
    const double flop = 2.0 * (double)(s->m * s->n * s->k * s->batch);
    const double bytes = (double)s->batch * ((double)(s->m * s->k) * (double)ls_dtype_size(p->a_type) +
                                             (double)(s->k * s->n) * (double)ls_dtype_size(p->b_type) +
                                             (double)(s->m * s->n) * (double)ls_dtype_size(p->c_type));
    double base = 0, base_best = 0;

    for (int i = 0; i < n; i++) {
        qsort(c[i].seconds, (size_t)rounds, sizeof(double), by_value);
        if (strcmp(c[i].impl->name, "dnnl") != 0) continue;
        base = c[i].seconds[rounds / 2];
        base_best = c[i].seconds[0];
    }
    printf("%s\n", s->name);
    for (int i = 0; i < n; i++) {
        const double t = c[i].seconds[rounds / 2];
        printf("  %-8s %9.1f us %8.1f GFLOP/s %7.1f GB/s", c[i].impl->name, t * 1e6, flop / t * 1e-9,
               bytes / t * 1e-9);
        if (base > 0) printf("  ratio %5.2f  best %5.2f", base / t, base_best / c[i].seconds[0]);
        printf("\n");
    }
    if (n == 0) printf("  nothing here multiplies these types\n");
    fflush(stdout);
}

static void bench_shape(const shape *s, int threads, bool bf16)
{
    lsi_gemm_problem p = {.m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .lda = s->trans_a ? s->m : s->k,
                          .ldb = s->trans_b ? s->k : s->n,
                          .ldc = s->n,
                          .trans_a = s->trans_a,
                          .trans_b = s->trans_b,
                          .batch = s->batch,
                          .stride_a = s->m * s->k,
                          .stride_b = s->k * s->n,
                          .stride_c = s->m * s->n,
                          .threads = threads};
    candidate c[MAX_IMPLS];
    int n = 0, rounds = 0;

    if (bf16) store_as_bf16(&p);
    void *a = random_numbers(s->batch * s->m * s->k, 1, p.a_type);
    void *b = random_numbers(s->batch * s->k * s->n, 2, p.b_type);
    void *out = take((size_t)(s->batch * s->m * s->n) * ls_dtype_size(p.c_type));
    for (int i = 0; lsi_gemm_impls[i] && n < MAX_IMPLS; i++) {
        const lsi_gemm_impl *impl = lsi_gemm_impls[i];
        if (strcmp(impl->name, "naive") == 0 || !impl->applicable(&p)) continue;
        c[n++] = (candidate){.impl = impl, .scratch = take(impl->scratch ? impl->scratch(&p) : 0)};
    }
    for (int i = 0; i < n; i++) c[i].impl->run(&p, a, b, out, NULL, c[i].scratch);
    for (const double t0 = ls_clock_seconds();
         rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || ls_clock_seconds() - t0 < 0.3); rounds++) {
        for (int i = 0; i < n; i++) {
            const double before = ls_clock_seconds();
            c[i].impl->run(&p, a, b, out, NULL, c[i].scratch);
            c[i].seconds[rounds] = ls_clock_seconds() - before;
        }
    }
    report(s, &p, c, n, rounds);
    for (int i = 0; i < n; i++) ls_free(c[i].scratch);
    ls_free(a);
    ls_free(b);
    ls_free(out);
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : "";
    const int threads = argc > 2 ? atoi(argv[2]) : ls_parallel_default_threads(1);
    const bool bf16 = argc > 3 && strcmp(argv[3], "bf16") == 0;

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strstr(shapes[i].name, filter)) bench_shape(&shapes[i], threads, bf16);
    return 0;
}
