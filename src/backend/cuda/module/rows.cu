/* rows.cu: padding, and rows by index. */
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

/* -- padding ---------------------------------------------------------------------------------------------- */

/* The position in 0..size-1 that `at` shows, or -1 for a zero. */
__device__ __forceinline__ int shown(bool reflect, int at, int size)
{
    if (at >= 0 && at < size) return at;
    if (!reflect) return -1;
    return at < 0 ? -at : 2 * (size - 1) - at;
}

/* Channels are moved together: U is as many bytes as fit, and a.inner counts those. */
template <typename U> __global__ void pad_kernel(const __grid_constant__ lsi_cuda_pad_args a, unsigned count)
{
    const unsigned step = gridDim.x * THREADS, inner = (unsigned)a.inner;
    const unsigned w = (unsigned)(a.w + a.pad[1] + a.pad[3]), h = (unsigned)(a.h + a.pad[0] + a.pad[2]);
    const U *in = (const U *)a.in;

    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const unsigned pixel = i / inner, c = i - pixel * inner, row = pixel / w, image = row / h;
        const int sx = shown(a.reflect, (int)(pixel - row * w) - (int)a.pad[1], (int)a.w);
        const int sy = shown(a.reflect, (int)(row - image * h) - (int)a.pad[0], (int)a.h);
        U zero = {};
        ((U *)a.out)[i] = sx < 0 || sy < 0 ? zero : in[((int64_t)(image * a.h + sy) * a.w + sx) * inner + c];
    }
}

/* The padded positions that show position `at`: itself and up to two mirror images. */
__device__ __forceinline__ int places(bool reflect, int at, int size, int before, int after, int place[3])
{
    int n = 0;

    place[n++] = at + before;
    if (!reflect) return n;
    if (at > 0 && at <= before) place[n++] = before - at;
    if (at < size - 1 && size - 1 - at <= after) place[n++] = before + 2 * (size - 1) - at;
    return n;
}

template <typename T, int N>
__global__ void pad_adjoint_kernel(const __grid_constant__ lsi_cuda_pad_args a, unsigned count)
{
    const unsigned step = gridDim.x * THREADS, inner = (unsigned)a.inner;
    const int64_t w = a.w + a.pad[1] + a.pad[3], h = a.h + a.pad[0] + a.pad[2];
    const lsi_pack<T, N> *in = (const lsi_pack<T, N> *)a.in;

    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const unsigned pixel = i / inner, c = i - pixel * inner, row = pixel / (unsigned)a.w;
        const unsigned image = row / (unsigned)a.h;
        int xs[3], ys[3];
        const int nx = places(a.reflect, (int)(pixel - row * (unsigned)a.w), (int)a.w, (int)a.pad[1], (int)a.pad[3], xs);
        const int ny = places(a.reflect, (int)(row - image * (unsigned)a.h), (int)a.h, (int)a.pad[0], (int)a.pad[2], ys);
        float sum[N] = {};
        lsi_pack<T, N> out;
        for (int y = 0; y < ny; y++)
            for (int x = 0; x < nx; x++) {
                const lsi_pack<T, N> p = in[((image * h + ys[y]) * w + xs[x]) * inner + c];
                for (int k = 0; k < N; k++) sum[k] += lsi_get(p.x[k]);
            }
        for (int k = 0; k < N; k++) out.x[k] = lsi_put<T>(sum[k]);
        ((lsi_pack<T, N> *)a.out)[i] = out;
    }
}

template <typename T> static int unpad(lsi_cuda_stream s, lsi_cuda_pad_args a)
{
    constexpr int N = 16 / sizeof(T);
    const bool packed = a.inner % N == 0;
    int64_t count;

    if (packed) a.inner /= N;
    count = a.outer * a.h * a.w * a.inner;
    if (count >= (int64_t)1 << 31) return (int)cudaErrorNotSupported;
    if (packed)
        LSI_LAUNCH(s, lsi_blocks(count, THREADS), THREADS, 0, (pad_adjoint_kernel<T, N>), a, (unsigned)count);
    else
        LSI_LAUNCH(s, lsi_blocks(count, THREADS), THREADS, 0, (pad_adjoint_kernel<T, 1>), a, (unsigned)count);
    return 0;
}

