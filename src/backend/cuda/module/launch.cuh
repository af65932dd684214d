/* launch.cuh: what launchers and kernels share. */
#ifndef LS_BACKEND_CUDA_MODULE_LAUNCH_CUH
#define LS_BACKEND_CUDA_MODULE_LAUNCH_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "backend/cuda/module/device.h"
#include "backend/cuda/source/wait.cuh"

/* Enqueues kernel<<<grid, block, shared, stream>>>(...), which begins with lsi_wait(); the error, if it could
 * not be: lsi_cuda_enter() leaves no other to be found. */
#define LSI_LAUNCH(stream, grid, block, shared, kernel, ...)                                                 \
    do {                                                                                                     \
        const int entered_ = lsi_cuda_enter();                                                               \
        if (entered_ != 0) return entered_;                                                                  \
        kernel<<<(grid), (block), (shared), (cudaStream_t)(stream)>>>(__VA_ARGS__);                          \
        const cudaError_t launched_ = cudaGetLastError();                                                    \
        if (launched_ != cudaSuccess) return (int)launched_;                                                 \
        lsi_cuda_note_kernel(stream);                                                                        \
    } while (0)

/* Blocks for `count` elements, `each` per block, for kernels whose blocks go on in steps of the grid.  Empty
 * tensors get one block, since a grid of none is an error. */
static inline unsigned lsi_blocks(int64_t count, int64_t each)
{
    const int64_t n = (count + each - 1) / each, most = 132 * 16;

    return (unsigned)(n < 1 ? 1 : n > most ? most : n);
}

/* Elements as numbers: arithmetic is in float, except for f64. */
template <typename T> __device__ __forceinline__ float lsi_get(T x)
{
    return (float)x;
}
template <> __device__ __forceinline__ float lsi_get(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
template <> __device__ __forceinline__ float lsi_get(__half x)
{
    return __half2float(x);
}
template <typename T> __device__ __forceinline__ T lsi_put(float x)
{
    return (T)x;
}
template <> __device__ __forceinline__ __nv_bfloat16 lsi_put(float x)
{
    return __float2bfloat16_rn(x);
}
template <> __device__ __forceinline__ __half lsi_put(float x)
{
    return __float2half_rn(x);
}

/* N elements that lie together: one load, one store. */
template <typename T, int N> struct alignas(sizeof(T) * N) lsi_pack {
    T x[N];
};

/* Runs a statement with T the element type of `dtype` (f32, bf16, f16), or returns cudaErrorNotSupported. */
#define LSI_FLOAT_TYPES(dtype, ...)                                                                          \
    switch (dtype) {                                                                                         \
    case LS_F32: {                                                                                           \
        using T = float;                                                                                     \
        __VA_ARGS__;                                                                                         \
        break;                                                                                               \
    }                                                                                                        \
    case LS_BF16: {                                                                                          \
        using T = __nv_bfloat16;                                                                             \
        __VA_ARGS__;                                                                                         \
        break;                                                                                               \
    }                                                                                                        \
    case LS_F16: {                                                                                           \
        using T = __half;                                                                                    \
        __VA_ARGS__;                                                                                         \
        break;                                                                                               \
    }                                                                                                        \
    default: return (int)cudaErrorNotSupported;                                                              \
    }

#endif
