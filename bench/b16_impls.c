/* b16_impls.c: the products of ViT-B in bf16, in several ways that take turns.
 *
 * Usage: bench_b16 kernel|products THREADS [seconds for each] [way ...]
 *
 * A way is a list of numbers as in LS_B16_TRY.  `kernel` multiplies tiles alone, each thread from room of its
 * own; `products` runs the shapes of a training step of 8 images, with operands that have left the caches,
 * and checks the results of every way against those of the first, and of that against plain sums. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm_internal.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"

enum { MAX_WAYS = 40, MAX_ROUNDS = 101, MIN_ROUNDS = 3, RING_BYTES = 256 << 20, SAMPLES = 300 };

typedef struct way {
    char text[64];
    int numbers[TRY_N];
    double seconds[MAX_ROUNDS];
    bool same;
} way;

static way ways[MAX_WAYS];
static int n_ways;

static void add_way(const char *text)
{
    way *w = &ways[n_ways++];
    char *at = w->text;

    *w = (way){.same = true};
    snprintf(w->text, sizeof w->text, "%s", text);
    for (int i = 0; i < TRY_N && *at; i++) {
        w->numbers[i] = (int)strtol(at, &at, 10);
        if (*at == ',') at++;
    }
}

static void use(const way *w)
{
    memcpy(lsi_b16_try, w->numbers, sizeof w->numbers);
}

static void *take(size_t bytes)
{
    void *p = ls_alloc(LS_MEM_TEST, bytes);

    if (!p) {
        fprintf(stderr, "bench_b16: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* -- tiles alone --------------------------------------------------------------------------------------------
 */

/* Rows of A, and pairs of blocks of B, that are multiplied again and again. */
typedef struct kernel_case {
    const char *name;
    int64_t terms, pairs;
    int64_t a_row; /* numbers */
} kernel_case;

static const kernel_case kernel_cases[] = {
    {"both in L1 (8 terms)", 8, 1, 32},          {"A in L1, B in L2 (8 terms)", 8, 36, 32},
    {"A in L1, B in L2 (12 terms)", 12, 24, 32}, {"L2, k 768, A by tiles", 24, 12, 32},
    {"L2, k 768, A in place", 24, 12, 768},      {"L2, k 3072, A by tiles", 96, 4, 32},
    {"L2, k 3072, A in place", 96, 4, 3072},
};

typedef struct kernel_run {
    const kernel_case *c;
    uint16_t *a, *b;
    int64_t a_numbers, b_numbers, repeats;
    double seconds[64];
} kernel_run;

static void kernel_thread(int thread, int n_threads, void *arg)
{
    kernel_run *r = arg;
    const kernel_case *c = r->c;
    const lsi_b16_kernels *k = lsi_b16_kernels_here();
    int64_t off[96];
    _Alignas(64) float sums[32 * 32];
    lsi_b16_product q = {.a = r->a + thread * r->a_numbers,
                         .a_off = off,
                         .a_row = c->a_row,
                         .b_block = c->terms * LSI_B16_BLOCK,
                         .n_terms = c->terms,
                         .c = sums,
                         .c_row = 32};

    (void)n_threads;
    for (int64_t t = 0; t < c->terms; t++) off[t] = t * (c->a_row == 32 ? 1024 : 32);
    k->begin();
    const double t0 = ls_clock_seconds();
    for (int64_t i = 0; i < r->repeats; i++)
        for (int64_t j = 0; j < c->pairs; j++) {
            q.b = r->b + thread * r->b_numbers + 2 * j * q.b_block;
            q.b_next = r->b + thread * r->b_numbers + (j + 1 < c->pairs ? 2 * (j + 1) : 0) * q.b_block;
            k->multiply(32, 2, &q);
        }
    r->seconds[thread] = ls_clock_seconds() - t0;
    k->end();
}

