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

/* Channels are moved together: U is as many bytes as fit, and a.inner counts those.  A block has whole rows,
 * whose middle lies as it does in the other map: only the edges need to know pixels from channels. */
template <typename U>
__global__ void __launch_bounds__(THREADS) pad_kernel(const __grid_constant__ lsi_cuda_pad_args a, unsigned rows)
{
    lsi_wait();
    const unsigned inner = (unsigned)a.inner, middle = (unsigned)a.w * inner, left = (unsigned)a.pad[1];
    const unsigned edges = (left + (unsigned)a.pad[3]) * inner;
    const unsigned w = (unsigned)(a.w + a.pad[1] + a.pad[3]), h = (unsigned)(a.h + a.pad[0] + a.pad[2]);
    const U zero = {};

    for (unsigned row = blockIdx.x; row < rows; row += gridDim.x) {
        const unsigned image = row / h;
        const int sy = shown(a.reflect, (int)(row - image * h) - (int)a.pad[0], (int)a.h);
        const U *in = (const U *)a.in + (int64_t)(image * a.h + (sy < 0 ? 0 : sy)) * middle;
        U *out = (U *)a.out + (int64_t)row * w * inner;
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < middle; i += THREADS) out[left * inner + i] = sy < 0 ? zero : in[i];
        for (unsigned i = threadIdx.x; i < edges; i += THREADS) {
            const unsigned p = i / inner, c = i - p * inner, x = p < left ? p : p + (unsigned)a.w;
            const int sx = shown(a.reflect, (int)x - (int)left, (int)a.w);
            out[x * inner + c] = sx < 0 || sy < 0 ? zero : in[(unsigned)sx * inner + c];
        }
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

/* Only pixels near an edge are shown more than once in their row. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    pad_adjoint_kernel(const __grid_constant__ lsi_cuda_pad_args a, unsigned rows)
{
    lsi_wait();
    const unsigned inner = (unsigned)a.inner, own = (unsigned)a.w * inner;
    const unsigned w = (unsigned)(a.w + a.pad[1] + a.pad[3]), h = (unsigned)(a.h + a.pad[0] + a.pad[2]);
    const int64_t last = a.w - 1 - a.pad[3]; /* from there on, and up to pad[1], pixels are near an edge */
    const unsigned from = a.reflect ? (unsigned)(a.pad[1] + 1) * inner : 0;
    const unsigned to = !a.reflect ? own : last > 0 ? (unsigned)last * inner : 0;

    for (unsigned row = blockIdx.x; row < rows; row += gridDim.x) {
        const unsigned image = row / (unsigned)a.h;
        int ys[3];
        const int ny = places(a.reflect, (int)(row - image * (unsigned)a.h), (int)a.h, (int)a.pad[0],
                              (int)a.pad[2], ys);
        lsi_pack<T, N> *out = (lsi_pack<T, N> *)a.out + (int64_t)row * own;
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < own; i += THREADS) {
            int xs[3] = {}, nx = 1;
            unsigned at = i + (unsigned)a.pad[1] * inner, c = 0;
            float sum[N] = {};
            lsi_pack<T, N> result;
            if (i < from || i >= to) {
                const unsigned x = i / inner;
                c = i - x * inner;
                nx = places(a.reflect, (int)x, (int)a.w, (int)a.pad[1], (int)a.pad[3], xs);
            }
            for (int y = 0; y < ny; y++) {
                const lsi_pack<T, N> *in =
                    (const lsi_pack<T, N> *)a.in + (int64_t)(image * h + (unsigned)ys[y]) * w * inner;
                for (int x = 0; x < nx; x++) {
                    const lsi_pack<T, N> p = in[nx > 1 ? (unsigned)xs[x] * inner + c : at];
                    for (int k = 0; k < N; k++) sum[k] += lsi_get(p.x[k]);
                }
            }
            for (int k = 0; k < N; k++) result.x[k] = lsi_put<T>(sum[k]);
            out[i] = result;
        }
    }
}

template <typename T> static int unpad(lsi_cuda_stream s, lsi_cuda_pad_args a)
{
    constexpr int N = 16 / sizeof(T);
    const bool packed = a.inner % N == 0;
    const int64_t rows = a.outer * a.h;

    if (packed) a.inner /= N;
    if (rows * a.w * a.inner >= (int64_t)1 << 31) return (int)cudaErrorNotSupported;
    if (packed)
        LSI_LAUNCH(s, lsi_blocks(rows, 1), THREADS, 0, (pad_adjoint_kernel<T, N>), a, (unsigned)rows);
    else
        LSI_LAUNCH(s, lsi_blocks(rows, 1), THREADS, 0, (pad_adjoint_kernel<T, 1>), a, (unsigned)rows);
    return 0;
}

template <typename U> static int pad_units(lsi_cuda_stream s, const lsi_cuda_pad_args &a)
{
    const int64_t rows = a.outer * (a.h + a.pad[0] + a.pad[2]);

    if (rows * (a.w + a.pad[1] + a.pad[3]) * a.inner >= (int64_t)1 << 31) return (int)cudaErrorNotSupported;
    LSI_LAUNCH(s, lsi_blocks(rows, 1), THREADS, 0, pad_kernel<U>, a, (unsigned)rows);
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
    lsi_wait();
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
    lsi_wait();
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
    lsi_wait();
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
