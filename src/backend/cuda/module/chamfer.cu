/* chamfer.cu: the Chamfer distance between clouds of points, and its gradient, without a matrix of distances.
 *
 * A block has 512 points of one cloud, four a thread, and goes through the other cloud in tiles of shared
 * memory, which all threads read at the same address: with fewer points a thread it would wait for those
 * reads.  It is bound by arithmetic: three differences, three products and a minimum for each pair.  To keep
 * it at that, the search remembers only in which part of a tile the minimum was, and looks for the point
 * itself there at the end; the same arithmetic finds the same number again. */
#include "backend/cuda/launch/chamfer.h"
#include "backend/cuda/module/vector.cuh"

enum { EACH = 4, THREADS = LSI_CHAMFER_POINTS / EACH, TILE = 256, PART = 64 };

struct point {
    float x, y, z;
};

template <typename T> static __device__ __forceinline__ point point_at(const T *cloud, int n, int i)
{
    return {lsi_get(cloud[i]), lsi_get(cloud[n + i]), lsi_get(cloud[2 * n + i])};
}

static __device__ __forceinline__ float distance(const point &a, const point &b)
{
    const float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;

    return fmaf(z, z, fmaf(y, y, x * x));
}

/* Points first..first+TILE-1 of a cloud of n; behind its end nothing is ever nearest.  16 bytes each: one
 * access. */
template <typename T>
static __device__ __forceinline__ void load_tile(float4 *tile, const T *cloud, int n, int first)
{
    for (int i = threadIdx.x; i < TILE; i += THREADS) {
        const point p = first + i < n ? point_at(cloud, n, first + i) : point{INFINITY, INFINITY, INFINITY};
        tile[i] = make_float4(p.x, p.y, p.z, 0);
    }
}

/* For each of a thread's points the nearest of the n points of `other`: the squared distance, and the first
 * such point. */
template <typename T>
static __device__ __forceinline__ void nearest(const point (&mine)[EACH], const T *other, int n, float4 *tile,
                                               float (&best)[EACH], int32_t (&index)[EACH])
{
    float first[EACH];
    int where[EACH] = {};

#pragma unroll
    for (int e = 0; e < EACH; e++) best[e] = first[e] = distance(mine[e], point_at(other, n, 0));
    for (int at = 0; at < n; at += TILE) {
        __syncthreads();
        load_tile(tile, other, n, at);
        __syncthreads();
        for (int part = 0; part < TILE; part += PART) {
            float m[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) m[e] = INFINITY;
#pragma unroll 8
            for (int i = 0; i < PART; i++) {
                const float4 t = tile[part + i];
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    m[e] = fminf(m[e], distance(mine[e], point{t.x, t.y, t.z})); /* a NaN is never it */
            }
#pragma unroll
            for (int e = 0; e < EACH; e++)
                if (m[e] < best[e]) {
                    best[e] = m[e];
                    where[e] = at + part;
                }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        index[e] = 0;
        if (!(best[e] < first[e])) continue;
        for (int i = where[e]; i < n && i < where[e] + PART; i++)
            if (distance(mine[e], point_at(other, n, i)) == best[e]) {
                index[e] = i;
                break;
            }
    }
}

template <typename T> __global__ void __launch_bounds__(THREADS) chamfer_kernel(lsi_cuda_chamfer_args a)
{
    lsi_wait();
    __shared__ float4 tile[TILE];
    __shared__ float room[2 * THREADS / LSI_WARP];
    const int np = (int)a.np, nq = (int)a.nq, blocks_p = (np + LSI_CHAMFER_POINTS - 1) / LSI_CHAMFER_POINTS;
    const bool from_p = (int)blockIdx.x < blocks_p; /* whose points this block has */
    const int64_t b = blockIdx.y, n_blocks = (int64_t)gridDim.x * gridDim.y;
    const T *p = (const T *)a.p + b * 3 * np, *q = (const T *)a.q + b * 3 * nq;
    const int n = from_p ? np : nq,
              i = (int)(from_p ? blockIdx.x : blockIdx.x - blocks_p) * LSI_CHAMFER_POINTS + threadIdx.x;
    float d = 0, none = 0, best[EACH];
    int32_t index[EACH];
    point mine[EACH];

#pragma unroll
    for (int e = 0; e < EACH; e++)
        mine[e] = i + e * THREADS < n ? point_at(from_p ? p : q, n, i + e * THREADS) : point{0, 0, 0};
    nearest(mine, from_p ? q : p, from_p ? nq : np, tile, best, index);
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (i + e * THREADS < n) {
            (from_p ? a.index_p + b * np : a.index_q + b * nq)[i + e * THREADS] = index[e];
            d += best[e];
        }
    lsi_block_sums<THREADS>(&d, &none, room);
    if (threadIdx.x == 0) __stcg(a.partial + b * gridDim.x + blockIdx.x, d);
    if (!lsi_last_block(a.ticket, (unsigned)n_blocks)) return;
    d = 0;
    for (int64_t k = threadIdx.x; k < n_blocks; k += THREADS) d += __ldcg(a.partial + k);
    lsi_block_sums<THREADS>(&d, &none, room);
    if (threadIdx.x == 0) *a.sum = d;
}

int lsi_cuda_chamfer(lsi_cuda_stream s, const lsi_cuda_chamfer_args *a)
{
    const int64_t across = lsi_chamfer_blocks(1, a->np, a->nq);

    if (a->batch == 0) return (int)cudaMemsetAsync(a->sum, 0, sizeof(float), (cudaStream_t)s);
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, dim3((unsigned)across, (unsigned)a->batch), THREADS, 0,
                                         chamfer_kernel<T>, *a));
    return 0;
}

