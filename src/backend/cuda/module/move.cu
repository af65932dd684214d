/* move.cu: filling and converting. */
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

template <typename T> __global__ void fill_kernel(T *out, int64_t count, T value)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) out[i] = value;
}

int lsi_cuda_fill(lsi_cuda_stream s, const lsi_cuda_fill_args *a)
{
    const unsigned blocks = lsi_blocks(a->count, THREADS * 4);

    switch (a->dtype) {
    case LS_F32:
        LSI_LAUNCH(s, blocks, THREADS, 0, fill_kernel, (float *)a->out, a->count, (float)a->value);
        break;
    case LS_BF16:
        LSI_LAUNCH(s, blocks, THREADS, 0, fill_kernel, (__nv_bfloat16 *)a->out, a->count,
                   __float2bfloat16_rn((float)a->value));
        break;
    case LS_F16:
        LSI_LAUNCH(s, blocks, THREADS, 0, fill_kernel, (__half *)a->out, a->count,
                   __float2half_rn((float)a->value));
        break;
    case LS_F64: LSI_LAUNCH(s, blocks, THREADS, 0, fill_kernel, (double *)a->out, a->count, a->value); break;
    case LS_I32:
        LSI_LAUNCH(s, blocks, THREADS, 0, fill_kernel, (int32_t *)a->out, a->count, (int32_t)a->value);
        break;
    default:
        LSI_LAUNCH(s, blocks, THREADS, 0, fill_kernel, (uint8_t *)a->out, a->count, (uint8_t)a->value);
        break;
    }
    return 0;
}

template <typename To, typename From> __global__ void cast_kernel(To *out, const From *in, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        out[i] = lsi_put<To>(lsi_get(in[i]));
}

template <typename To> static int cast_to(lsi_cuda_stream s, const lsi_cuda_cast_args *a)
{
    const unsigned blocks = lsi_blocks(a->count, THREADS * 4);

    LSI_FLOAT_TYPES(a->from,
                    LSI_LAUNCH(s, blocks, THREADS, 0, cast_kernel, (To *)a->out, (const T *)a->in, a->count));
    return 0;
}

int lsi_cuda_cast(lsi_cuda_stream s, const lsi_cuda_cast_args *a)
{
    LSI_FLOAT_TYPES(a->to, return cast_to<T>(s, a));
    return 0;
}
