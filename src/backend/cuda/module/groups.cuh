/* groups.cuh: sums over groups of elements, and passes over elements that know
 * their group.
 *
 * A rule says what is read and summed; the kernels here say who reads what.  A
 * sum is split over blocks, whose partial sums the last of them adds up in a
 * fixed order and hands to the rule: the same bits every time, and no second
 * launch.  In columns neighbouring threads read 128 or 256 bytes of a row, and each
 * thread keeps to its columns, so what belongs to a column stays in registers;
 * in lines a block, or for short groups a warp, reads one group.
 *
 * A rule R has
 *   T, V                        element type and elements per access
 *   SUMS                        numbers that are summed per group: 1 or 2
 *   struct constants            what a thread keeps of its V groups
 *   begin(group, first, step, c)   fills it: lane k is of group + k * step,
 * whose first element is at first + k * step (negative: the group is empty)
 *   AHEAD                       accesses that a thread has under way
 *   struct fetched, fetch(at, f)   what is read of the elements at `at`; for
 * sums, of which AHEAD are fetched before the first is added: a store between
 * them would make the next wait
 *   add(at, f, c, s)            adds them to s[SUMS][V]
 *   finish(group, first, s)     has the sums of a group
 *   apply(at, n, c)             for passes without sums: the elements at
 * at[0..n-1], n <= AHEAD, all of which are fetched before the first is written
 *   BLOCKS                      for such passes, if there is one: blocks of a
 * processor for which registers are to suffice
 */
#ifndef LS_BACKEND_CUDA_MODULE_GROUPS_CUH
#define LS_BACKEND_CUDA_MODULE_GROUPS_CUH

#include <type_traits>

#include "backend/cuda/launch/groups.h"
#include "backend/cuda/module/vector.cuh"

/* What rules share that add up the elements as they are: only `finish` is missing. */
template <typename Type, int Width> struct lsi_elements {
    using T = Type;
    static constexpr int V = Width, SUMS = 1, AHEAD = 8;
    using fetched = lsi_packed<V, T>;
    struct constants {
    };
    const T *x;

    __device__ void begin(int64_t, int64_t, int, constants &) const
    {
    }
    __device__ void fetch(int64_t at, fetched &read) const
    {
        read.fetch(x + at);
    }
    __device__ void add(int64_t, const fetched &read, const constants &, float (&s)[SUMS][V]) const
    {
        float f[V];

        read.unpack(f);
#pragma unroll
        for (int k = 0; k < V; k++) s[0][k] += f[k];
    }
};

template <int V> struct lsi_columns {
    static constexpr int LANES = V > 1 ? LSI_SPAN_WIDE / V : LSI_SPAN_NARROW; /* threads across a row */
    static constexpr int ROWS = LSI_GROUP_THREADS / LANES;
    static constexpr int WARPS = LSI_GROUP_THREADS / LSI_WARP;
    static constexpr int SPAN = LANES * V; /* columns of a block */
};

/* Blocks of a processor for which registers are to suffice: launches are
 * divided for so many. */
enum { LSI_GROUP_BLOCKS = 4 };

/* What a rule says of that itself. */
template <typename R, typename = void> struct lsi_apply_blocks {
    static constexpr int value = LSI_GROUP_BLOCKS;
};
template <typename R> struct lsi_apply_blocks<R, std::enable_if_t<(R::BLOCKS > 0)>> {
    static constexpr int value = R::BLOCKS;
};

/* Sums of a block's threads over their rows, for each of its columns: to the
 * first SPAN threads. */
template <typename R>
__device__ __forceinline__ void lsi_columns_sum(float (&s)[R::SUMS][R::V], float (&sum)[R::SUMS])
{
    using C = lsi_columns<R::V>;
    __shared__ float room[C::WARPS][R::SUMS][C::SPAN];
    const int t = threadIdx.x, lane = t % C::LANES, warp = t / LSI_WARP;

#pragma unroll
    for (int o = C::LANES; o < LSI_WARP; o *= 2)
#pragma unroll
        for (int q = 0; q < R::SUMS; q++)
#pragma unroll
            for (int k = 0; k < R::V; k++) s[q][k] += __shfl_xor_sync(LSI_FULL, s[q][k], o);
    if (t % LSI_WARP < C::LANES)
#pragma unroll
        for (int q = 0; q < R::SUMS; q++)
#pragma unroll
            for (int k = 0; k < R::V; k++) room[warp][q][lane * R::V + k] = s[q][k];
    __syncthreads();
    if (t >= C::SPAN) return;
#pragma unroll
    for (int q = 0; q < R::SUMS; q++) {
        sum[q] = 0;
        for (int w = 0; w < C::WARPS; w++) sum[q] += room[w][q][t];
    }
}

