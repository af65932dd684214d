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

/* N channels at once where they lie together; counts are of those. */
template <typename T, typename B, int N>
__global__ void epilogue_kernel(T *y, const B *bias, unsigned count, unsigned channels, unsigned inner, int act,
                                float slope)
{
    lsi_wait();
    const unsigned step = gridDim.x * THREADS;
    lsi_pack<T, N> *packs = (lsi_pack<T, N> *)y;

    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const unsigned c = (inner == 1 ? i : i / inner) % channels;
        lsi_pack<T, N> p = packs[i];
        for (int k = 0; k < N; k++)
            p.x[k] = lsi_put<T>(
                act_of(act, slope, lsi_get(p.x[k]) + (bias != nullptr ? lsi_get(bias[c * N + k]) : 0.0f)));
        packs[i] = p;
    }
}

template <typename T, typename B> static int typed(lsi_cuda_stream s, const lsi_cuda_epilogue_args *a)
{
    constexpr int N = 16 / sizeof(T);
    const int64_t count = a->outer * a->channels * a->inner;

    if (count >= (int64_t)1 << 31) return (int)cudaErrorNotSupported;
    if (a->inner == 1 && a->channels % N == 0)
        LSI_LAUNCH(s, lsi_blocks(count / N, THREADS), THREADS, 0, (epilogue_kernel<T, B, N>), (T *)a->y,
                   (const B *)a->bias, (unsigned)(count / N), (unsigned)(a->channels / N), 1u, a->act, a->slope);
    else
        LSI_LAUNCH(s, lsi_blocks(count, THREADS * 2), THREADS, 0, (epilogue_kernel<T, B, 1>), (T *)a->y,
                   (const B *)a->bias, (unsigned)count, (unsigned)a->channels, (unsigned)a->inner, a->act, a->slope);
    return 0;
}

template <typename B> static int with_bias(lsi_cuda_stream s, const lsi_cuda_epilogue_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, return typed<T, B>(s, a));
    return 0;
}

int lsi_cuda_epilogue(lsi_cuda_stream s, const lsi_cuda_epilogue_args *a)
{
    LSI_FLOAT_TYPES(a->bias_dtype, return with_bias<T>(s, a));
    return 0;
}
