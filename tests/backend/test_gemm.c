/* test_gemm.c: every matrix product implementation against plain loops in double.
 *
 * Each case runs with all transposes, both thread counts, with and without accumulation, bias and activation,
 * and with leading dimensions larger than the rows; what lies between the rows of C must stay untouched. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/gemm.h"
#include "base/alloc.h"
#include "check.h"

typedef struct gemm_case {
    int64_t m, n, k, batch;
} gemm_case;

static const gemm_case cases[] = {
    {0, 5, 3, 1},     {5, 0, 3, 1},      {4, 5, 0, 1},     {1, 1, 1, 1},     {1, 1, 1000, 1},
    {1, 300, 7, 1},   {300, 1, 7, 1},    {2, 3, 5, 1},     {3, 2, 700, 1},   {7, 11, 13, 1},
    {14, 32, 256, 1}, {15, 33, 257, 1},  {16, 64, 64, 1},  {64, 50, 320, 1}, {64, 10, 50, 1},
    {53, 97, 301, 1}, {29, 527, 64, 1},  {8, 1031, 64, 1}, {8, 1, 2049, 1},  {8, 1025, 1, 1},
    {1, 1025, 8, 1},  {131, 67, 519, 1}, {17, 600, 31, 1}, {5, 7, 3, 3},     {31, 16, 40, 2},
    {13, 29, 300, 5}, {4, 640, 300, 1},  {6, 4, 259, 4},   {100, 3, 333, 1},
};

typedef struct ending {
    bool accumulate, has_bias;
    lsi_conv_act act;
} ending;

static const ending endings[] = {{false, false, LSI_ACT_NONE},
                                 {true, false, LSI_ACT_NONE},
                                 {false, true, LSI_ACT_RELU},
                                 {true, true, LSI_ACT_LEAKY},
                                 {false, true, LSI_ACT_TANH}};

enum { GUARD = 64, PAD = 3, MAX_IMPLS = 16 };

/* What surrounds C and fills the gaps between its rows. */
static const float sentinel = 12345.0f;

static float random_value(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static float *floats(int64_t n)
{
    float *f = ls_alloc(LS_MEM_TEST, (size_t)n * sizeof *f);

    REQUIRE(f != NULL);
    return f;
}

static double act(double v, const lsi_gemm_problem *p)
{
    switch (p->act) {
    case LSI_ACT_RELU: return v > 0 ? v : 0;
    case LSI_ACT_LEAKY: return v > 0 ? v : (double)p->slope * v;
    case LSI_ACT_TANH: return tanh(v);
    case LSI_ACT_NONE: break;
    }
    return v;
}

static double element(const lsi_gemm_problem *p, const float *a, const float *b, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t l = 0; l < p->k; l++)
        sum += (double)a[p->trans_a ? l * p->lda + i : i * p->lda + l] *
               (double)b[p->trans_b ? j * p->ldb + l : l * p->ldb + j];
    return sum;
}