/* The last block's sums of what all blocks of its columns have left, to the
 * first SPAN threads.  Several numbers an access and many accesses at a time:
 * nothing else goes on meanwhile. */
template <typename R>
__device__ __forceinline__ void lsi_columns_total(const float *partial, int64_t stride, int64_t column,
                                                  int64_t columns, float (&sum)[R::SUMS])
{
    using C = lsi_columns<R::V>;
    constexpr int WIDTH = R::V > 1 ? 4 : 1, ACROSS = C::SPAN / WIDTH, SLICES = LSI_GROUP_THREADS / ACROSS;
    using raw = typename lsi_raw<WIDTH *(int)sizeof(float)>::type;
    __shared__ alignas(16) float room[SLICES][R::SUMS][C::SPAN];
    const int t = threadIdx.x, mine = t % ACROSS * WIDTH, slice = t / ACROSS;

    float x[R::SUMS][WIDTH] = {};
    if (column + mine < columns)
#pragma unroll 8
        for (unsigned i = (unsigned)slice; i < gridDim.y; i += SLICES)
#pragma unroll
            for (int q = 0; q < R::SUMS; q++) {
                union {
                    raw r;
                    float f[WIDTH];
                } u;
                u.r = __ldcg((const raw *)(partial + (i * R::SUMS + q) * stride + column + mine));
#pragma unroll
                for (int k = 0; k < WIDTH; k++) x[q][k] += u.f[k];
            }
#pragma unroll
    for (int q = 0; q < R::SUMS; q++)
#pragma unroll
        for (int k = 0; k < WIDTH; k++) room[slice][q][mine + k] = x[q][k];
    __syncthreads();
    if (t >= C::SPAN) return;
#pragma unroll
    for (int q = 0; q < R::SUMS; q++) {
        sum[q] = 0;
        for (int i = 0; i < SLICES; i++) sum[q] += room[i][q][t];
    }
}

template <typename R>
__global__ void __launch_bounds__(LSI_GROUP_THREADS, LSI_GROUP_BLOCKS)
    lsi_columns_kernel(R rule, lsi_cuda_groups g)
{
    lsi_wait();
    using C = lsi_columns<R::V>;
    const int64_t b = blockIdx.z, base = (int64_t)blockIdx.x * C::SPAN, rows = g.inner;
    const int64_t column = base + threadIdx.x % C::LANES * R::V, first = b * rows * g.groups;
    const int64_t all = g.outer * g.groups; /* groups */
    float s[R::SUMS][R::V] = {}, sum[R::SUMS];

    if (column < g.groups) {
        typename R::constants c;
        rule.begin(b * g.groups + column, rows > 0 ? first + column : -1, 1, c);
        const int64_t step = (int64_t)gridDim.y * C::ROWS;
        for (int64_t r = blockIdx.y * C::ROWS + threadIdx.x / C::LANES; r < rows; r += R::AHEAD * step) {
            typename R::fetched f[R::AHEAD];
            const int64_t at = first + r * g.groups + column, next = step * g.groups;
#pragma unroll
            for (int u = 0; u < R::AHEAD; u++)
                if (r + u * step < rows) rule.fetch(at + u * next, f[u]);
#pragma unroll
            for (int u = 0; u < R::AHEAD; u++)
                if (r + u * step < rows) rule.add(at + u * next, f[u], c, s);
        }
    }
    lsi_columns_sum<R>(s, sum);
    const int64_t mine = base + threadIdx.x;
    const bool has = threadIdx.x < C::SPAN && mine < g.groups;
    if (gridDim.y > 1) {
        float *partial = g.partial + blockIdx.y * R::SUMS * all + b * g.groups;
        if (has)
#pragma unroll
            for (int q = 0; q < R::SUMS; q++) __stcg(partial + q * all + mine, sum[q]);
        if (!lsi_last_block(g.tickets + b * gridDim.x + blockIdx.x, gridDim.y)) return;
        lsi_columns_total<R>(g.partial + b * g.groups, all, base, g.groups, sum);
    }
    if (has) rule.finish(b * g.groups + mine, rows > 0 ? first + mine : -1, sum);
}

/* From the last row to the first: what the pass before read last is still in
 * the cache. */
