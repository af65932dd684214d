/* The vector functions against libm in double: largest error in units of the last place, over the ranges
 * where the result is a normal number, and what becomes of infinities, zeros and NaN. */
#include <math.h>
#include <stdio.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/pointwise.h"
#include "check.h"

#define N 4096

static double softplus_(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}
static double sigmoid_(double x)
{
    return 1 / (1 + exp(-x));
}
static double gelu_(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2.0)));
}

static const struct {
    const char *name;
    ls_pw pw;
    double (*exact)(double x);
    double lo, hi;
    double ulp; /* allowed */
} functions[] = {
    {"exp", LS_PW_EXP, exp, -87, 88, 2},
    {"log", LS_PW_LOG, log, 1e-37, 100, 2},
    {"log near 1", LS_PW_LOG, log, 0.5, 2, 2},
    {"tanh", LS_PW_TANH, tanh, -10, 10, 3},
    {"sigmoid", LS_PW_SIGMOID, sigmoid_, -80, 80, 3},
    {"softplus", LS_PW_SOFTPLUS, softplus_, -80, 80, 4},
    {"gelu right of zero", LS_PW_GELU, gelu_, 0, 10, 4},
};

/* The distance of neighbouring floats at |x|. */
static double ulp_at(double x)
{
    float f = (float)fabs(x);

    return (double)(nextafterf(f, INFINITY) - f);
}

static void errors_of(const lsi_pw_table *t)
{
    float x[N], y[N];

    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        double worst = 0, at = 0;
        for (int part = 0; part < 64; part++) {
            for (int i = 0; i < N; i++) {
                double u = (part * (double)N + i + 0.5) / (64.0 * N);
                x[i] = (float)(functions[f].lo + u * (functions[f].hi - functions[f].lo));
            }
            t->fn[functions[f].pw](y, x, x, 1, 1, N, 0, 0);
            for (int i = 0; i < N; i++) {
                double want = functions[f].exact((double)x[i]), e = fabs((double)y[i] - want) / ulp_at(want);
                if (e > worst || e != e) {
                    worst = e;
                    at = (double)x[i];
                }
            }
        }
        if (!(worst <= functions[f].ulp))
            printf("%s %s: %.2f ulp at %.9g, allowed %.0f\n", t->impl, functions[f].name, worst, at,
                   functions[f].ulp);
        CHECK(worst <= functions[f].ulp);
    }
}

static float one(const lsi_pw_table *t, ls_pw pw, float x)
{
    float y;

    t->fn[pw](&y, &x, &x, 1, 1, 1, 0, 0);
    return y;
}

static void ends_of(const lsi_pw_table *t)
{
    static const ls_pw keeps_nan[] = {LS_PW_EXP,  LS_PW_LOG,  LS_PW_TANH, LS_PW_SIGMOID, LS_PW_SOFTPLUS,
                                      LS_PW_GELU, LS_PW_SQRT, LS_PW_SIGN, LS_PW_RELU};

    for (size_t i = 0; i < sizeof keeps_nan / sizeof keeps_nan[0]; i++)
        CHECK(isnan(one(t, keeps_nan[i], NAN)));
    CHECK(isinf(one(t, LS_PW_EXP, 89)));
    CHECK(one(t, LS_PW_EXP, -INFINITY) == 0 && one(t, LS_PW_EXP, -110) == 0);
    CHECK(one(t, LS_PW_EXP, 0) == 1);
    CHECK_NEAR(one(t, LS_PW_EXP, -95), exp(-95.0), 2e-45); /* a subnormal */
    CHECK(one(t, LS_PW_LOG, 0) == -INFINITY && one(t, LS_PW_LOG, INFINITY) == INFINITY);
    CHECK(isnan(one(t, LS_PW_LOG, -1)) && one(t, LS_PW_LOG, 1) == 0);
    CHECK_NEAR(one(t, LS_PW_LOG, 1e-40f), log((double)1e-40f), 2e-5);
    CHECK(one(t, LS_PW_TANH, INFINITY) == 1 && one(t, LS_PW_TANH, -INFINITY) == -1);
    CHECK(one(t, LS_PW_SIGMOID, -INFINITY) == 0 && one(t, LS_PW_SIGMOID, INFINITY) == 1);
    CHECK(one(t, LS_PW_SIGN, 0) == 0 && one(t, LS_PW_SIGN, -3) == -1);
}

static void avx512(void)
{
    errors_of(&lsi_pw_avx512);
    ends_of(&lsi_pw_avx512);
}

static void avx2(void)
{
    errors_of(&lsi_pw_avx2);
    ends_of(&lsi_pw_avx2);
}

int main(void)
{
    if (!lsi_has_avx2()) CHECK_SKIP("the processor has no AVX2");
    CHECK_RUN(avx2);
    if (lsi_has_avx512()) CHECK_RUN(avx512);
    return CHECK_DONE();
}