/* Product sums without endings, (batch, m, n). */
static void reference(const lsi_gemm_problem *p, const float *a, const float *b, double *out)
{
    for (int64_t s = 0; s < p->batch; s++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                out[(s * p->m + i) * p->n + j] = element(p, a + s * p->stride_a, b + s * p->stride_b, i, j);
}

typedef struct operands {
    float *a, *b, *c0, *bias; /* c0: what C holds before, with its gaps and guards */
    double *want;
    int64_t c_floats;
} operands;

static bool is_c(const lsi_gemm_problem *p, int64_t at)
{
    const int64_t in = at - GUARD;

    if (in < 0 || in >= p->batch * p->stride_c) return false;
    return in % p->stride_c / p->ldc < p->m && in % p->stride_c % p->ldc < p->n;
}

static void operands_make(operands *o, lsi_gemm_problem *p)
{
    const int64_t rows_a = p->trans_a ? p->k : p->m, cols_a = p->trans_a ? p->m : p->k;
    const int64_t rows_b = p->trans_b ? p->n : p->k, cols_b = p->trans_b ? p->k : p->n;
    uint32_t seed = 99;

    p->lda = cols_a + PAD;
    p->ldb = cols_b + PAD;
    p->ldc = p->n + PAD;
    p->stride_a = rows_a * p->lda + 1;
    p->stride_b = rows_b * p->ldb + 2;
    p->stride_c = p->m * p->ldc + 5;
    o->a = floats(p->batch * p->stride_a);
    o->b = floats(p->batch * p->stride_b);
    o->bias = floats(p->n);
    o->c_floats = p->batch * p->stride_c + 2 * GUARD;
    o->c0 = floats(o->c_floats);
    for (int64_t i = 0; i < p->batch * p->stride_a; i++) o->a[i] = random_value(&seed);
    for (int64_t i = 0; i < p->batch * p->stride_b; i++) o->b[i] = random_value(&seed);
    for (int64_t i = 0; i < p->n; i++) o->bias[i] = random_value(&seed);
    for (int64_t i = 0; i < o->c_floats; i++) o->c0[i] = is_c(p, i) ? random_value(&seed) : sentinel;
    o->want = ls_alloc(LS_MEM_TEST, (size_t)(p->batch * p->m * p->n) * sizeof *o->want);
    REQUIRE(o->want != NULL);
    reference(p, o->a, o->b, o->want);
}

static void operands_release(operands *o)
{
    ls_free(o->a);
    ls_free(o->b);
    ls_free(o->bias);
    ls_free(o->c0);
    ls_free(o->want);
}

/* Largest error in units of the tolerance; infinity when something outside C was written. */
static double compare(const lsi_gemm_problem *p, const operands *o, const float *c)
{
    /* A plain sum of k products in (-1, 1) wanders to sqrt(k)/3 and is rounded k times on the way: 0.12 eps k
     * is the standard deviation of the error, and the largest of many elements is several times that. */
    const double tol = 1.2e-7 * (16 + (double)p->k);
    double worst = 0;

    for (int64_t at = 0; at < o->c_floats; at++) {
        if (!is_c(p, at)) {
            if (c[at] != sentinel) return INFINITY;
            continue;
        }
        const int64_t in = at - GUARD, s = in / p->stride_c, i = in % p->stride_c / p->ldc;
        const int64_t j = in % p->stride_c % p->ldc;
        const double v = o->want[(s * p->m + i) * p->n + j] + (p->accumulate ? (double)o->c0[at] : 0) +
                         (p->has_bias ? (double)o->bias[j] : 0);
        const double e = fabs((double)c[at] - act(v, p)) / tol;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void run_impl(const lsi_gemm_impl *impl, const lsi_gemm_problem *p, const operands *o, int64_t *runs)
{
    const size_t bytes = (size_t)o->c_floats * sizeof(float);
    float *first = floats(o->c_floats), *second = floats(o->c_floats);
    const size_t scratch_bytes = impl->scratch ? impl->scratch(p) : 0;
    unsigned char *scratch = ls_alloc(LS_MEM_TEST, scratch_bytes + GUARD);

    REQUIRE(scratch != NULL);
    memset(scratch, 0xff, scratch_bytes);
    memset(scratch + scratch_bytes, 0x5a, GUARD);
    memcpy(first, o->c0, bytes);
    memcpy(second, o->c0, bytes);
    impl->run(p, o->a, o->b, first + GUARD, p->has_bias ? o->bias : NULL, scratch);
    impl->run(p, o->a, o->b, second + GUARD, p->has_bias ? o->bias : NULL, scratch);
    bool held = CHECK(compare(p, o, first) <= 1);
    held = CHECK_EQ_MEM(first, second, bytes) && held;
    for (size_t i = 0; i < GUARD; i++) held = held && CHECK(scratch[scratch_bytes + i] == 0x5a);
    if (!held)
        fprintf(
            stderr,
            "%s: m %lld n %lld k %lld batch %lld, trans %d %d, accumulate %d, bias %d, act %d, threads %d\n",
            impl->name, (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->batch, p->trans_a,
            p->trans_b, p->accumulate, p->has_bias, (int)p->act, p->threads);
    (*runs)++;
    ls_free(first);
    ls_free(second);
    ls_free(scratch);
}

/* Under a sanitizer one ending (number `sample`, modulo their count), with threads. */
static void run_endings(lsi_gemm_problem p, const operands *o, size_t sample, int64_t *runs)
{
    const size_t n_endings = sizeof endings / sizeof *endings;

    for (size_t e = 0; e < n_endings; e++) {
        if (check_is_slow_build() && e != sample % n_endings) continue;
        p.accumulate = endings[e].accumulate;
        p.has_bias = endings[e].has_bias;
        p.act = endings[e].act;
        for (p.threads = check_is_slow_build() ? 3 : 1; p.threads <= 3; p.threads += 2)
            for (int i = 0; lsi_gemm_impls[i]; i++)
                if (lsi_gemm_impls[i]->applicable(&p)) run_impl(lsi_gemm_impls[i], &p, o, &runs[i]);
    }
}

static void test_all_cases(void)
{
    int64_t runs[MAX_IMPLS] = {0};

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int t = 0; t < 4; t++) {
            lsi_gemm_problem p = {.m = cases[c].m,
                                  .n = cases[c].n,
                                  .k = cases[c].k,
                                  .batch = cases[c].batch,
                                  .trans_a = t & 1,
                                  .trans_b = t & 2,
                                  .slope = 0.1f};
            operands o;
            operands_make(&o, &p);
            run_endings(p, &o, c + (size_t)t, runs);
            operands_release(&o);
        }
    }
    for (int i = 0; lsi_gemm_impls[i]; i++)
        printf("%-8s %5lld products\n", lsi_gemm_impls[i]->name, (long long)runs[i]);
}

/* A product so large that its result may be written past the caches. */
static void test_large_result(void)
{
    enum { M = 66001, N = 64, K = 3 };
    lsi_gemm_problem p = {
        .m = M, .n = N, .k = K, .lda = M, .ldb = N, .ldc = N, .trans_a = true, .batch = 1, .threads = 2};
    float *a = floats(M * K), *b = floats(K * N), *c = floats(M * N);
    uint32_t seed = 6;

    for (int i = 0; i < M * K; i++) a[i] = random_value(&seed);
    for (int i = 0; i < K * N; i++) b[i] = random_value(&seed);
    for (int impl = 0; lsi_gemm_impls[impl]; impl++) {
        double worst = 0;
        if (!lsi_gemm_impls[impl]->applicable(&p)) continue;
        const size_t bytes = lsi_gemm_impls[impl]->scratch ? lsi_gemm_impls[impl]->scratch(&p) : 0;
        void *scratch = ls_alloc(LS_MEM_TEST, bytes);
        REQUIRE(scratch != NULL);
        memset(c, 0xff, sizeof(float) * M * N);
        lsi_gemm_impls[impl]->run(&p, a, b, c, NULL, scratch);
        for (int64_t i = 0; i < M * N; i++) {
            const double e = fabs((double)c[i] - element(&p, a, b, i / N, i % N));
            if (!(e <= worst)) worst = e;
        }
        CHECK_NEAR(worst, 0, 1.2e-7 * 16);
        ls_free(scratch);
    }
    ls_free(a);
    ls_free(b);
    ls_free(c);
}

/* A column of B with unit stride, a shared B, and the call that chooses by itself. */
static void test_default(void)
{
    lsi_gemm_problem p = {.m = 9,
                          .n = 1,
                          .k = 600,
                          .lda = 600,
                          .ldb = 1,
                          .ldc = 1,
                          .batch = 2,
                          .stride_a = 9 * 600,
                          .stride_b = 0,
                          .stride_c = 9,
                          .threads = 2};
    float *a = floats(2 * 9 * 600), *b = floats(600), c[18];
    uint32_t seed = 5;
    void *scratch = ls_alloc(LS_MEM_TEST, lsi_gemm_scratch(&p));

    REQUIRE(scratch != NULL);
    for (int i = 0; i < 2 * 9 * 600; i++) a[i] = random_value(&seed);
    for (int i = 0; i < 600; i++) b[i] = random_value(&seed);
    lsi_gemm(&p, a, b, c, NULL, scratch);
    for (int i = 0; i < 18; i++) CHECK_NEAR(c[i], element(&p, a, b, i, 0), 1.2e-7 * 8 * sqrt(600));
    ls_free(a);
    ls_free(b);
    ls_free(scratch);
}

int main(void)
{
    CHECK_RUN(test_all_cases);
    CHECK_RUN(test_large_result);
    CHECK_RUN(test_default);
    return CHECK_DONE();
}
