/* chamfer.cu: the Chamfer distance between clouds of points, and its gradient, without a matrix of distances.
 *
 * A block has 256 points of one cloud, one a thread, and goes through the other cloud in tiles of shared
 * memory, which all threads read at the same address.  It is bound by arithmetic: three differences, three
 * products and a minimum for each pair.  To keep it at that, the search remembers only in which tile the
 * minimum was, and looks for the point itself in that tile at the end; the same arithmetic finds the same
 * number again. */
#include "backend/cuda/launch/chamfer.h"
#include "backend/cuda/module/vector.cuh"

enum { POINTS = LSI_CHAMFER_POINTS, TILE = 256 };

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

/* Points first..first+TILE-1 of a cloud of n; behind its end nothing is ever nearest. */
template <typename T>
static __device__ __forceinline__ void load_tile(point *tile, const T *cloud, int n, int first)
{
    for (int i = threadIdx.x; i < TILE; i += POINTS)
        tile[i] = first + i < n ? point_at(cloud, n, first + i) : point{INFINITY, INFINITY, INFINITY};
}

/* The nearest of the n points of `other` to `mine`: the squared distance, and the first such point. */
template <typename T>
static __device__ float nearest(const point &mine, const T *other, int n, point *tile, int32_t *index)
{
    const float first = distance(mine, point_at(other, n, 0));
    float best = first;
    int where = 0, found = 0;

    for (int at = 0; at < n; at += TILE) {
        float m = INFINITY;
        __syncthreads();
        load_tile(tile, other, n, at);
        __syncthreads();
#pragma unroll 16
        for (int i = 0; i < TILE; i++) m = fminf(m, distance(mine, tile[i])); /* a NaN is never the minimum */
        if (m < best) {
            best = m;
            where = at;
        }
    }
    if (best < first)
        for (int i = where; i < n && i < where + TILE; i++)
            if (distance(mine, point_at(other, n, i)) == best) {
                found = i;
                break;
            }
    *index = found;
    return best;
}

template <typename T> __global__ void __launch_bounds__(POINTS) chamfer_kernel(lsi_cuda_chamfer_args a)
{
    __shared__ point tile[TILE];
    __shared__ float room[2 * POINTS / LSI_WARP];
    const int np = (int)a.np, nq = (int)a.nq, blocks_p = (np + POINTS - 1) / POINTS;
    const bool from_p = (int)blockIdx.x < blocks_p; /* whose points this block has */
    const int64_t b = blockIdx.y, n_blocks = (int64_t)gridDim.x * gridDim.y;
    const T *p = (const T *)a.p + b * 3 * np, *q = (const T *)a.q + b * 3 * nq;
    const int n = from_p ? np : nq,
              i = (int)(from_p ? blockIdx.x : blockIdx.x - blocks_p) * POINTS + threadIdx.x;
    float d = 0, none = 0;
    int32_t index;

    const point mine = i < n ? point_at(from_p ? p : q, n, i) : point{0, 0, 0};
    d = nearest(mine, from_p ? q : p, from_p ? nq : np, tile, &index);
    if (i < n)
        (from_p ? a.index_p + b * np : a.index_q + b * nq)[i] = index;
    else
        d = 0;
    lsi_block_sums<POINTS>(&d, &none, room);
    if (threadIdx.x == 0) __stcg(a.partial + b * gridDim.x + blockIdx.x, d);
    if (!lsi_last_block(a.ticket, (unsigned)n_blocks)) return;
    d = 0;
    for (int64_t k = threadIdx.x; k < n_blocks; k += POINTS) d += __ldcg(a.partial + k);
    lsi_block_sums<POINTS>(&d, &none, room);
    if (threadIdx.x == 0) *a.sum = d;
}

int lsi_cuda_chamfer(lsi_cuda_stream s, const lsi_cuda_chamfer_args *a)
{
    const int64_t across = lsi_chamfer_blocks(1, a->np, a->nq);

    if (a->batch == 0) return (int)cudaMemsetAsync(a->sum, 0, sizeof(float), (cudaStream_t)s);
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, dim3((unsigned)across, (unsigned)a->batch), POINTS, 0,
                                         chamfer_kernel<T>, *a));
    return 0;
}

/* A point is pulled to its own nearest point and to every point whose nearest it is.  Who that is, each
 * thread finds by going through all indices, which are in shared memory: comparing integers is cheaper than
 * adding to memory in an order that would have to be made first. */
template <typename T>
__global__ void __launch_bounds__(POINTS) chamfer_grad_kernel(lsi_cuda_chamfer_grad_args a)
{
    __shared__ int4 tile[TILE / 4];
    const int np = (int)a.np, nq = (int)a.nq, i = (int)blockIdx.x * POINTS + threadIdx.x;
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
        for (int k = threadIdx.x; k < TILE; k += POINTS) ((int32_t *)tile)[k] = at + k < nq ? iq[at + k] : -1;
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < TILE / 4; k++) {
            const int4 v = tile[k];
            if (v.x == i) pull(at + 4 * k);
            if (v.y == i) pull(at + 4 * k + 1);
            if (v.z == i) pull(at + 4 * k + 2);
            if (v.w == i) pull(at + 4 * k + 3);
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
                    LSI_LAUNCH(s, dim3((unsigned)((a->np + POINTS - 1) / POINTS), (unsigned)a->batch), POINTS,
                               0, chamfer_grad_kernel<T>, *a));
    return 0;
}
