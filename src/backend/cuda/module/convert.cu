/* convert.cu: many tensors in another type or layout, in one launch.
 *
 * A block has one tile of one tensor.  Where only the type changes, it reads and writes 4 elements a thread
 * at a time, several such under way. Where channels move, a tile is a run of memory on the plain side, which
 * is read or written as it lies, and rows of channels on the other; in between it is turned in shared memory.
 */
#include "backend/cuda/launch/convert.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256, FEW = 24, MANY = 480, WIDE = 4, AHEAD = 4 };

/* At most 32 KB, what a kernel can be given. */
template <int N> struct table {
    lsi_cuda_converted of[N];
};

/* Where an element lies in shared memory: 16 channels apart would be the same bank. */
static __device__ __forceinline__ int skewed(int i)
{
    return i + i / LSI_WARP;
}

/* Neighbouring threads read and write neighbouring accesses, of whatever size the type makes them. */
template <typename From, typename To>
static __device__ void as_it_lies(const lsi_cuda_converted &t, int64_t first, int n)
{
    const From *in = (const From *)t.in + first;
    To *out = (To *)t.out + first;
    const int whole = n / WIDE * WIDE;

    for (int i = threadIdx.x * WIDE; i < whole; i += AHEAD * THREADS * WIDE) {
        lsi_packed<WIDE, From> p[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (i + u * THREADS * WIDE < whole) p[u].fetch(in + i + u * THREADS * WIDE);
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            float f[WIDE];
            if (i + u * THREADS * WIDE >= whole) break;
            p[u].unpack(f);
            lsi_store<WIDE>(out + i + u * THREADS * WIDE, f);
        }
    }
    for (int i = whole + threadIdx.x; i < n; i += THREADS) out[i] = lsi_put<To>(lsi_get(in[i]));
}

/* V elements of memory, from or to places in shared memory that lie `step` apart. */
template <bool IN, int V, typename T>
static __device__ __forceinline__ void exchange(T *memory, float *room, int place, int step)
{
    float f[V];

    if constexpr (IN) lsi_load<V>(memory, f);
#pragma unroll
    for (int k = 0; k < V; k++) {
        if constexpr (IN)
            room[skewed(place + k * step)] = f[k];
        else
            f[k] = room[skewed(place + k * step)];
    }
    if constexpr (!IN) lsi_store<V>(memory, f);
}

/* Elements first..first+n-1 of the plain side, in the order of its memory. */
template <bool IN, int V, typename T>
static __device__ void plain_side(T *memory, float *room, int64_t first, int n)
{
#pragma unroll 4
    for (int i = threadIdx.x * V; i < n; i += THREADS * V) exchange<IN, V>(memory + first + i, room, i, 1);
}

/* The same elements on the other side: rows of channels. */
template <bool IN, int V, typename T>
static __device__ void channels_side(T *memory, float *room, const lsi_cuda_converted &t, int outer,
                                     int outers, int channel, int across)
{
    const int pieces = across / V;

#pragma unroll 4
    for (int i = threadIdx.x; i < outers * t.inner * pieces; i += THREADS) {
        const int row = i / pieces, c = i % pieces * V, o = row / t.inner, k = row % t.inner;
        exchange<IN, V>(memory + ((int64_t)(outer + o) * t.inner + k) * t.channels + channel + c, room,
                        (o * across + c) * t.inner + k, t.inner);
    }
}

/* Pixels first..end-1 of image `outer`: plane by plane, then as they lie on the other side. */
template <int V, typename From, typename To>
static __device__ void image(const lsi_cuda_converted &t, float *room, int outer, int first, int end)
{
    const int each = (end - first) / V;
    const From *in = (const From *)t.in + (int64_t)outer * t.channels * t.inner + first;
    To *out = (To *)t.out + ((int64_t)outer * t.inner + first) * t.channels;

#pragma unroll 4
    for (int i = threadIdx.x; i < each * t.channels; i += THREADS) {
        const int c = i / each, p = i % each * V;
        exchange<true, V>(in + (int64_t)c * t.inner + p, room, p * t.channels + c, t.channels);
    }
    __syncthreads();
    plain_side<false, V>(out, room, 0, (end - first) * t.channels);
}

template <int V, typename From, typename To>
static __device__ __forceinline__ void turn(const lsi_cuda_converted &t, float *room, int outer, int outers,
                                            int channel, int across, int64_t first, int count)
{
    if (t.in_last)
        channels_side<true, (V > 1 ? 2 : 1)>((From *)t.in, room, t, outer, outers, channel, across);
    else
        plain_side<true, V>((From *)t.in, room, first, count);
    __syncthreads();
    if (t.out_last)
        channels_side<false, (V > 1 ? 2 : 1)>((To *)t.out, room, t, outer, outers, channel, across);
    else
        plain_side<false, V>((To *)t.out, room, first, count);
}

template <typename From, typename To, int N>
__global__ void __launch_bounds__(THREADS)
    convert_kernel(const __grid_constant__ table<N> table, int n, int first_tile)
{
    lsi_wait();
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
    if (t.pixels > 0) {
        const int beside = (t.inner + t.pixels - 1) / t.pixels, at = (tile - t.first) % beside * t.pixels;
        const int end = at + t.pixels < t.inner ? at + t.pixels : t.inner;
        if ((t.inner | t.pixels) % WIDE == 0)
            image<WIDE, From, To>(t, room, (tile - t.first) / beside, at, end);
        else
            image<1, From, To>(t, room, (tile - t.first) / beside, at, end);
        return;
    }
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
    if ((t.channels | across) % WIDE == 0)
        turn<WIDE, From, To>(t, room, outer, outers, channel, across, first, count);
    else
        turn<1, From, To>(t, room, outer, outers, channel, across, first, count);
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