template <typename R>
__global__ void __launch_bounds__(LSI_GROUP_THREADS, lsi_apply_blocks<R>::value)
    lsi_columns_apply(R rule, lsi_cuda_groups g)
{
    lsi_wait();
    using C = lsi_columns<R::V>;
    const int64_t b = blockIdx.z, first = b * g.inner * g.groups;
    const int64_t column = (int64_t)blockIdx.x * C::SPAN + threadIdx.x % C::LANES * R::V;
    typename R::constants c;

    if (column >= g.groups) return;
    rule.begin(b * g.groups + column, first + column, 1, c);
    const int64_t step = (int64_t)gridDim.y * C::ROWS;
    for (int64_t r = (int64_t)blockIdx.y * C::ROWS + threadIdx.x / C::LANES; r < g.inner;
         r += R::AHEAD * step) {
        int64_t at[R::AHEAD];
        int n = 0; /* accesses that are there */
#pragma unroll
        for (int u = 0; u < R::AHEAD; u++) {
            at[u] = first + (g.inner - 1 - (r + u * step)) * g.groups + column;
            n += r + u * step < g.inner;
        }
        rule.apply(at, n, c);
    }
}

/* Where access number e of group `group` begins. */
template <int V>
__device__ __forceinline__ int64_t lsi_line_place(const lsi_cuda_groups &g, const lsi_divider &per_line,
                                                  int64_t group, uint32_t e)
{
    uint32_t i;
    const uint32_t o = per_line.split(e, &i);

    return ((int64_t)o * g.groups + group) * g.inner + (int64_t)i * V;
}

/* TEAM threads sum one group: a warp where groups are short, else a block. */
template <typename R, int TEAM>
__global__ void __launch_bounds__(LSI_GROUP_THREADS)
    lsi_lines_kernel(R rule, lsi_cuda_groups g, lsi_divider per_line)
{
    lsi_wait();
    __shared__ float room[2 * LSI_GROUP_THREADS / LSI_WARP];
    const int64_t group = (int64_t)blockIdx.x * (LSI_GROUP_THREADS / TEAM) + threadIdx.x / TEAM;
    const uint32_t n = (uint32_t)(g.outer * g.inner / R::V), mine = threadIdx.x % TEAM;
    const int64_t first = n > 0 ? group * g.inner : -1;
    float s[R::SUMS][R::V] = {}, a = 0, b = 0;

    if (TEAM == LSI_WARP && group >= g.groups) return;
    typename R::constants c;
    rule.begin(group, first, 0, c);
    const uint32_t step = gridDim.y * TEAM;
    for (uint32_t e = blockIdx.y * TEAM + mine; e < n; e += R::AHEAD * step) {
        typename R::fetched f[R::AHEAD];
#pragma unroll
        for (int u = 0; u < R::AHEAD; u++)
            if (e + u * step < n) rule.fetch(lsi_line_place<R::V>(g, per_line, group, e + u * step), f[u]);
#pragma unroll
        for (int u = 0; u < R::AHEAD; u++)
            if (e + u * step < n)
                rule.add(lsi_line_place<R::V>(g, per_line, group, e + u * step), f[u], c, s);
    }
#pragma unroll
    for (int k = 0; k < R::V; k++) {
        a += s[0][k];
        b += s[R::SUMS - 1][k];
    }
    lsi_block_sums<TEAM>(&a, &b, room);
    if (TEAM != LSI_WARP && gridDim.y > 1) {
        if (threadIdx.x < R::SUMS)
            __stcg(g.partial + (blockIdx.y * R::SUMS + threadIdx.x) * g.groups + group,
                   threadIdx.x == 0 ? a : b);
        if (!lsi_last_block(g.tickets + group, gridDim.y)) return;
        a = b = 0;
        for (unsigned i = threadIdx.x; i < gridDim.y; i += TEAM) {
            a += __ldcg(g.partial + (int64_t)i * R::SUMS * g.groups + group);
            b += __ldcg(g.partial + ((int64_t)i * R::SUMS + R::SUMS - 1) * g.groups + group);
        }
        lsi_block_sums<TEAM>(&a, &b, room);
    }
    if (mine == 0) {
        float sum[R::SUMS];
        sum[R::SUMS - 1] = b;
        sum[0] = a;
        rule.finish(group, first, sum);
    }
}

