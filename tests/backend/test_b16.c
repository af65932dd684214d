/* test_b16.c: products and convolutions of bf16 numbers against those of fp32 by plain loops.
 *
 * Operands are numbers that bf16 has, so that rounding them changes nothing: what is left are sums in another
 * order, and the rounding of results that are stored as bf16.  Every type of every operand is met, and the
 * bits must not depend on the number of threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/conv_list.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm_internal.h"
#include "base/alloc.h"
#include "check.h"
#include "conv_case.h"

enum { GUARD = 64, THREADS_MAX = 3 };

/* Types of operands: every problem meets all of them.  Where that would take too long, each meets every
 * MIX_STRIDE-th, and all of them are met by some: emulated instructions are slow, and ThreadSanitizer is
 * there for the threads, which all types use in the same way. */
#ifndef MIX_STRIDE
#ifdef __SANITIZE_THREAD__
#define MIX_STRIDE 5
#else
#define MIX_STRIDE 1
#endif
#endif

static uint32_t seed;

static float random_value(void)
{
    seed = seed * 1664525u + 1013904223u;
    return ls_bf16_to_f32(ls_bf16_from_f32((float)(seed >> 8) / (float)(1 << 23) - 1.0f));
}

static void *bytes(size_t n)
{
    void *p = ls_alloc(LS_MEM_TEST, n + GUARD);

    REQUIRE(p != NULL);
    return p;
}

static float *numbers(int64_t n)
{
    float *f = bytes((size_t)n * sizeof *f);

    for (int64_t i = 0; i < n; i++) f[i] = random_value();
    return f;
}

/* The same numbers as they would be stored. */
static void *stored(const float *from, int64_t n, ls_dtype t)
{
    void *to = bytes((size_t)n * ls_dtype_size(t));

    for (int64_t i = 0; i < n; i++)
        if (t == LS_F32)
            ((float *)to)[i] = from[i];
        else
            ((uint16_t *)to)[i] = ls_bf16_from_f32(from[i]);
    return to;
}

