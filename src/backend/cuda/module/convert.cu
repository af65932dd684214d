/* convert.cu: many tensors in another type or layout, in one launch.
 *
 * A block has one tile of one tensor.  Where only the type changes, it reads and writes 8 elements a thread.
 * Where channels move, a tile is a run of memory on the plain side, which is read or written as it lies, and
 * rows of channels on the other; in between it is turned in shared memory. */
#include "backend/cuda/launch/convert.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256, WARPS = THREADS / LSI_WARP, FEW = 24, MANY = 480, WIDE = 8 };

/* At most 32 KB, what a kernel can be given. */
template <int N> struct table {
    lsi_cuda_converted of[N];
};

/* Where an element lies in shared memory: 16 channels apart would be the same bank. */
static __device__ __forceinline__ int skewed(int i)
{
    return i + i / LSI_WARP;
}

template <typename From, typename To>
static __device__ void as_it_lies(const lsi_cuda_converted &t, int64_t first, int n)
{
    const From *in = (const From *)t.in + first;
    To *out = (To *)t.out + first;
    const int whole = n / WIDE * WIDE;

    for (int i = threadIdx.x * WIDE; i < whole; i += THREADS * WIDE) {
        float f[WIDE];
        if constexpr (sizeof(From) == 4)
            lsi_load_floats<WIDE>((const float *)in + i, f);
        else
            lsi_load<WIDE>(in + i, f);
        if constexpr (sizeof(To) == 4) {
#pragma unroll
            for (int h = 0; h < WIDE; h += 4) {
                const float half[4] = {f[h], f[h + 1], f[h + 2], f[h + 3]};
                lsi_store<4>((float *)out + i + h, half);
            }
        } else {
            lsi_store<WIDE>(out + i, f);
        }
    }
    for (int i = whole + threadIdx.x; i < n; i += THREADS) out[i] = lsi_put<To>(lsi_get(in[i]));
}

/* Elements first..first+n-1 of the plain side, in the order of its memory. */
template <bool IN, typename T> static __device__ void plain_side(T *memory, float *room, int64_t first, int n)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < n; i += THREADS) {
        if constexpr (IN)
            room[skewed(i)] = lsi_get(memory[first + i]);
        else
            memory[first + i] = lsi_put<T>(room[skewed(i)]);
    }
}

/* The same elements on the other side: a warp has rows of channels. */
template <bool IN, typename T>
static __device__ void channels_side(T *memory, float *room, const lsi_cuda_converted &t, int outer,
                                     int outers, int channel, int across)
{
    const int lane = threadIdx.x % LSI_WARP;

    for (int row = threadIdx.x / LSI_WARP; row < outers * t.inner; row += WARPS) {
        const int o = row / t.inner, k = row % t.inner;
        T *line = memory + ((int64_t)(outer + o) * t.inner + k) * t.channels + channel;
#pragma unroll 4
        for (int c = lane; c < across; c += LSI_WARP) {
            float &place = room[skewed((o * across + c) * t.inner + k)];
            if constexpr (IN)
                place = lsi_get(line[c]);
            else
                line[c] = lsi_put<T>(place);
        }
    }
}

template <typename From, typename To, int N>
__global__ void __launch_bounds__(THREADS)
    convert_kernel(const __grid_constant__ table<N> table, int n, int first_tile)
{
    __shared__ float room[LSI_CONVERT_TILE + LSI_CONVERT_TILE / LSI_WARP];
    const int tile = first_tile + (int)blockIdx.x;
    int lo = 0, hi = n - 1;

    while (lo < hi) { /* the tensor that the tile belongs to */
        const int mid = (lo + hi + 1) / 2;
        if (table.of[mid].first <= tile)
            lo = mid;
        else
            hi = mid - 1;
    }
    const lsi_cuda_converted &t = table.of[lo];
    const int beside = (t.channels + t.across - 1) / t.across, mine = tile - t.first;
    const int outer = mine / beside * t.outers, channel = mine % beside * t.across;
    const int outers = t.outer - outer < t.outers ? t.outer - outer : t.outers;
    const int across = t.channels - channel < t.across ? t.channels - channel : t.across;
    const int64_t first = ((int64_t)outer * t.channels + channel) * t.inner;
    const int count = outers * across * t.inner;

    if (t.in_last == t.out_last) {
        as_it_lies<From, To>(t, first, count);
        return;
    }
    if (t.in_last)
        channels_side<true>((From *)t.in, room, t, outer, outers, channel, across);
    else
        plain_side<true>((From *)t.in, room, first, count);
    __syncthreads();
    if (t.out_last)
        channels_side<false>((To *)t.out, room, t, outer, outers, channel, across);
    else
        plain_side<false>((To *)t.out, room, first, count);
}

/* Tensors begin..begin+n-1, n <= N. */
template <typename From, typename To, int N>
static int start(lsi_cuda_stream s, const lsi_cuda_convert_args *a, int begin, int n)
{
    const int64_t first = a->tensors[begin].first,
                  end = begin + n < a->n ? a->tensors[begin + n].first : a->tiles;
    table<N> t;

    for (int i = 0; i < n; i++) t.of[i] = a->tensors[begin + i];
    LSI_LAUNCH(s, (unsigned)(end - first), THREADS, 0, (convert_kernel<From, To, N>), t, n, (int)first);
    return 0;
}

template <typename From, typename To> static int convert(lsi_cuda_stream s, const lsi_cuda_convert_args *a)
{
    int code = 0;

    for (int i = 0; i < a->n && code == 0; i += MANY) {
        const int n = a->n - i < MANY ? a->n - i : MANY;
        code = n <= FEW ? start<From, To, FEW>(s, a, i, n) : start<From, To, MANY>(s, a, i, n);
    }
    return code;
}

template <typename From> static int convert_from(lsi_cuda_stream s, const lsi_cuda_convert_args *a)
{
    LSI_FLOAT_TYPES(a->to, return (convert<From, T>(s, a)));
    return 0;
}

int lsi_cuda_convert(lsi_cuda_stream s, const lsi_cuda_convert_args *a)
{
    LSI_FLOAT_TYPES(a->from, return convert_from<T>(s, a));
    return 0;
}