static void bench_kernel(const kernel_case *c, int threads, double seconds)
{
    kernel_run r = {.c = c};
    const double flop = 2.0 * 32 * 32 * 32 * (double)(c->terms * c->pairs);
    int rounds = 0;

    r.a_numbers = c->a_row == 32 ? 1024 * c->terms : 32 * c->a_row;
    r.b_numbers = 1024 * c->terms * c->pairs;
    r.repeats = (int64_t)(1e9 / flop) + 1; /* about a millisecond */
    r.a = take((size_t)(threads * r.a_numbers) * 2);
    r.b = take((size_t)(threads * r.b_numbers) * 2);
    for (const double t0 = ls_clock_seconds(); rounds < MAX_ROUNDS && ls_clock_seconds() - t0 < seconds;
         rounds++)
        for (int i = 0; i < n_ways; i++) {
            double sum = 0;
            use(&ways[i]);
            ls_parallel_run(threads, kernel_thread, &r);
            for (int t = 0; t < threads; t++) sum += r.seconds[t];
            ways[i].seconds[rounds] = sum / threads;
        }
    printf("%s: GFLOP/s a thread\n", c->name);
    for (int i = 0; i < n_ways; i++) {
        qsort(ways[i].seconds, (size_t)rounds, sizeof(double), by_value);
        printf("  %-22s %7.0f  best %7.0f\n", ways[i].text,
               flop * (double)r.repeats / ways[i].seconds[rounds / 2] * 1e-9,
               flop * (double)r.repeats / ways[i].seconds[0] * 1e-9);
    }
    fflush(stdout);
    ls_free(r.a);
    ls_free(r.b);
}

/* -- products -----------------------------------------------------------------------------------------------
 */

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool trans_a, trans_b;
    ls_dtype b_type, c_type;
    bool bias;
} shape;

static const shape shapes[] = {
    {"qkv  fwd", 1576, 2304, 768, false, true, LS_F32, LS_BF16, true},
    {"proj fwd", 1576, 768, 768, false, true, LS_F32, LS_BF16, true},
    {"fc1  fwd", 1576, 3072, 768, false, true, LS_F32, LS_BF16, true},
    {"fc2  fwd", 1576, 768, 3072, false, true, LS_F32, LS_BF16, true},
    {"qkv  dx ", 1576, 768, 2304, false, false, LS_F32, LS_BF16, false},
    {"proj dx ", 1576, 768, 768, false, false, LS_F32, LS_BF16, false},
    {"fc1  dx ", 1576, 768, 3072, false, false, LS_F32, LS_BF16, false},
    {"fc2  dx ", 1576, 3072, 768, false, false, LS_F32, LS_BF16, false},
    {"qkv  dw ", 2304, 768, 1576, true, false, LS_BF16, LS_F32, false},
    {"proj dw ", 768, 768, 1576, true, false, LS_BF16, LS_F32, false},
    {"fc1  dw ", 3072, 768, 1576, true, false, LS_BF16, LS_F32, false},
    {"fc2  dw ", 768, 3072, 1576, true, false, LS_BF16, LS_F32, false},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t seed = 1;

static float next_number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return ls_bf16_to_f32(ls_bf16_from_f32((float)(seed >> 8) / (float)(1 << 23) - 1.0f));
}

typedef struct ring {
    char *at;
    size_t bytes;
} ring;

/* The same numbers `copies` times. */
static ring make_ring(int64_t n, ls_dtype t, int copies)
{
    ring r = {.bytes = (size_t)lsi_round_up(n * (int64_t)ls_dtype_size(t), 64)};

    r.at = take(r.bytes * (size_t)copies);
    for (int64_t i = 0; i < n; i++)
        if (t == LS_F32)
            ((float *)(void *)r.at)[i] = next_number();
        else
            ((uint16_t *)(void *)r.at)[i] = ls_bf16_from_f32(next_number());
    for (int i = 1; i < copies; i++) memcpy(r.at + r.bytes * (size_t)i, r.at, r.bytes);
    return r;
}

