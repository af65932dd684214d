/* attention.cu: softmax between the products of attention, and its gradient.  A warp has a row. */
#include "backend/cuda/module/launch.cuh"

enum { WARPS = 8 };

__device__ __forceinline__ float warp_max(float x)
{
    for (int k = 16; k > 0; k >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, k));
    return x;
}

__device__ __forceinline__ float warp_sum(float x)
{
    for (int k = 16; k > 0; k >>= 1) x += __shfl_xor_sync(~0u, x, k);
    return x;
}

template <typename T> __global__ void attend_kernel(const __grid_constant__ lsi_cuda_attend_args a)
{
    lsi_wait();
    const int lane = threadIdx.x & 31;

    for (int64_t row = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5); row < a.rows;
         row += (int64_t)gridDim.x * WARPS) {
        const float *s = a.scores + row * a.pitch;
        T *p = (T *)a.p + row * a.pitch;
        float most = -INFINITY, sum = 0.0f, lse;
        for (int64_t i = lane; i < a.t; i += 32) most = fmaxf(most, a.scale * s[i]);
        most = warp_max(most);
        for (int64_t i = lane; i < a.t; i += 32) sum += expf(a.scale * s[i] - most);
        sum = warp_sum(sum);
        lse = most + logf(sum);
        for (int64_t i = lane; i < a.pitch; i += 32)
            p[i] = lsi_put<T>(i < a.t ? expf(a.scale * s[i] - lse) : 0.0f);
        if (lane == 0) a.lse[row] = lse;
    }
}

int lsi_cuda_attend(lsi_cuda_stream s, const lsi_cuda_attend_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, lsi_blocks(a->rows, WARPS), WARPS * 32, 0, attend_kernel<T>, *a));
    return 0;
}

template <typename T> __global__ void attend_grad_kernel(const __grid_constant__ lsi_cuda_attend_grad_args a)
{
    lsi_wait();
    const int lane = threadIdx.x & 31;

    for (int64_t row = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5); row < a.rows;
         row += (int64_t)gridDim.x * WARPS) {
        const float *s = a.scores + row * a.pitch, *dp = a.dp + row * a.pitch;
        const T *out = (const T *)a.out + row * a.d, *dout = (const T *)a.dout + row * a.d;
        T *p = (T *)a.p + row * a.pitch, *ds = (T *)a.ds + row * a.pitch;
        const float lse = a.lse[row];
        float delta = 0.0f;
        for (int64_t i = lane; i < a.d; i += 32) delta += lsi_get(out[i]) * lsi_get(dout[i]);
        delta = warp_sum(delta);
        for (int64_t i = lane; i < a.pitch; i += 32) {
            const float x = i < a.t ? expf(a.scale * s[i] - lse) : 0.0f;
            const float y = i < a.t ? a.scale * x * (dp[i] - delta) : 0.0f;
            p[i] = lsi_put<T>(x);
            ds[i] = lsi_put<T>(y);
        }
    }
}

int lsi_cuda_attend_grad(lsi_cuda_stream s, const lsi_cuda_attend_grad_args *a)
{
    LSI_FLOAT_TYPES(a->dtype,
                    LSI_LAUNCH(s, lsi_blocks(a->rows, WARPS), WARPS * 32, 0, attend_grad_kernel<T>, *a));
    return 0;
}
