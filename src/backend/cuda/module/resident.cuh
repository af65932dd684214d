/* resident.cuh: sums over columns and the pass behind them in one launch of one block a processor.
 *
 * A block has some of the columns and a share of the rows.  It reads them once and keeps in shared memory as
 * many as fit; leaves the sums of its share in memory; meets the other blocks of its columns; adds up the
 * sums of all in the order of their numbers, so that they agree and bits repeat; and goes over its rows: over
 * those that it does not have from the L2 cache, where they were last, and over those that it has kept.
 *
 * Blocks wait for each other, so all of them must be on the processors at a time: the launch is a cooperative
 * one, which starts with all of its blocks or not yet.
 *
 * Rules are those of cluster.cuh; that of the pass also has `apply` (groups.cuh), for rows that were not
 * kept. */
#ifndef LS_BACKEND_CUDA_MODULE_RESIDENT_CUH
#define LS_BACKEND_CUDA_MODULE_RESIDENT_CUH

#include "backend/cuda/module/groups.cuh"

/* Returns when `blocks` blocks have come, with all that they wrote before.  The block that is `first` turns
 * the highest bit around and takes away what the others add: *ticket is the same after every second launch,
 * and needs nobody who clears it. */
static __device__ __forceinline__ void lsi_meet(unsigned *ticket, unsigned blocks, bool first)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned before = atomicAdd(ticket, first ? 0x80000000u - (blocks - 1) : 1u);
        unsigned now;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(ticket) : "memory");
        while (((before ^ now) & 0x80000000u) == 0);
        __threadfence();
    }
    __syncthreads();
}

/* Sums of the block's threads over their rows: sum number t / SPAN of column t % SPAN, to thread
 * t < SUMS * SPAN. */
template <typename S, int LANES, int THREADS>
__device__ __forceinline__ float lsi_resident_sum(float (&s)[S::SUMS][S::V])
{
    constexpr int WARPS = THREADS / LSI_WARP, SPAN = LANES * S::V;
    __shared__ float room[WARPS][S::SUMS * SPAN];
    const int t = threadIdx.x;
    float sum = 0;

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
            for (int k = 0; k < S::V; k++) room[t / LSI_WARP][q * SPAN + t % LANES * S::V + k] = s[q][k];
    __syncthreads();
    if (t < S::SUMS * SPAN)
#pragma unroll 8
        for (int w = 0; w < WARPS; w++) sum += room[w][t];
    return sum;
}

/* Leaves this block's sums, and has those of all blocks of its columns, as lsi_resident_sum does. */
template <typename S, int LANES, int THREADS>
__device__ __forceinline__ float lsi_resident_total(const lsi_cuda_groups &g, float sum)
{
    constexpr int SPAN = LANES * S::V, ROWS = THREADS / LANES;
    static_assert(S::V == 4, "partial sums are read four at a time");
    const int64_t all = g.outer * g.groups, column = blockIdx.z * g.groups + (int64_t)blockIdx.x * SPAN;
    const int t = threadIdx.x;
    float s[S::SUMS][S::V] = {};

    if (t < S::SUMS * SPAN)
        __stcg(g.partial + (blockIdx.y * S::SUMS + t / SPAN) * all + column + t % SPAN, sum);
    lsi_meet(g.tickets + blockIdx.z * gridDim.x + blockIdx.x, gridDim.y, blockIdx.y == 0);
    for (unsigned i = (unsigned)(t / LANES); i < gridDim.y; i += ROWS)
#pragma unroll
        for (int q = 0; q < S::SUMS; q++) {
            const float4 p =
                __ldcg((const float4 *)(g.partial + (i * S::SUMS + q) * all + column + t % LANES * S::V));
            s[q][0] += p.x;
            s[q][1] += p.y;
            s[q][2] += p.z;
            s[q][3] += p.w;
        }
    return lsi_resident_sum<S, LANES, THREADS>(s);
}

/* Rows begin .. end - 1, THREADS / LANES apart, of which those before `stop` are kept, to s. */
template <typename S, int LANES, int THREADS>
__device__ __forceinline__ void
lsi_resident_read(const S &sums, const lsi_cuda_groups &g, int64_t place, int begin, int stop, int end,
                  const typename S::constants &c, typename S::kept *kept, float (&s)[S::SUMS][S::V])
{
    constexpr int ROWS = THREADS / LANES;
    const int64_t next = ROWS * g.groups;

    for (int r = begin, i = 0; r < end; r += S::KEPT_AHEAD * ROWS, i += S::KEPT_AHEAD) {
        const int64_t at = place + r * g.groups;
        typename S::fetched f[S::KEPT_AHEAD];
#pragma unroll
        for (int u = 0; u < S::KEPT_AHEAD; u++)
            if (r + u * ROWS < end) sums.fetch(at + u * next, f[u]);
#pragma unroll
        for (int u = 0; u < S::KEPT_AHEAD; u++)
            if (r + u * ROWS < end) {
                typename S::kept k;
                sums.add(at + u * next, f[u], c, s, k);
                if (r + u * ROWS < stop) kept[(i + u) * THREADS] = k;
            }
    }
}

