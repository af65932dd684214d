/* move.cu: filling, converting, and moving from one set of strides to another. */
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

template <typename T> __global__ void fill_kernel(T *out, int64_t count, T value)
{
    lsi_wait();
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
    lsi_wait();
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

/* -- strides ----------------------------------------------------------------------------------------------
 */

template <typename T> struct strided {
    T *out;
    const T *in;
    unsigned rank, count;
    unsigned dim[LS_MAX_RANK];
    int64_t from[LS_MAX_RANK], to[LS_MAX_RANK];
};

template <typename T> __global__ void move_kernel(const __grid_constant__ strided<T> m)
{
    lsi_wait();
    const unsigned step = gridDim.x * THREADS;

    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < m.count; i += step) {
        unsigned rest = i;
        int64_t from = 0, to = 0;
#pragma unroll
        for (int k = LS_MAX_RANK - 1; k >= 0; k--) {
            if (k >= (int)m.rank) continue;
            const unsigned at = rest % m.dim[k];
            rest /= m.dim[k];
            from += (int64_t)at * m.from[k];
            to += (int64_t)at * m.to[k];
        }
        m.out[to] = m.in[from];
    }
}

/* The slowest dimension is cut where there are more elements than 32 bits count. */
template <typename T> static int move_as(lsi_cuda_stream s, const lsi_cuda_move_args *a)
{
    int64_t inner = 1, most;

    for (int i = 1; i < a->rank; i++) inner *= a->dim[i];
    most = ((int64_t)1 << 31) / inner;
    if (most < 1) return (int)cudaErrorInvalidValue;
    for (int64_t at = 0; at < a->dim[0]; at += most) {
        const int64_t n = a->dim[0] - at < most ? a->dim[0] - at : most;
        strided<T> m = {};
        m.out = (T *)a->out + at * a->to[0];
        m.in = (const T *)a->in + at * a->from[0];
        m.rank = (unsigned)a->rank;
        m.count = (unsigned)(n * inner);
        for (int i = 0; i < a->rank; i++) {
            m.dim[i] = (unsigned)(i == 0 ? n : a->dim[i]);
            m.from[i] = a->from[i];
            m.to[i] = a->to[i];
        }
        LSI_LAUNCH(s, lsi_blocks(n * inner, THREADS * 2), THREADS, 0, move_kernel, m);
    }
    return 0;
}

int lsi_cuda_move(lsi_cuda_stream s, const lsi_cuda_move_args *a)
{
    switch (a->size) {
    case 1: return move_as<uint8_t>(s, a);
    case 2: return move_as<uint16_t>(s, a);
    case 4: return move_as<uint32_t>(s, a);
    case 8: return move_as<uint64_t>(s, a);
    default: return move_as<uint4>(s, a);
    }
}

enum { TILE = 32, TILE_ROWS = 8 };

/* A tile goes through shared memory, so that both sides are read and written along their rows, W elements an
 * access.  Tiles of a matrix are counted in one dimension of the grid, the only one that has room for any
 * number of them: `across` in a row. */
template <typename T, int W>
__global__ void turn_kernel(T *out, const T *in, int64_t rows, int64_t columns, unsigned across,
                            int64_t out_batch, int64_t out_row, int64_t in_batch, int64_t in_column)
{
    lsi_wait();
    constexpr int SPAN = TILE * W;
    using pack = lsi_pack<T, W>;
    __shared__ alignas(16) T tile[SPAN][SPAN + W];
    const int64_t i0 = (int64_t)(blockIdx.x / across) * SPAN, j0 = (int64_t)(blockIdx.x % across) * SPAN;
    const int x = (int)threadIdx.x * W;

    out += (int64_t)blockIdx.y * out_batch;
    in += (int64_t)blockIdx.y * in_batch;
    for (int y = threadIdx.y; y < SPAN; y += TILE_ROWS) {
        const int64_t j = j0 + y, i = i0 + x;
        if (i < rows && j < columns) *(pack *)&tile[y][x] = *(const pack *)(in + j * in_column + i);
    }
    __syncthreads();
    for (int y = threadIdx.y; y < SPAN; y += TILE_ROWS) {
        const int64_t i = i0 + y, j = j0 + x;
        pack p;
        if (i >= rows || j >= columns) continue;
#pragma unroll
        for (int w = 0; w < W; w++) p.x[w] = tile[x + w][y];
        *(pack *)(out + i * out_row + j) = p;
    }
}

