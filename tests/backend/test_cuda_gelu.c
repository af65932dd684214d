/* test_cuda_gelu.c: GELU and its gradient as kernels have them for results of 16 bits, on the host: every
 * number of bf16 and of fp16 against erfc in double, with the two approximate instructions off by as much as
 * they may be, to either side. */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "lockstep/tensor.h"

static float off_reciprocal, off_power; /* relative */

static float lsi_pw_reciprocal(float a)
{
    return (1.0f / a) * (1.0f + off_reciprocal);
}

static float lsi_pw_power_of_2(float a)
{
    return exp2f(a) * (1.0f + off_power);
}

#define LSI_ON_HOST
#define BFLOAT16
#define __device__
#define __forceinline__ inline
#include "backend/cuda/source/functions.cuh"

#define WITHIN 7e-7 /* as functions.cuh says */

/* The largest errors: of the distribution, of GELU as a part of its argument, of its slope. */
typedef struct worst {
    double cdf, gelu, slope;
} worst;

static double exact_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

static double exact_slope(double x)
{
    return exact_cdf(x) + x * exp(-0.5 * x * x) * 0.39894228040143268;
}

static void compare(worst *w, float x)
{
    const double z = (double)x;
    float density;
    const double cdf = fabs((double)lsi_pw_normal(x, &density) - exact_cdf(z));
    const double gelu = z != 0 ? fabs((double)lsi_pw_gelu(x) / z - exact_cdf(z)) : 0;
    const double slope = fabs((double)lsi_pw_gelu_grad(1.0f, x) - exact_slope(z));

    if (!(cdf <= w->cdf)) w->cdf = cdf;
    if (!(gelu <= w->gelu)) w->gelu = gelu;
    if (!(slope <= w->slope)) w->slope = slope;
}

static void check_all(float (*from)(uint16_t), const char *name)
{
    worst w = {0};

    for (int way = 0; way < 9; way++) {
        off_reciprocal = (float)(way % 3 - 1) * 0x1p-23f;
        off_power = (float)(way / 3 - 1) * 0x1p-22f;
        for (int i = 0; i < 65536; i++)
            if (isfinite(from((uint16_t)i))) compare(&w, from((uint16_t)i));
    }
    printf("%s: distribution within %.3g, gelu / x %.3g, slope %.3g\n", name, w.cdf, w.gelu, w.slope);
    CHECK(w.cdf <= WITHIN);
    CHECK(w.gelu <= WITHIN);
    CHECK(w.slope <= WITHIN);
}

static void every_bf16(void)
{
    check_all(ls_bf16_to_f32, "bf16");
}

static void every_fp16(void)
{
    check_all(ls_f16_to_f32, "fp16");
}

static void special_numbers(void)
{
    off_reciprocal = off_power = 0;
    CHECK(isnan(lsi_pw_gelu(NAN)));
    CHECK(isnan(lsi_pw_gelu_grad(1.0f, NAN)));
    CHECK(isnan(lsi_pw_gelu_grad(NAN, 1.0f)));
    CHECK(lsi_pw_gelu(0.0f) == 0.0f);
    CHECK(isinf(lsi_pw_gelu(INFINITY)));
}

int main(void)
{
    CHECK_RUN(every_bf16);
    CHECK_RUN(every_fp16);
    CHECK_RUN(special_numbers);
    return CHECK_DONE();
}
