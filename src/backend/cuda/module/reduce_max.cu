/* reduce_max.cu: the largest element along one dimension and its index, and the gradient.
 *
 * Candidates are compared by value and, where equal, by index, so the first of equals wins whatever order
 * threads come in; a NaN is larger than any number. */
#include "backend/cuda/launch/reduce.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256 };

struct candidate {
    float value;
    int32_t index; /* -1: none yet */
};

static __device__ __forceinline__ bool beats(const candidate &a, const candidate &b)
{
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;

    if (a.index < 0 || b.index < 0) return b.index < 0;
    if (nan_a != nan_b) return nan_a;
    if (nan_a || a.value == b.value) return a.index < b.index;
    return a.value > b.value;
}

/* One line a block, its elements side by side. */
template <typename T> __global__ void __launch_bounds__(THREADS) max_lines(lsi_cuda_max_args a)
{
    lsi_wait();
    __shared__ candidate room[THREADS / LSI_WARP];
    const T *x = (const T *)a.x + (int64_t)blockIdx.x * a.length;
    candidate best = {0, -1};

    for (int32_t k = threadIdx.x; k < a.length; k += THREADS) {
        const candidate c = {lsi_get(x[k]), k};
        if (beats(c, best)) best = c;
    }
#pragma unroll
    for (int o = LSI_WARP / 2; o > 0; o /= 2) {
        const candidate c = {__shfl_down_sync(LSI_FULL, best.value, o),
                             __shfl_down_sync(LSI_FULL, best.index, o)};
        if (beats(c, best)) best = c;
    }
    if (threadIdx.x % LSI_WARP == 0) room[threadIdx.x / LSI_WARP] = best;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < THREADS / LSI_WARP; w++)
        if (beats(room[w], best)) best = room[w];
    ((T *)a.out)[blockIdx.x] = lsi_put<T>(best.value);
    a.index[blockIdx.x] = best.index;
}

/* Neighbouring lines a block, V of them a thread: 64 with accesses of 16 bytes, else 32.  The threads of a
 * line share its length. */
template <typename T, int V> __global__ void __launch_bounds__(THREADS) max_columns(lsi_cuda_max_args a)
{
    lsi_wait();
    constexpr int LANES = V > 1 ? 64 / V : 32, TEAMS = THREADS / LANES, AHEAD = 4;
    __shared__ candidate room[TEAMS][LANES * V];
    const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
    const int64_t column = ((int64_t)blockIdx.x * LANES + lane) * V;
    const T *x = (const T *)a.x + (int64_t)blockIdx.y * a.length * a.inner + column;
    candidate best[V];

#pragma unroll
    for (int v = 0; v < V; v++) best[v] = {0, -1};
    if (column < a.inner)
        for (int32_t k = team; k < a.length; k += AHEAD * TEAMS) {
            lsi_packed<V, T> p[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (k + u * TEAMS < a.length) p[u].fetch(x + (k + u * TEAMS) * a.inner);
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                float f[V];
                if (k + u * TEAMS >= a.length) break;
                p[u].unpack(f);
#pragma unroll
                for (int v = 0; v < V; v++) { /* later ones win only where they are larger */
                    const bool first = best[v].index < 0;
                    if (first || f[v] > best[v].value || (f[v] != f[v] && best[v].value == best[v].value))
                        best[v] = {f[v], k + u * TEAMS};
                }
            }
        }
#pragma unroll
    for (int v = 0; v < V; v++) room[team][lane * V + v] = best[v];
    __syncthreads();
    const int64_t mine = (int64_t)blockIdx.x * LANES * V + threadIdx.x;
    if (threadIdx.x >= LANES * V || mine >= a.inner) return;
    candidate all = room[0][threadIdx.x];
    for (int t = 1; t < TEAMS; t++)
        if (beats(room[t][threadIdx.x], all)) all = room[t][threadIdx.x];
    ((T *)a.out)[blockIdx.y * a.inner + mine] = lsi_put<T>(all.value);
    a.index[blockIdx.y * a.inner + mine] = all.index;
}