template <typename U> static int pad_units(lsi_cuda_stream s, const lsi_cuda_pad_args &a)
{
    const int64_t count = a.outer * (a.h + a.pad[0] + a.pad[2]) * (a.w + a.pad[1] + a.pad[3]) * a.inner;

    if (count >= (int64_t)1 << 31) return (int)cudaErrorNotSupported;
    LSI_LAUNCH(s, lsi_blocks(count, THREADS), THREADS, 0, pad_kernel<U>, a, (unsigned)count);
    return 0;
}

int lsi_cuda_pad(lsi_cuda_stream s, const lsi_cuda_pad_args *a)
{
    const int64_t bytes = a->inner * (a->dtype == LS_F32 ? 4 : 2);
    lsi_cuda_pad_args units = *a;

    if (a->adjoint) {
        LSI_FLOAT_TYPES(a->dtype, return unpad<T>(s, *a));
    }
    units.inner = bytes % 16 == 0 ? bytes / 16 : bytes % 4 == 0 ? bytes / 4 : bytes / 2;
    if (bytes % 16 == 0) return pad_units<uint4>(s, units);
    return bytes % 4 == 0 ? pad_units<uint32_t>(s, units) : pad_units<uint16_t>(s, units);
}

/* -- rows ------------------------------------------------------------------------------------------------- */

/* A row of NaN where the index is out of range. */
template <typename T> __global__ void gather_kernel(const __grid_constant__ lsi_cuda_gather_rows_args a)
{
    const int64_t count = a.n * a.d, step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const int64_t n = i / a.d, row = a.index[n];
        ((T *)a.out)[i] =
            row >= 0 && row < a.v ? ((const T *)a.table)[row * a.d + (i - n * a.d)] : lsi_put<T>(nanf(""));
    }
}

int lsi_cuda_gather_rows(lsi_cuda_stream s, const lsi_cuda_gather_rows_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, lsi_blocks(a->n * a->d, THREADS), THREADS, 0, gather_kernel<T>, *a));
    return 0;
}

/* One block for each row of the result, which looks through all indices: sums have a fixed order. */
template <typename T> __global__ void scatter_kernel(const __grid_constant__ lsi_cuda_scatter_rows_args a)
{
    for (int64_t row = blockIdx.x; row < a.v; row += gridDim.x)
        for (int64_t d = threadIdx.x; d < a.d; d += THREADS) {
            float sum = 0.0f;
            for (int64_t n = 0; n < a.n; n++)
                if (a.index[n] == row) sum += lsi_get(((const T *)a.rows)[n * a.d + d]);
            ((T *)a.out)[row * a.d + d] = lsi_put<T>(sum);
        }
}

int lsi_cuda_scatter_rows(lsi_cuda_stream s, const lsi_cuda_scatter_rows_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, lsi_blocks(a->v, 1), THREADS, 0, scatter_kernel<T>, *a));
    return 0;
}

/* Of two rows for the same place the later one stays. */
template <typename T> __global__ void store_kernel(const __grid_constant__ lsi_cuda_store_rows_args a)
{
    for (int64_t n = blockIdx.x; n < a.n; n += gridDim.x) {
        const int64_t row = a.index[n];
        bool last = row >= 0 && row < a.v;
        for (int64_t later = n + 1; later < a.n && last; later++) last = a.index[later] != row;
        for (int64_t d = threadIdx.x; d < a.d && last; d += THREADS)
            ((T *)a.table)[row * a.d + d] = ((const T *)a.rows)[n * a.d + d];
    }
}

int lsi_cuda_store_rows(lsi_cuda_stream s, const lsi_cuda_store_rows_args *a)
{
    const unsigned blocks = lsi_blocks(a->n, 1);

    switch (a->size) {
    case 1: LSI_LAUNCH(s, blocks, THREADS, 0, store_kernel<uint8_t>, *a); break;
    case 2: LSI_LAUNCH(s, blocks, THREADS, 0, store_kernel<uint16_t>, *a); break;
    case 4: LSI_LAUNCH(s, blocks, THREADS, 0, store_kernel<uint32_t>, *a); break;
    default: LSI_LAUNCH(s, blocks, THREADS, 0, store_kernel<uint64_t>, *a); break;
    }
    return 0;
}
