/* conv_max.cu: gradients of a convolution of 1 x 1 under a maximum over points, from the points that won.
 *
 * dx: a block has some points of a sample, looks through the indices for those that are among them, and
 * writes its points once, most of them zero.  dw: a block has one channel above, its warps samples.  All sums
 * are in the order of channels or samples. */
#include "backend/cuda/launch/conv_max.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256, WARPS = THREADS / LSI_WARP, POINTS = 64 };

/* Where the channels from c on of a point lie, and how far apart. */
static __device__ __forceinline__ int64_t place(const lsi_cuda_conv_max &of, int64_t n, int point, int c)
{
    return of.channels_last ? (n * of.length + point) * of.c + c : (n * of.c + c) * of.length + point;
}

/* A channel above whose point is in the block. */
struct hit {
    int o, point;
    float dy;
};

/* Those of sample n among POINTS points from `first` on, in the order of channels; their number. */
template <typename T>
static __device__ int find(hit *hits, const lsi_cuda_conv_max_dx_args &a, int64_t n, int first)
{
    __shared__ int of_warp[WARPS];
    const int t = threadIdx.x, lane = t % LSI_WARP, warp = t / LSI_WARP;
    int found = 0;

    for (int base = 0; base < a.of.o; base += THREADS) {
        const int o = base + t, at = o < a.of.o ? a.index[n * a.of.o + o] - first : -1;
        const bool mine = at >= 0 && at < POINTS && first + at < a.of.length;
        const unsigned all = __ballot_sync(LSI_FULL, mine);
        int before = found;
        if (lane == 0) of_warp[warp] = __popc(all);
        __syncthreads();
        for (int w = 0; w < WARPS; w++) {
            before += w < warp ? of_warp[w] : 0;
            found += of_warp[w];
        }
        if (mine)
            hits[before + __popc(all & ((1u << lane) - 1))] = {o, at,
                                                               lsi_get(((const T *)a.dy)[n * a.of.o + o])};
        __syncthreads();
    }
    return found;
}

/* sum += dy w[o] of the hits at point p: all lanes look for them, and several rows of w are under way, since
 * many channels may have the same point. */
template <typename T, int V>
static __device__ __forceinline__ void add_hits(float (&sum)[V], const hit *hits, int found, int p,
                                                const T *w, int pitch)
{
    enum { AHEAD = 8 };
    const int lane = threadIdx.x % LSI_WARP;

    for (int base = 0; base < found; base += LSI_WARP) {
        unsigned here = __ballot_sync(LSI_FULL, base + lane < found && hits[base + lane].point == p);
        while (here != 0) {
            lsi_packed<V, T> row[AHEAD];
            float dy[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                const int i = base + (here != 0 ? __ffs((int)here) - 1 : 0);
                dy[u] = here != 0 ? hits[i].dy : 0.0f;
                row[u].fetch(w + (int64_t)hits[i].o * pitch);
                here &= here - 1;
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                float f[V];
                row[u].unpack(f);
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] = dy[u] != 0 ? fmaf(dy[u], f[k], sum[k]) : sum[k];
            }
        }
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) dx_kernel(const __grid_constant__ lsi_cuda_conv_max_dx_args a)
{
    lsi_wait();
    extern __shared__ __align__(16) unsigned char memory[];
    hit *hits = (hit *)memory;
    const int64_t n = blockIdx.y;
    const int first = (int)blockIdx.x * POINTS, lane = threadIdx.x % LSI_WARP;
    const int found = find<T>(hits, a, n, first);

    for (int p = threadIdx.x / LSI_WARP; p < POINTS && first + p < a.of.length; p += WARPS)
        for (int base = 0; base < a.of.c; base += LSI_WARP * V) {
            const int c = base + lane * V;
            float sum[V] = {};
            add_hits<T, V>(sum, hits, found, p, (const T *)a.w + (c < a.of.c ? c : 0), a.of.c);
            if (c < a.of.c) lsi_store<V>((T *)a.dx + place(a.of, n, first + p, c), sum);
        }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) dw_kernel(const __grid_constant__ lsi_cuda_conv_max_dw_args a)
{
    lsi_wait();
    __shared__ float room[WARPS][LSI_WARP * V];
    const int o = (int)blockIdx.x, lane = threadIdx.x % LSI_WARP, warp = threadIdx.x / LSI_WARP;

    for (int base = 0; base < a.of.c; base += LSI_WARP * V) {
        const int c = base + lane * V;
        float sum[V] = {};
        if (c < a.of.c)
#pragma unroll 4
            for (int n = warp; n < a.of.n; n += WARPS) {
                const int64_t i = (int64_t)n * a.of.o + o;
                const int at = a.index[i];
                const float dy = lsi_get(((const T *)a.dy)[i]);
                float x[V] = {};
                if (at >= 0 && at < a.of.length) lsi_load<V>((const T *)a.x + place(a.of, n, at, c), x);
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] = fmaf(dy, x[k], sum[k]);
            }
#pragma unroll
        for (int k = 0; k < V; k++) room[warp][lane * V + k] = sum[k];
        __syncthreads();
        for (int i = threadIdx.x; i < LSI_WARP * V && base + i < a.of.c; i += THREADS) {
            float all = 0;
            for (int w = 0; w < WARPS; w++) all += room[w][i];
            ((T *)a.dw)[(int64_t)o * a.of.c + base + i] = lsi_put<T>(all);
        }
        __syncthreads();
    }
}

template <typename T, int V> static int dx(lsi_cuda_stream s, const lsi_cuda_conv_max_dx_args *a)
{
    LSI_LAUNCH(s, dim3((unsigned)((a->of.length + POINTS - 1) / POINTS), (unsigned)a->of.n), THREADS,
               (size_t)a->of.o * sizeof(hit), (dx_kernel<T, V>), *a);
    return 0;
}

template <typename T, int V> static int dw(lsi_cuda_stream s, const lsi_cuda_conv_max_dw_args *a)
{
    LSI_LAUNCH(s, (unsigned)a->of.o, THREADS, 0, (dw_kernel<T, V>), *a);
    return 0;
}

static bool wide(const lsi_cuda_conv_max *of)
{
    return of->channels_last && lsi_wide(of->dtype, of->c);
}

int lsi_cuda_conv_max_dx(lsi_cuda_stream s, const lsi_cuda_conv_max_dx_args *a)
{
    if (a->of.n == 0 || a->of.c == 0) return 0;
    LSI_FLOAT_TYPES(a->of.dtype, LSI_VECTORS(wide(&a->of), return (dx<T, V>(s, a))));
    return 0;
}

int lsi_cuda_conv_max_dw(lsi_cuda_stream s, const lsi_cuda_conv_max_dw_args *a)
{
    if (a->of.o == 0 || a->of.c == 0) return 0;
    LSI_FLOAT_TYPES(a->of.dtype, LSI_VECTORS(wide(&a->of), return (dw<T, V>(s, a))));
    return 0;
}