static void *in_ring(const ring *r, int i)
{
    return r->at + r->bytes * (size_t)i;
}

static double number_at(const void *p, ls_dtype t, int64_t i)
{
    return (double)(t == LS_F32 ? ((const float *)p)[i] : ls_bf16_to_f32(((const uint16_t *)p)[i]));
}

/* Whether samples of C are what plain sums give. */
static bool right(const lsi_gemm_problem *p, const void *a, const void *b, const void *bias, const void *c)
{
    for (int s = 0; s < SAMPLES; s++) {
        const int64_t i = (s * 7919 + s / 7) % p->m, j = (s * 104729 + s) % p->n;
        double sum = p->has_bias ? number_at(bias, p->bias_type, j) : 0;
        for (int64_t l = 0; l < p->k; l++)
            sum += number_at(a, p->a_type, p->trans_a ? l * p->lda + i : i * p->lda + l) *
                   number_at(b, p->b_type, p->trans_b ? j * p->ldb + l : l * p->ldb + j);
        const double tol = 2.4e-7 * (double)p->k * 4 + (p->c_type == LS_F32 ? 0 : fabs(sum) / 256);
        if (!(fabs(sum - number_at(c, p->c_type, i * p->ldc + j)) <= tol)) return false;
    }
    return true;
}

static double total[MAX_WAYS];

static void bench_product(const shape *s, int threads, double seconds)
{
    lsi_gemm_problem p = {.m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .lda = s->trans_a ? s->m : s->k,
                          .ldb = s->trans_b ? s->k : s->n,
                          .ldc = s->n,
                          .trans_a = s->trans_a,
                          .trans_b = s->trans_b,
                          .batch = 1,
                          .a_type = LS_BF16,
                          .b_type = s->b_type,
                          .c_type = s->c_type,
                          .has_bias = s->bias,
                          .threads = threads};
    const size_t one = (size_t)(s->m * s->k) * 2 + (size_t)(s->k * s->n) * ls_dtype_size(s->b_type) +
                       (size_t)(s->m * s->n) * ls_dtype_size(s->c_type);
    const int copies = (int)(RING_BYTES / one) + 1;
    const ring a = make_ring(s->m * s->k, LS_BF16, copies), b = make_ring(s->k * s->n, s->b_type, copies);
    const ring c = make_ring(s->m * s->n, s->c_type, copies), bias = make_ring(s->n, LS_F32, 1);
    const size_t c_bytes = (size_t)(s->m * s->n) * ls_dtype_size(s->c_type);
    void *want = take(c_bytes), *scratch[MAX_WAYS];
    int rounds = 0, turn = 0;
    bool good = false;

    for (int i = 0; i < n_ways; i++) { /* results first; scratch begins as what is no number */
        void *to = in_ring(&c, i % copies);
        use(&ways[i]);
        scratch[i] = take(lsi_gemm_b16.scratch(&p));
        memset(scratch[i], 0xff, lsi_gemm_b16.scratch(&p));
        memset(to, 0xff, c_bytes);
        lsi_gemm_b16.run(&p, a.at, b.at, to, bias.at, scratch[i]);
        if (i == 0) {
            memcpy(want, to, c_bytes);
            good = right(&p, a.at, b.at, bias.at, want);
        }
        ways[i].same = memcmp(want, to, c_bytes) == 0;
        ls_free(scratch[i]);
    }
    for (int i = 0; i < n_ways; i++) {
        use(&ways[i]);
        scratch[i] = take(lsi_gemm_b16.scratch(&p));
        memset(scratch[i], 0, lsi_gemm_b16.scratch(&p));
    }
    for (const double t0 = ls_clock_seconds();
         rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || ls_clock_seconds() - t0 < seconds); rounds++)
        for (int i = 0; i < n_ways; i++) {
            double before;
            turn = (turn + 1) % copies;
            use(&ways[i]);
            before = ls_clock_seconds();
            lsi_gemm_b16.run(&p, in_ring(&a, turn), in_ring(&b, turn), in_ring(&c, turn), bias.at,
                             scratch[i]);
            ways[i].seconds[rounds] = ls_clock_seconds() - before;
        }
    printf("%s %s:", s->name, good ? "right" : "WRONG");
    for (int i = 0; i < n_ways; i++) {
        qsort(ways[i].seconds, (size_t)rounds, sizeof(double), by_value);
        total[i] += 12 * ways[i].seconds[rounds / 2];
        const bool meant = ways[i].numbers[TRY_ORDER] >= 8; /* to leave something out */
        printf(" %5.0f%s", 2e-9 * (double)(s->m * s->n * s->k) / ways[i].seconds[rounds / 2],
               ways[i].same || meant ? "" : "(BITS DIFFER)");
        ls_free(scratch[i]);
    }
    printf("\n");
    fflush(stdout);
    void *all[] = {a.at, b.at, c.at, bias.at, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ls_free(all[i]);
}