template <typename T, int V> static int max_of_columns(lsi_cuda_stream s, const lsi_cuda_max_args *a)
{
    constexpr int span = V > 1 ? 64 : 32;

    LSI_LAUNCH(s, dim3((unsigned)((a->inner + span - 1) / span), (unsigned)a->outer), THREADS, 0,
               (max_columns<T, V>), *a);
    return 0;
}

int lsi_cuda_max(lsi_cuda_stream s, const lsi_cuda_max_args *a)
{
    if (a->outer * a->inner == 0) return 0;
    if (a->inner == 1) {
        LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, (unsigned)a->outer, THREADS, 0, max_lines<T>, *a));
    } else {
        LSI_FLOAT_TYPES(a->dtype,
                        LSI_VECTORS(lsi_wide(a->dtype, a->inner), return (max_of_columns<T, V>(s, a))));
    }
    return 0;
}

/* dx is written once, in its own order: dy where the index says so, else zero.  Few elements of dy are read,
 * and those from the cache.  TOGETHER: the V elements of an access are neighbours across the lines, else
 * along one. */
template <typename T, int V, bool TOGETHER>
__global__ void __launch_bounds__(THREADS)
    max_grad_kernel(lsi_cuda_max_grad_args a, lsi_divider inner, lsi_divider length, uint32_t count)
{
    lsi_wait();
    const T *dy = (const T *)a.dy;

    for (uint32_t v = blockIdx.x * THREADS + threadIdx.x; v < count; v += gridDim.x * THREADS) {
        float f[V];
        if constexpr (TOGETHER) {
            uint32_t i, j;
            const uint32_t line = inner.split(v * V, &i), o = length.split(line, &j);
            const int64_t from = (int64_t)o * a.inner + i;
            lsi_load<V>(dy + from, f);
#pragma unroll
            for (int h = 0; h < V; h += 4) {
                const int4 index = *(const int4 *)(a.index + from + h);
                if (index.x != (int32_t)j) f[h] = 0.0f;
                if (index.y != (int32_t)j) f[h + 1] = 0.0f;
                if (index.z != (int32_t)j) f[h + 2] = 0.0f;
                if (index.w != (int32_t)j) f[h + 3] = 0.0f;
            }
        } else {
#pragma unroll
            for (int k = 0; k < V; k++) {
                uint32_t i, j;
                const uint32_t line = inner.split(v * V + k, &i), o = length.split(line, &j);
                const int64_t from = (int64_t)o * a.inner + i;
                f[k] = a.index[from] == (int32_t)j ? lsi_get(dy[from]) : 0.0f;
            }
        }
        lsi_store<V>((T *)a.dx + (int64_t)v * V, f);
    }
}

template <typename T, int V, bool TOGETHER>
static int max_grad(lsi_cuda_stream s, const lsi_cuda_max_grad_args *a)
{
    const int64_t n = a->outer * a->length * a->inner / V;

    LSI_LAUNCH(s, lsi_blocks(n, THREADS), THREADS, 0, (max_grad_kernel<T, V, TOGETHER>), *a,
               lsi_divider(a->inner), lsi_divider(a->length), (uint32_t)n);
    return 0;
}

int lsi_cuda_max_grad(lsi_cuda_stream s, const lsi_cuda_max_grad_args *a)
{
    const int64_t n = a->outer * a->length * a->inner;

    if (n == 0) return 0;
    if (lsi_wide(a->dtype, a->inner)) {
        LSI_FLOAT_TYPES(a->dtype, return (max_grad<T, lsi_width<T>::value, true>(s, a)));
        return 0;
    }
    LSI_FLOAT_TYPES(a->dtype, LSI_VECTORS(lsi_wide(a->dtype, n), return (max_grad<T, V, false>(s, a))));
    return 0;
}