/* The pass over the same rows: what was read last is looked for in the cache first. */
template <typename A, typename K, int LANES, int THREADS>
__device__ __forceinline__ void lsi_resident_write(const A &pass, const lsi_cuda_groups &g, int64_t place,
                                                   int begin, int stop, int end,
                                                   const typename A::constants &c, const K *kept, int held)
{
    constexpr int ROWS = THREADS / LANES;
    const int64_t next = ROWS * g.groups;

    for (int r = begin + held * ROWS; r < end; r += A::AHEAD * ROWS) {
        int64_t at[A::AHEAD];
        int n = 0;
#pragma unroll
        for (int u = 0; u < A::AHEAD; u++) {
            at[u] = place + r * g.groups + u * next;
            n += r + u * ROWS < end;
        }
        pass.apply(at, n, c);
    }
    for (int r = begin, i = 0; r < stop; r += A::AHEAD * ROWS, i += A::AHEAD) {
        const int64_t at = place + r * g.groups;
        typename A::beside f[A::AHEAD];
#pragma unroll
        for (int u = 0; u < A::AHEAD; u++)
            if (r + u * ROWS < stop) pass.fetch_beside(at + u * next, f[u]);
#pragma unroll
        for (int u = 0; u < A::AHEAD; u++)
            if (r + u * ROWS < stop) pass.write(at + u * next, kept[(i + u) * THREADS], f[u], c);
    }
}

/* Grid: blocks across the columns, blocks that share rows, `outer`.  `held` accesses of each thread are kept.
 */
template <typename S, typename A, int LANES, int THREADS>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    lsi_resident_kernel(S sums, A pass, lsi_cuda_groups g, int held)
{
    lsi_wait();
    constexpr int V = S::V, SPAN = LANES * V, ROWS = THREADS / LANES;
    extern __shared__ __align__(16) unsigned char memory[];
    typename S::kept *kept = (typename S::kept *)memory + threadIdx.x;
    __shared__ float total[S::SUMS * SPAN];
    const int t = threadIdx.x, rows = (int)g.inner;
    const int64_t base = (int64_t)blockIdx.x * SPAN, column = base + t % LANES * V;
    const int64_t group = blockIdx.z * g.groups, first = blockIdx.z * g.inner * g.groups;
    const int share = (rows + (int)gridDim.y - 1) / (int)gridDim.y, from = (int)blockIdx.y * share;
    const int begin = from + t / LANES, end = min(from + share, rows), stop = min(from + held * ROWS, end);
    float s[S::SUMS][V] = {}, anchor = 0, sum;

    {
        typename S::constants c;
        sums.begin(group + column, first + column, 1, c);
        lsi_resident_read<S, LANES, THREADS>(sums, g, first + column, begin, stop, end, c, kept, s);
    }
    if (t < SPAN) anchor = sums.anchor(first + base + t);
    sum = lsi_resident_sum<S, LANES, THREADS>(s);
    if (gridDim.y > 1) sum = lsi_resident_total<S, LANES, THREADS>(g, sum);
    if (t < S::SUMS * SPAN) total[t] = sum;
    __syncthreads();
    if (t < SPAN) {
        float all[S::SUMS];
#pragma unroll
        for (int q = 0; q < S::SUMS; q++) all[q] = total[q * SPAN + t];
        sums.settle(group + base + t, anchor, all, blockIdx.y == 0);
    }
    __syncthreads();
    typename A::constants c;
    pass.begin(group + column, first + column, 1, c);
    lsi_resident_write<A, typename S::kept, LANES, THREADS>(pass, g, first + column, begin, stop, end, c,
                                                            kept, held);
}

template <typename S, typename A, int LANES, int THREADS>
static int lsi_resident_start(lsi_cuda_stream stream, const S &sums, const A &pass, const lsi_cuda_groups &g,
                              const lsi_cuda_resident &resident)
{
    const auto kernel = lsi_resident_kernel<S, A, LANES, THREADS>;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    int code = lsi_cuda_enter();

    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    config.gridDim = dim3((unsigned)(g.groups / (LANES * S::V)), (unsigned)g.splits, (unsigned)g.outer);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = (size_t)resident.held * THREADS * sizeof(typename S::kept);
    config.stream = (cudaStream_t)stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (code == 0)
        code = (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)config.dynamicSmemBytes);
    /* No early start: the device has to make room for all blocks at once. */
    return code != 0 ? code : (int)cudaLaunchKernelEx(&config, kernel, sums, pass, g, resident.held);
}

template <typename S, typename A>
static int lsi_resident_groups(lsi_cuda_stream s, const S &sums, const A &pass, const lsi_cuda_groups &g,
                               const lsi_cuda_resident &r)
{
    constexpr int WIDE = LSI_RESIDENT_WIDE / S::V, NARROW = LSI_RESIDENT_NARROW / S::V;

    if (r.threads == LSI_RESIDENT_HALF)
        return r.span == LSI_RESIDENT_WIDE
                   ? lsi_resident_start<S, A, WIDE, LSI_RESIDENT_HALF>(s, sums, pass, g, r)
                   : lsi_resident_start<S, A, NARROW, LSI_RESIDENT_HALF>(s, sums, pass, g, r);
    return r.span == LSI_RESIDENT_WIDE
               ? lsi_resident_start<S, A, WIDE, LSI_RESIDENT_FULL>(s, sums, pass, g, r)
               : lsi_resident_start<S, A, NARROW, LSI_RESIDENT_FULL>(s, sums, pass, g, r);
}

#endif
