/* cluster.cuh: sums over columns and the pass behind them in one launch, where a map fits into the shared
 * memory of the processors.
 *
 * A cluster of blocks has some of the columns, each of its blocks some of the rows: it reads them once and
 * keeps them.  When all of the cluster have added up theirs, each adds the sums of all in the order of their
 * numbers, so that they agree and bits repeat, and goes over what it has kept.
 *
 * The rule of the sums has what groups.cuh says, and
 *   KEPT_AHEAD                  accesses that a thread has under way
 *   kept, add(at, f, c, s, k)   what is kept of the elements at `at`
 *   anchor(first)               what `settle` wants to know of a group's first element: it may be written
 * over before all blocks have come to that
 *   settle(group, anchor, s, first_block)   has the sums of a group; called by every block of the cluster
 * The rule of the pass has
 *   beside, fetch_beside(at, b)   what it reads besides
 *   write(at, k, b, c) */
#ifndef LS_BACKEND_CUDA_MODULE_CLUSTER_CUH
#define LS_BACKEND_CUDA_MODULE_CLUSTER_CUH

#include <cooperative_groups.h>

#include "backend/cuda/module/groups.cuh"

static __device__ __forceinline__ void lsi_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
static __device__ __forceinline__ void lsi_cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Sums of the block's threads over their rows, for each of its columns: to part[][0..LANES * V - 1] by the
 * first threads. */
template <typename S, int LANES>
__device__ __forceinline__ void lsi_cluster_block_sum(float (&s)[S::SUMS][S::V],
                                                      float (&part)[S::SUMS][LANES * S::V])
{
    constexpr int WARPS = LSI_CLUSTER_THREADS / LSI_WARP;
    __shared__ float room[WARPS][S::SUMS][LANES * S::V];
    const int t = threadIdx.x;

#pragma unroll
    for (int o = LANES; o < LSI_WARP; o *= 2)
#pragma unroll
        for (int q = 0; q < S::SUMS; q++)
#pragma unroll
            for (int k = 0; k < S::V; k++) s[q][k] += __shfl_xor_sync(LSI_FULL, s[q][k], o);
    if (t % LSI_WARP < LANES)
#pragma unroll
        for (int q = 0; q < S::SUMS; q++)
#pragma unroll
            for (int k = 0; k < S::V; k++) room[t / LSI_WARP][q][t % LANES * S::V + k] = s[q][k];
    __syncthreads();
    if (t < LANES * S::V)
#pragma unroll
        for (int q = 0; q < S::SUMS; q++) {
            float sum = 0;
            for (int w = 0; w < WARPS; w++) sum += room[w][q][t];
            part[q][t] = sum;
        }
}