/* Largest difference in units of what sums of `terms` products, and rounding, explain. */
static double worst_of(const float *want, const void *got, ls_dtype t, int64_t n, int64_t terms)
{
    double worst = 0;

    for (int64_t i = 0; i < n; i++) {
        const float v = t == LS_F32 ? ((const float *)got)[i] : ls_bf16_to_f32(((const uint16_t *)got)[i]);
        const double sum = 2.4e-7 * (16 + (double)terms);
        const double tol = sum + (t == LS_F32 ? 0 : fabs((double)want[i]) / 256);
        const double e = fabs((double)v - (double)want[i]) / tol;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

/* -- products ------------------------------------------------------------------------------------------- */

typedef struct gemm_case {
    int64_t m, n, k, batch;
} gemm_case;

/* With two threads those of 1100 are cut into several blocks of rows or columns for each. */
static const gemm_case products[] = {
    {1, 1, 1, 1},      {5, 7, 0, 1},      {3, 2, 33, 1},    {33, 17, 31, 1}, {32, 32, 64, 1},
    {64, 48, 96, 1},   {50, 100, 32, 1},  {16, 1100, 5, 1}, {7, 3, 5000, 1}, {130, 70, 257, 1},
    {9, 5, 40, 5},     {20, 33, 64, 2},   {1, 40, 64, 1},   {40, 1, 64, 1},  {65, 34, 4100, 1},
    {1100, 40, 36, 1}, {20, 530, 1100, 1}};

static const struct {
    ls_dtype a, b, c, bias;
} mixes[] = {{LS_BF16, LS_BF16, LS_BF16, LS_BF16},
             {LS_BF16, LS_F32, LS_BF16, LS_F32},
             {LS_F32, LS_BF16, LS_F32, LS_F32},
             {LS_BF16, LS_BF16, LS_F32, LS_BF16},
             {LS_F32, LS_F32, LS_BF16, LS_F32}};

static void run_gemm(const lsi_gemm_impl *impl, const lsi_gemm_problem *p, const void *a, const void *b,
                     void *c, const void *bias)
{
    const size_t n = impl->scratch != NULL ? impl->scratch(p) : 0;
    unsigned char *scratch = bytes(n);

    memset(scratch, 0xff, n);
    memset(scratch + n, 0x5a, GUARD);
    CHECK_EQ_INT(impl->run(p, a, b, c, p->has_bias ? bias : NULL, scratch), LS_OK);
    for (int i = 0; i < GUARD; i++) CHECK_EQ_INT(scratch[n + (size_t)i], 0x5a);
    ls_free(scratch);
}

static void check_product(const gemm_case *k, int trans, size_t mix, bool ending)
{
    const int64_t na = k->batch * k->m * k->k, nb = k->batch * k->k * k->n, nc = k->batch * k->m * k->n;
    lsi_gemm_problem p = {.m = k->m,
                          .n = k->n,
                          .k = k->k,
                          .batch = k->batch,
                          .trans_a = trans & 1,
                          .trans_b = trans & 2,
                          .lda = trans & 1 ? k->m : k->k,
                          .ldb = trans & 2 ? k->k : k->n,
                          .ldc = k->n,
                          .stride_a = k->m * k->k,
                          .stride_b = k->k * k->n,
                          .stride_c = k->m * k->n,
                          .has_bias = ending,
                          .act = ending ? LSI_ACT_LEAKY : LSI_ACT_NONE,
                          .slope = 0.1f,
                          .threads = 1};
    float *a = numbers(na), *b = numbers(nb), *bias = numbers(k->n), *want = numbers(nc);
    void *first = NULL;

    p.accumulate = ending && mixes[mix].c == LS_F32;
    void *from = stored(want, nc, mixes[mix].c); /* what C holds before */
    run_gemm(&lsi_gemm_naive, &p, a, b, want, bias);
    p.a_type = mixes[mix].a, p.b_type = mixes[mix].b, p.c_type = mixes[mix].c, p.bias_type = mixes[mix].bias;
    REQUIRE(lsi_gemm_b16.applicable(&p));
    void *sa = stored(a, na, p.a_type), *sb = stored(b, nb, p.b_type),
         *sbias = stored(bias, k->n, p.bias_type);
    for (p.threads = 1; p.threads <= THREADS_MAX; p.threads++) {
        const size_t n = (size_t)nc * ls_dtype_size(p.c_type);
        void *c = bytes(n);
        memcpy(c, from, n);
        run_gemm(&lsi_gemm_b16, &p, sa, sb, c, sbias);
        if (!CHECK(worst_of(want, c, p.c_type, nc, k->k) <= 1))
            fprintf(stderr, "m %lld n %lld k %lld, trans %d, mix %zu, threads %d\n", (long long)k->m,
                    (long long)k->n, (long long)k->k, trans, mix, p.threads);
        if (first != NULL) CHECK_EQ_MEM(first, c, n);
        ls_free(first);
        first = c;
    }
    ls_free(first);
    void *all[] = {a, b, bias, want, from, sa, sb, sbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ls_free(all[i]);
}

static void test_products(void)
{
    for (size_t k = 0; k < sizeof products / sizeof *products; k++)
        for (int trans = 0; trans < 4; trans++)
            for (size_t mix = (k + (size_t)trans) % MIX_STRIDE; mix < sizeof mixes / sizeof *mixes;
                 mix += MIX_STRIDE)
                check_product(&products[k], trans, mix, (k + mix) % 2);
}

/* -- convolutions --------------------------------------------------------------------------------------- */

static const conv_case convs[] = {
    {"1x1 map", 3, 16, 1, 1, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 same", 2, 32, 9, 11, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 odd blocks", 5, 48, 7, 7, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"3x3 stride 2", 3, 16, 14, 13, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {"1x1", 2, 64, 6, 5, 32, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"1x1 stride 2", 2, 32, 9, 6, 48, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1},
    {"5x5 stride 2", 2, 16, 16, 16, 32, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 1},
    {"6x6 stride 2", 1, 16, 13, 12, 16, 6, 6, 2, 2, 1, 1, 2, 2, 2, 2, 1},
    {"dilated", 2, 16, 12, 11, 16, 3, 3, 1, 1, 2, 3, 2, 3, 2, 3, 1},
    {"dilated stride", 1, 16, 15, 14, 16, 3, 3, 2, 3, 2, 2, 1, 0, 2, 3, 1},
    {"stride beyond filter", 2, 16, 11, 11, 16, 2, 2, 3, 3, 1, 1, 0, 0, 0, 0, 1},
    {"unused border", 1, 16, 12, 12, 16, 3, 3, 4, 4, 1, 1, 0, 0, 0, 0, 1},
    {"pad beyond filter", 1, 16, 5, 6, 16, 3, 3, 1, 1, 1, 1, 4, 3, 3, 5, 1},
    {"long row", 2, 16, 1, 131, 32, 1, 5, 1, 1, 1, 1, 0, 2, 0, 2, 1},
    {"many images", 40, 16, 3, 3, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"large map", 1, 64, 70, 70, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"stem", 2, 3, 32, 30, 64, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1},
    {"one channel", 3, 1, 14, 15, 32, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2, 1},
    {"two channels", 1, 2, 9, 40, 16, 3, 8, 1, 1, 1, 1, 1, 3, 1, 4, 1},
    {"few out", 2, 32, 9, 12, 3, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3, 1},
    {"few out stride 2", 2, 16, 8, 8, 1, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2, 1},
    {"patches", 2, 3, 16, 16, 32, 8, 8, 8, 8, 1, 1, 0, 0, 0, 0, 1},
    {"large patches", 2, 3, 32, 48, 32, 16, 16, 16, 16, 1, 1, 0, 0, 0, 0, 1},
    {"wide filter", 2, 2, 6, 40, 16, 3, 11, 1, 2, 1, 1, 1, 5, 1, 5, 1},
    {"images that share a margin", 3, 32, 14, 14, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {"even filter", 2, 16, 9, 9, 16, 4, 4, 1, 1, 1, 1, 1, 1, 2, 2, 1},
    {"no padding", 3, 16, 8, 9, 16, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1},
};

static void run_conv(const lsi_conv_impl *impl, const lsi_conv_problem *p, lsi_conv_args a)
{
    const size_t n = impl->scratch != NULL ? impl->scratch(p) : 0;
    unsigned char *scratch = bytes(n);

    memset(scratch, 0xff, n);
    memset(scratch + n, 0x5a, GUARD);
    a.scratch = scratch;
    impl->run(NULL, p, &a);
    for (int i = 0; i < GUARD; i++) CHECK_EQ_INT(scratch[n + (size_t)i], 0x5a);
    ls_free(scratch);
}

/* Every way of storing x, w, y and the bias that has at least one in 16 bits. */
static void set_types(lsi_conv_problem *p, int mix)
{
    p->x_type = mix & 1 ? LS_BF16 : LS_F32;
    p->w_type = mix & 2 ? LS_BF16 : LS_F32;
    p->y_type = mix & 4 ? LS_BF16 : LS_F32;
    p->bias_type = p->has_bias && mix & 2 ? LS_BF16 : LS_F32;
}

static int check_conv(const lsi_conv_impl *impl, const conv_case *k, lsi_conv_pass pass, int mix)
{
    lsi_conv_problem p = conv_problem_of(k, pass);
    const int64_t n[4] = {p.n * p.ci * p.hi * p.wi, p.co * p.ci * p.kh * p.kw, p.n * p.co * p.ho * p.wo,
                          p.ci > p.co ? p.ci : p.co};
    const int made = pass == LSI_CONV_DX ? 0 : pass == LSI_CONV_DW ? 1 : 2;
    const int64_t terms = pass == LSI_CONV_DW ? p.n * p.ho * p.wo : (p.ci > p.co ? p.ci : p.co) * p.kh * p.kw;
    float *f[4];
    void *s[4], *first = NULL;

    p.x_layout = k->ci % 16 ? &ls_layout_plain : &lsi_layout_c16;
    p.y_layout = k->co % 16 ? &ls_layout_plain : &lsi_layout_c16;
    p.threads = 1;
    p.has_bias = pass != LSI_CONV_DW && mix % 3 == 0;
    p.act = pass != LSI_CONV_DW && mix % 2 == 1 ? LSI_ACT_TANH : LSI_ACT_NONE;
    set_types(&p, mix);
    if (!impl->applicable(&p)) return 0;
    for (int i = 0; i < 4; i++) f[i] = numbers(n[i]);
    lsi_conv_problem wide = p;
    wide.x_type = wide.y_type = wide.w_type = wide.bias_type = LS_F32;
    run_conv(&lsi_conv_naive, &wide, (lsi_conv_args){.x = f[0], .w = f[1], .y = f[2], .bias = f[3]});
    const ls_dtype t[4] = {p.x_type, p.w_type, p.y_type, p.bias_type};
    for (int i = 0; i < 4; i++) s[i] = stored(f[i], n[i], t[i]);
    for (p.threads = 1; p.threads <= THREADS_MAX; p.threads += THREADS_MAX - 1) {
        const size_t size = (size_t)n[made] * ls_dtype_size(t[made]);
        unsigned char *c = bytes(size);
        memset(c, 0xff, size);
        memset(c + size, 0x5a, GUARD);
        ls_free(s[made]);
        s[made] = c;
        run_conv(impl, &p, (lsi_conv_args){.x = s[0], .w = s[1], .y = s[2], .bias = s[3]});
        if (!CHECK(worst_of(f[made], c, t[made], n[made], terms) <= 1))
            fprintf(stderr, "%s on \"%s\", pass %d, mix %d, threads %d: %g\n", impl->name, k->name, (int)pass,
                    mix, p.threads, worst_of(f[made], c, t[made], n[made], terms));
        for (int i = 0; i < GUARD; i++) CHECK_EQ_INT(c[size + (size_t)i], 0x5a);
        if (first != NULL) CHECK_EQ_MEM(first, c, size);
        ls_free(first);
        first = c;
        s[made] = NULL;
    }
    ls_free(first);
    for (int i = 0; i < 4; i++) {
        ls_free(f[i]);
        ls_free(s[i]);
    }
    return 1;
}

static void test_convolutions(void)
{
    static const lsi_conv_impl *const impls[] = {&lsi_conv_b16, &lsi_conv_b16_first, &lsi_conv_b16_dw,
                                                 &lsi_conv_b16_dw_few};

    for (size_t i = 0; i < sizeof impls / sizeof *impls; i++) {
        int runs = 0;
        for (size_t k = 0; k < sizeof convs / sizeof *convs; k++)
            for (int pass = LSI_CONV_FWD; pass <= LSI_CONV_DW; pass++)
                for (int mix = 1 + ((int)k + pass) % MIX_STRIDE; mix < 8; mix += MIX_STRIDE)
                    runs += check_conv(impls[i], &convs[k], (lsi_conv_pass)pass, mix);
        printf("%-10s %d problems\n", impls[i]->name, runs);
        CHECK(runs > 0);
    }
}

int main(void)
{
    if (lsi_b16_kernels_here() == NULL) {
        printf("skipped: this processor has no products of bf16 numbers\n");
        return 77;
    }
    printf("by %s\n", lsi_b16_kernels_here()->name);
    CHECK_RUN(test_products);
    CHECK_RUN(test_convolutions);
    return CHECK_DONE();
}