enum { PULLED = 256 }; /* points of a block */

/* A point is pulled to its own nearest point and to every point whose nearest it is.  Who that is, each
 * thread finds by going through all indices, which are in shared memory: comparing integers, eight for each
 * branch, is cheaper than adding to memory in an order that would have to be made first. */
template <typename T>
__global__ void __launch_bounds__(PULLED) chamfer_grad_kernel(lsi_cuda_chamfer_grad_args a)
{
    lsi_wait();
    enum { AT_ONCE = 8 };
    __shared__ int4 tile[TILE / 4];
    const int np = (int)a.np, nq = (int)a.nq, i = (int)blockIdx.x * PULLED + threadIdx.x;
    const int64_t b = blockIdx.y;
    const T *p = (const T *)a.p + b * 3 * np, *q = (const T *)a.q + b * 3 * nq;
    const int32_t *iq = a.index_q + b * nq;
    const point mine = i < np ? point_at(p, np, i) : point{0, 0, 0};
    point sum = {0, 0, 0};

    const auto pull = [&](int j) {
        const point other = point_at(q, nq, j);
        sum.x += mine.x - other.x;
        sum.y += mine.y - other.y;
        sum.z += mine.z - other.z;
    };
    if (i < np) {
        const int32_t own = a.index_p[b * np + i];
        if (own >= 0 && own < nq) pull(own);
    }
    for (int at = 0; at < nq; at += TILE) {
        __syncthreads();
        for (int k = threadIdx.x; k < TILE; k += PULLED) ((int32_t *)tile)[k] = at + k < nq ? iq[at + k] : -1;
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < TILE / 4; k += 2) {
            const int4 v = tile[k], w = tile[k + 1];
            if (!(v.x == i | v.y == i | v.z == i | v.w == i | w.x == i | w.y == i | w.z == i | w.w == i))
                continue;
#pragma unroll 1
            for (int e = 0; e < AT_ONCE; e++)
                if (((const int32_t *)tile)[4 * k + e] == i) pull(at + 4 * k + e);
        }
    }
    if (i >= np) return;
    const float scale = 2 * *a.dloss;
    T *dp = (T *)a.dp + b * 3 * np + i;
    dp[0] = lsi_put<T>(scale * sum.x);
    dp[np] = lsi_put<T>(scale * sum.y);
    dp[2 * np] = lsi_put<T>(scale * sum.z);
}

int lsi_cuda_chamfer_grad(lsi_cuda_stream s, const lsi_cuda_chamfer_grad_args *a)
{
    if (a->batch == 0) return 0;
    LSI_FLOAT_TYPES(a->dtype,
                    LSI_LAUNCH(s, dim3((unsigned)((a->np + PULLED - 1) / PULLED), (unsigned)a->batch), PULLED,
                               0, chamfer_grad_kernel<T>, *a));
    return 0;
}