template <typename S, typename A, int LANES>
__global__ void __launch_bounds__(LSI_CLUSTER_THREADS, 2)
    lsi_cluster_kernel(S sums, A pass, lsi_cuda_groups g)
{
    lsi_wait();
    constexpr int V = S::V, SPAN = LANES * V, ROWS = LSI_CLUSTER_THREADS / LANES;
    extern __shared__ __align__(16) unsigned char memory[];
    typename S::kept *kept = (typename S::kept *)memory + threadIdx.x;
    __shared__ float part[S::SUMS][SPAN];
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const int rank = (int)cluster.block_rank(), blocks = (int)cluster.num_blocks(), t = threadIdx.x;
    const int64_t base = (int64_t)(blockIdx.x / blocks) * SPAN, column = base + t % LANES * V;
    const int64_t group = blockIdx.y * g.groups, first = blockIdx.y * g.inner * g.groups;
    const int share = (int)((g.inner + blocks - 1) / blocks), begin = rank * share + t / LANES;
    const int end = rank * share + share < g.inner ? rank * share + share : (int)g.inner;
    float s[S::SUMS][V] = {}, anchor = 0;

    {
        typename S::constants c;
        sums.begin(group + column, first + column, 1, c);
        for (int r = begin, i = 0; r < end; r += S::KEPT_AHEAD * ROWS, i += S::KEPT_AHEAD) {
            const int64_t at = first + r * g.groups + column, next = ROWS * g.groups;
            typename S::fetched f[S::KEPT_AHEAD];
#pragma unroll
            for (int u = 0; u < S::KEPT_AHEAD; u++)
                if (r + u * ROWS < end) sums.fetch(at + u * next, f[u]);
#pragma unroll
            for (int u = 0; u < S::KEPT_AHEAD; u++)
                if (r + u * ROWS < end)
                    sums.add(at + u * next, f[u], c, s, kept[(i + u) * LSI_CLUSTER_THREADS]);
        }
    }
    if (t < SPAN) anchor = sums.anchor(first + base + t);
    lsi_cluster_block_sum<S, LANES>(s, part);
    lsi_cluster_arrive();
    lsi_cluster_wait();
    if (t < SPAN) {
        float sum[S::SUMS] = {};
        for (int b = 0; b < blocks; b++)
#pragma unroll
            for (int q = 0; q < S::SUMS; q++) sum[q] += *cluster.map_shared_rank(&part[q][t], (unsigned)b);
        sums.settle(group + base + t, anchor, sum, rank == 0);
    }
    lsi_cluster_arrive(); /* this block has read what others have; it must not end before they have */
    __syncthreads();
    typename A::constants c;
    pass.begin(group + column, first + column, 1, c);
    for (int r = begin, i = 0; r < end; r += A::AHEAD * ROWS, i += A::AHEAD) {
        const int64_t at = first + r * g.groups + column, next = ROWS * g.groups;
        typename A::beside f[A::AHEAD];
#pragma unroll
        for (int u = 0; u < A::AHEAD; u++)
            if (r + u * ROWS < end) pass.fetch_beside(at + u * next, f[u]);
#pragma unroll
        for (int u = 0; u < A::AHEAD; u++)
            if (r + u * ROWS < end) pass.write(at + u * next, kept[(i + u) * LSI_CLUSTER_THREADS], f[u], c);
    }
    lsi_cluster_wait();
}

template <typename S, typename A, int LANES>
static int lsi_cluster_start(lsi_cuda_stream stream, const S &sums, const A &pass, const lsi_cuda_groups &g,
                             const lsi_cuda_cluster &cluster)
{
    constexpr int ROWS = LSI_CLUSTER_THREADS / LANES;
    const auto kernel = lsi_cluster_kernel<S, A, LANES>;
    const int64_t share = (g.inner + cluster.blocks - 1) / cluster.blocks, steps = (share + ROWS - 1) / ROWS;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    int code = lsi_cuda_enter();

    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {(unsigned)cluster.blocks, 1, 1};
    config.gridDim = dim3((unsigned)(g.groups / (LANES * S::V) * cluster.blocks), (unsigned)g.outer);
    config.blockDim = dim3(LSI_CLUSTER_THREADS);
    config.dynamicSmemBytes = (size_t)steps * LSI_CLUSTER_THREADS * sizeof(typename S::kept);
    config.stream = (cudaStream_t)stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (code == 0)
        code = (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)config.dynamicSmemBytes);
    if (code == 0 && cluster.blocks > 8)
        code = (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (code == 0) code = (int)cudaLaunchKernelEx(&config, kernel, sums, pass, g);
    if (code == 0) lsi_cuda_note_kernel(stream);
    return code;
}

template <typename S, typename A>
static int lsi_cluster_groups(lsi_cuda_stream s, const S &sums, const A &pass, const lsi_cuda_groups &g,
                              const lsi_cuda_cluster &cluster)
{
    if (cluster.span == LSI_CLUSTER_WIDE)
        return lsi_cluster_start<S, A, LSI_CLUSTER_WIDE / S::V>(s, sums, pass, g, cluster);
    return lsi_cluster_start<S, A, LSI_CLUSTER_NARROW / S::V>(s, sums, pass, g, cluster);
}

#endif