template <typename T, int W> static int turn_tiles(lsi_cuda_stream s, const lsi_cuda_turn_args *a)
{
    const int64_t most = 65535, span = TILE * W;
    const int64_t across = (a->columns + span - 1) / span, down = (a->rows + span - 1) / span;

    if (across * down > INT32_MAX) return (int)cudaErrorInvalidValue; /* some TB */
    for (int64_t b = 0; b < a->batch; b += most) {
        const dim3 grid((unsigned)(across * down), (unsigned)(a->batch - b < most ? a->batch - b : most));
        LSI_LAUNCH(s, grid, dim3(TILE, TILE_ROWS), 0, (turn_kernel<T, W>), (T *)a->out + b * a->out_batch,
                   (const T *)a->in + b * a->in_batch, a->rows, a->columns, (unsigned)across, a->out_batch,
                   a->out_row, a->in_batch, a->in_column);
    }
    return 0;
}

/* Whether pairs of elements never lie across the end of a row, and are aligned. */
template <typename T> static bool has_pairs(const lsi_cuda_turn_args *a)
{
    const int64_t odd = a->rows | a->columns | a->out_batch | a->in_batch | a->out_row | a->in_column;

    return odd % 2 == 0 && ((uintptr_t)a->in | (uintptr_t)a->out) % (2 * sizeof(T)) == 0;
}

/* C planes of pixels to pixels of C channels, or back: each thread has as many pixels as 16 bytes of a plane
 * hold, and every access is of 16 bytes. */
template <typename T, int C, bool TO_PIXELS>
__global__ void __launch_bounds__(THREADS)
    turn_few_kernel(T *out, const T *in, int64_t pixels, int64_t out_batch, int64_t in_batch, int64_t plane)
{
    lsi_wait();
    constexpr int V = 16 / (int)sizeof(T);
    const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * V;
    union {
        uint4 v[C];
        T e[C * V];
    } from, to;

    if (i >= pixels) return;
    in += (int64_t)blockIdx.y * in_batch + (TO_PIXELS ? i : i * C);
    out += (int64_t)blockIdx.y * out_batch + (TO_PIXELS ? i * C : i);
#pragma unroll
    for (int c = 0; c < C; c++) from.v[c] = *(const uint4 *)(in + c * (TO_PIXELS ? plane : V));
#pragma unroll
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int k = 0; k < V; k++) {
            if (TO_PIXELS)
                to.e[k * C + c] = from.e[c * V + k];
            else
                to.e[c * V + k] = from.e[k * C + c];
        }
#pragma unroll
    for (int c = 0; c < C; c++) *(uint4 *)(out + c * (TO_PIXELS ? V : plane)) = to.v[c];
}

template <typename T, int C> static int turn_few(lsi_cuda_stream s, const lsi_cuda_turn_args *a)
{
    const bool to_pixels = a->columns == C;
    const int64_t pixels = to_pixels ? a->rows : a->columns, each = THREADS * (16 / (int64_t)sizeof(T));
    const dim3 grid((unsigned)((pixels + each - 1) / each), (unsigned)a->batch);

    if (to_pixels)
        LSI_LAUNCH(s, grid, THREADS, 0, (turn_few_kernel<T, C, true>), (T *)a->out, (const T *)a->in, pixels,
                   a->out_batch, a->in_batch, a->in_column);
    else
        LSI_LAUNCH(s, grid, THREADS, 0, (turn_few_kernel<T, C, false>), (T *)a->out, (const T *)a->in, pixels,
                   a->out_batch, a->in_batch, a->out_row);
    return 0;
}

/* Whether one side has so few channels that tiles would be empty, and all is at multiples of 16 bytes. */
template <typename T> static bool is_few(const lsi_cuda_turn_args *a, int64_t few)
{
    constexpr int64_t V = 16 / sizeof(T);
    const bool to_pixels = a->columns == few;
    const int64_t pixels = to_pixels ? a->rows : a->columns, plane = to_pixels ? a->in_column : a->out_row;
    const int64_t packed = to_pixels ? a->out_row : a->in_column;

    return (to_pixels || a->rows == few) && packed == few && pixels % V == 0 && plane % V == 0 &&
           a->out_batch % V == 0 && a->in_batch % V == 0 && a->batch <= 65535 &&
           (((uintptr_t)a->out | (uintptr_t)a->in) & 15) == 0;
}

template <typename T> static int turn_as(lsi_cuda_stream s, const lsi_cuda_turn_args *a)
{
    if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
        if (is_few<T>(a, 2)) return turn_few<T, 2>(s, a);
        if (is_few<T>(a, 3)) return turn_few<T, 3>(s, a);
        if (is_few<T>(a, 4)) return turn_few<T, 4>(s, a);
    }
    if constexpr (sizeof(T) == 2)
        if (has_pairs<T>(a)) return turn_tiles<T, 2>(s, a);
    return turn_tiles<T, 1>(s, a);
}

int lsi_cuda_turn(lsi_cuda_stream s, const lsi_cuda_turn_args *a)
{
    switch (a->size) {
    case 1: return turn_as<uint8_t>(s, a);
    case 2: return turn_as<uint16_t>(s, a);
    case 4: return turn_as<uint32_t>(s, a);
    default: return turn_as<uint64_t>(s, a);
    }
}