static const char *const kernel_ways[] = {"0",     "1",     "2",     "3",     "3,1,1", "3,2,1",
                                          "3,4,1", "3,2,3", "3,1,3", "1,2,1", "2,2,1", "0,2,1"};
static const char *const product_ways[] = {"0",
                                           "3",
                                           "0,0,0,0,1",
                                           "0,0,0,0,1,1",
                                           "0,0,0,0,1,2",
                                           "0,0,0,1,1,1",
                                           "0,0,0,2,1,1",
                                           "3,0,0,2,1,1",
                                           "3,2,1,2,1,1",
                                           "3,2,3,2,1,1",
                                           "3,2,1,2,1,2",
                                           "3,2,1,2,1,1,256",
                                           "3,2,1,2,1,1,768",
                                           "3,2,1,2,1,1,0,1",
                                           "3,2,1,2,1,1,0,2",
                                           "2,2,1,2,1,1",
                                           "0,0,0,0,0,0,0,0,1",
                                           "3,2,1,2,1,1,0,0,1",
                                           "3,2,1,2,1,1,256,0,1",
                                           "8",
                                           "9",
                                           "8,0,0,2,1,1",
                                           "9,0,0,2,1,1"};

int main(int argc, char **argv)
{
    const bool kernel = argc > 1 && strcmp(argv[1], "kernel") == 0;
    const int threads = argc > 2 ? atoi(argv[2]) : 2;
    const double seconds = argc > 3 ? atof(argv[3]) : 1;

    if (argc < 2 || lsi_b16_kernels_here() == NULL) {
        fprintf(stderr, "bench_b16: usage: kernel|products THREADS [seconds] [way ...]; needs avx512_bf16\n");
        return 1;
    }
    for (int i = 4; i < argc && n_ways < MAX_WAYS; i++) add_way(argv[i]);
    for (size_t i = 0; argc < 5 && kernel && i < sizeof kernel_ways / sizeof *kernel_ways; i++)
        add_way(kernel_ways[i]);
    for (size_t i = 0; argc < 5 && !kernel && i < sizeof product_ways / sizeof *product_ways; i++)
        add_way(product_ways[i]);
    printf("%s, %d threads\n", lsi_b16_kernels_here()->name, threads);
    for (size_t i = 0; kernel && i < sizeof kernel_cases / sizeof *kernel_cases; i++)
        bench_kernel(&kernel_cases[i], threads, seconds);
    if (kernel) return 0;
    for (int i = 0; i < n_ways; i++) printf("way %d: %s\n", i, ways[i].text);
    printf("GFLOP/s of ways 0..\n");
    for (int i = 0; i < N_SHAPES; i++) bench_product(&shapes[i], threads, seconds);
    printf("ms of all products of 12 blocks:");
    for (int i = 0; i < n_ways; i++) printf(" %.0f", 1e3 * total[i]);
    printf("\n");
    return 0;
}
