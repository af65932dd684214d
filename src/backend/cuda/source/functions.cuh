/* functions.cuh: the element-wise functions in float.
 *
 * The files of this folder are text of the program as well, which is compiled at run time with generated
 * kernels (chain_source.c): they include nothing. */
#ifndef LSI_CUDA_FUNCTIONS
#define LSI_CUDA_FUNCTIONS

#define LSI_PW static __device__ __forceinline__ float

LSI_PW lsi_pw_add(float a, float b)
{
    return a + b;
}
LSI_PW lsi_pw_sub(float a, float b)
{
    return a - b;
}
LSI_PW lsi_pw_mul(float a, float b)
{
    return a * b;
}
LSI_PW lsi_pw_div(float a, float b)
{
    return a / b;
}
/* NaN when either is. */
LSI_PW lsi_pw_max(float a, float b)
{
    return a > b || a != a ? a : b;
}
LSI_PW lsi_pw_min(float a, float b)
{
    return a < b || a != a ? a : b;
}
LSI_PW lsi_pw_affine(float a, float p, float q)
{
    return fmaf(p, a, q);
}
LSI_PW lsi_pw_relu(float a)
{
    return a < 0.0f ? 0.0f : a;
} /* NaN stays NaN */
LSI_PW lsi_pw_relu_grad(float dy, float y)
{
    return y > 0.0f ? dy : 0.0f;
}
LSI_PW lsi_pw_leaky(float a, float slope)
{
    return a > 0.0f ? a : slope * a;
}
LSI_PW lsi_pw_leaky_grad(float dy, float y, float slope)
{
    return y > 0.0f ? dy : slope * dy;
}
#if defined(BFLOAT16) || defined(FLOAT16)
/* For results of 16 bits: the normal distribution by a polynomial of 1 / (1 + p |x|) (Abramowitz and Stegun
 * 7.1.26, within 1.5e-7) and one power of 2, of which the density is made, too.  With erff GELU is bound by
 * arithmetic. */
LSI_PW lsi_pw_normal(float x, float *density)
{
    float t, e, tail;

    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(0.23164190f, fabsf(x), 1.0f)));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-0.72134752f * x * x));
    tail =
        fmaf(fmaf(fmaf(fmaf(0.53070271f, t, -0.72657602f), t, 0.71070687f), t, -0.14224837f), t, 0.12741480f);
    tail *= t * e;
    *density = e * 0.39894228f;
    return x > 0.0f ? 1.0f - tail : tail;
}
LSI_PW lsi_pw_gelu(float a)
{
    float density;

    return a * lsi_pw_normal(a, &density);
}
LSI_PW lsi_pw_gelu_grad(float dy, float x)
{
    float density;
    const float cdf = lsi_pw_normal(x, &density);

    return dy * fmaf(x, density, cdf);
}
#else
LSI_PW lsi_pw_gelu(float a)
{
    return 0.5f * a * (1.0f + erff(a * 0.70710678f));
}
LSI_PW lsi_pw_gelu_grad(float dy, float x)
{
    const float cdf = 0.5f * (1.0f + erff(x * 0.70710678f)), density = expf(-0.5f * x * x) * 0.39894228f;

    return dy * fmaf(x, density, cdf);
}
#endif
LSI_PW lsi_pw_tanh(float a)
{
    return tanhf(a);
}
LSI_PW lsi_pw_tanh_grad(float dy, float y)
{
    return dy * (1.0f - y * y);
}
/* Without overflow: e^-|a| is at most 1. */
LSI_PW lsi_pw_sigmoid(float a)
{
    const float e = expf(-fabsf(a)), r = 1.0f / (1.0f + e);

    return a >= 0.0f ? r : e * r;
}
LSI_PW lsi_pw_sigmoid_grad(float dy, float y)
{
    return dy * y * (1.0f - y);
}
LSI_PW lsi_pw_exp(float a)
{
    return expf(a);
}
LSI_PW lsi_pw_log(float a)
{
    return logf(a);
}
LSI_PW lsi_pw_sqrt(float a)
{
    return sqrtf(a);
}
LSI_PW lsi_pw_rsqrt(float a)
{
    return 1.0f / sqrtf(a);
}
LSI_PW lsi_pw_square(float a)
{
    return a * a;
}
LSI_PW lsi_pw_abs(float a)
{
    return fabsf(a);
}
LSI_PW lsi_pw_sign(float a)
{
    return a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a;
}
LSI_PW lsi_pw_softplus(float a)
{
    return (a > 0.0f ? a : 0.0f) + log1pf(expf(-fabsf(a)));
}
LSI_PW lsi_pw_copy(float a)
{
    return a;
}

#undef LSI_PW
#endif