template <typename R>
__global__ void __launch_bounds__(LSI_GROUP_THREADS)
    lsi_lines_apply(R rule, lsi_cuda_groups g, lsi_divider per_line)
{
    lsi_wait();
    const int64_t group = blockIdx.x;
    const uint32_t n = (uint32_t)(g.outer * g.inner / R::V);
    typename R::constants c;

    rule.begin(group, n > 0 ? group * g.inner : -1, 0, c);
    for (uint32_t e = blockIdx.y * LSI_GROUP_THREADS + threadIdx.x; e < n;
         e += gridDim.y * LSI_GROUP_THREADS) {
        int64_t at[R::AHEAD];
        at[0] = lsi_line_place<R::V>(g, per_line, group, n - 1 - e);
        rule.apply(at, 1, c);
    }
}

/* -- launching
 * -------------------------------------------------------------------------------------------
 */

/* Whether accesses of 16 bytes never leave a row or line. */
static inline bool lsi_groups_wide(ls_dtype t, const lsi_cuda_groups *g)
{
    return lsi_wide(t, g->columns ? g->groups : g->inner);
}

template <typename R> static int lsi_sum_columns(lsi_cuda_stream s, const R &rule, const lsi_cuda_groups &g)
{
    const dim3 grid((unsigned)((g.groups + lsi_columns<R::V>::SPAN - 1) / lsi_columns<R::V>::SPAN),
                    (unsigned)g.splits, (unsigned)g.outer);

    if (g.groups == 0 || g.outer == 0) return 0;
    LSI_LAUNCH(s, grid, LSI_GROUP_THREADS, 0, lsi_columns_kernel<R>, rule, g);
    return 0;
}

template <typename R> static int lsi_sum_groups(lsi_cuda_stream s, const R &rule, const lsi_cuda_groups &g)
{
    constexpr int short_group = 4 * LSI_WARP * R::V; /* elements that a warp reads in four accesses */

    if (g.columns) return lsi_sum_columns(s, rule, g);
    if (g.groups == 0) return 0;
    const lsi_divider per_line(g.inner / R::V > 0 ? g.inner / R::V : 1);
    if (g.splits == 1 && g.outer * g.inner <= short_group) {
        constexpr int teams = LSI_GROUP_THREADS / LSI_WARP;
        LSI_LAUNCH(s, (unsigned)((g.groups + teams - 1) / teams), LSI_GROUP_THREADS, 0,
                   (lsi_lines_kernel<R, LSI_WARP>), rule, g, per_line);
    } else {
        LSI_LAUNCH(s, dim3((unsigned)g.groups, (unsigned)g.splits), LSI_GROUP_THREADS, 0,
                   (lsi_lines_kernel<R, LSI_GROUP_THREADS>), rule, g, per_line);
    }
    return 0;
}

enum { LSI_PROCESSORS = 132 };
/* All that fit at a time. */
enum { LSI_MAP_BLOCKS = LSI_PROCESSORS * LSI_GROUP_BLOCKS };

template <typename R> static int lsi_map_columns(lsi_cuda_stream s, const R &rule, const lsi_cuda_groups &g)
{
    using C = lsi_columns<R::V>;
    const int64_t across = (g.groups + C::SPAN - 1) / C::SPAN, need = (g.inner + C::ROWS - 1) / C::ROWS;

    if (g.groups == 0 || g.outer == 0 || g.inner == 0) return 0;
    const int64_t fit = LSI_PROCESSORS * lsi_apply_blocks<R>::value;
    const int64_t share = (fit + across * g.outer - 1) / (across * g.outer);
    LSI_LAUNCH(s, dim3((unsigned)across, (unsigned)(need < share ? need : share), (unsigned)g.outer),
               LSI_GROUP_THREADS, 0, lsi_columns_apply<R>, rule, g);
    return 0;
}

template <typename R> static int lsi_map_groups(lsi_cuda_stream s, const R &rule, const lsi_cuda_groups &g)
{
    if (g.columns) return lsi_map_columns(s, rule, g);
    if (g.groups == 0 || g.outer == 0 || g.inner == 0) return 0;
    const int64_t n = g.outer * g.inner / R::V, need = (n + LSI_GROUP_THREADS - 1) / LSI_GROUP_THREADS;
    const int64_t share = (LSI_MAP_BLOCKS + g.groups - 1) / g.groups;
    LSI_LAUNCH(s, dim3((unsigned)g.groups, (unsigned)(need < share ? need : share)), LSI_GROUP_THREADS, 0,
               lsi_lines_apply<R>, rule, g, lsi_divider(g.inner / R::V));
    return 0;
}

#endif
