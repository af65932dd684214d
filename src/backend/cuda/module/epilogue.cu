/* epilogue.cu: bias and activation on the result of a product. */
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

/* As ls_act (ops/ops.h): none, relu, leaky, tanh, gelu. */
__device__ __forceinline__ float act_of(int act, float slope, float x)
{
    switch (act) {
    case 1: return x > 0.0f || isnan(x) ? x : 0.0f;
    case 2: return x > 0.0f || isnan(x) ? x : slope * x;
    case 3: return tanhf(x);
    case 4: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    default: return x;
    }
}

template <typename T, typename B>
__global__ void epilogue_kernel(T *y, const B *bias, int64_t count, int channels, int64_t inner, int act, float slope)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const int c = (int)((inner == 1 ? i : i / inner) % channels);
        const float x = lsi_get(y[i]) + (bias != nullptr ? lsi_get(bias[c]) : 0.0f);
        y[i] = lsi_put<T>(act_of(act, slope, x));
    }
}

template <typename B> static int with_bias(lsi_cuda_stream s, const lsi_cuda_epilogue_args *a)
{
    const int64_t count = a->outer * a->channels * a->inner;

    LSI_FLOAT_TYPES(a->dtype,
                    LSI_LAUNCH(s, lsi_blocks(count, THREADS * 4), THREADS, 0, epilogue_kernel, (T *)a->y,
                               (const B *)a->bias, count, (int)a->channels, a->inner, a->act, a->slope));
    return 0;
}

int lsi_cuda_epilogue(lsi_cuda_stream s, const lsi_cuda_epilogue_args *a)
{
    LSI_FLOAT_TYPES(a->bias_dtype, return with_bias<T>(s, a));
    return 0;
}
