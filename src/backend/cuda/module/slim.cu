/* slim.cu: products of 16-bit numbers with few rows, or sums over few: the layers of small networks.
 *
 * Libraries divide a product into tiles of 64 and more rows and go through k by stages; with 32 rows most of
 * that waits for memory, stage after stage.  Here everything that a warp needs is asked for at once, and goes
 * from memory into the registers of the tensor cores: a warp takes some of k, for all rows.
 *
 * A multiplication sums over 16 k.  Which 16 they are is free, as long as both operands agree: a thread of
 * column t (0..3) has eight that lie together, 8 t .. 8 t + 7 of 32, for two multiplications.  Where rows of
 * an operand lie along k that is one access; where they do not, columns are as free: a thread has some that
 * lie together, for several multiplications.
 *
 * The order of sums depends on nothing but the sizes. */
#include "backend/cuda/launch/slim.h"
#include "backend/cuda/module/flash.cuh"

enum {
    WARPS = 8,
    THREADS = WARPS * LSI_WARP,
    STEP = 32,    /* k that a warp takes at once */
    COLUMNS = 16, /* of a block */
    SIDE = 32,    /* of a warp's square of sums over few */
    SUM_WARPS = 4
};

/* N elements from p on, of which `have` are there (all or none with WHOLE), as pairs; the others are 0. */
template <bool WHOLE, int N, typename T>
static __device__ __forceinline__ void fetch(uint32_t (&pair)[N / 2], const T *p, int64_t have)
{
    using raw = typename lsi_raw<2 * N>::type;
    union {
        raw all;
        uint32_t pair[N / 2];
        uint16_t one[N];
    } u;

    if (WHOLE) {
        if (have > 0) u.all = *(const raw *)p;
#pragma unroll
        for (int i = 0; i < N / 2; i++) pair[i] = have > 0 ? u.pair[i] : 0;
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) u.one[i] = i < have ? ((const uint16_t *)p)[i] : (uint16_t)0;
#pragma unroll
        for (int i = 0; i < N / 2; i++) pair[i] = u.pair[i];
    }
}

/* Of two rows x and y, which are one after the other along k: the pair of column q, as multiplications want
 * it. */
template <int N>
static __device__ __forceinline__ uint32_t turned(const uint32_t (&x)[N], const uint32_t (&y)[N], int q)
{
    return __byte_perm(x[q / 2], y[q / 2], q % 2 == 0 ? 0x5410 : 0x7632);
}

/* -- few rows ---------------------------------------------------------------------------------------------
 *
 * A block has TILES * 16 rows and 16 columns, two tiles of 8, its warps take turns along k; their sums are
 * added up in the order of warps. */

/* The columns' pairs of k from 8 t on: tile j, of column g of it. */
template <typename T, bool TURNED, bool WHOLE>
static __device__ __forceinline__ void fetch_columns(uint32_t (&b)[2][4], const lsi_cuda_slim_args &a, int64_t n0,
                                                     int64_t k0)
{
    const int lane = threadIdx.x % LSI_WARP, g = lane / 4;
    const T *from = (const T *)a.b;

    if (!TURNED) { /* b is stored by columns */
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int64_t n = n0 + j * 8 + g;
            fetch<WHOLE, 8>(b[j], from + n * a.k + k0, n < a.n ? a.k - k0 : 0);
        }
    } else {
        const int64_t n = n0 + g * 2;
        uint32_t row[8][1];
#pragma unroll
        for (int e = 0; e < 8; e++)
            fetch<WHOLE, 2>(row[e], from + (k0 + e) * a.n + n, k0 + e < a.k ? a.n - n : 0);
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int p = 0; p < 4; p++) b[j][p] = turned(row[2 * p], row[2 * p + 1], j);
    }
}

template <typename T, typename Out, int TILES, bool TURNED, bool WHOLE>
__global__ void __launch_bounds__(THREADS) rows_kernel(const __grid_constant__ lsi_cuda_slim_args a)
{
    lsi_wait();
    __shared__ float part[WARPS][TILES * 16][COLUMNS + 1];
    const int warp = threadIdx.x / LSI_WARP, lane = threadIdx.x % LSI_WARP, g = lane / 4, t = lane % 4;
    const int64_t n0 = (int64_t)blockIdx.x * COLUMNS, m0 = (int64_t)blockIdx.y * TILES * 16;
    const int64_t steps = (a.k + STEP - 1) / STEP;
    float c[TILES][2][4] = {};

#pragma unroll 2
    for (int64_t step = warp; step < steps; step += WARPS) {
        const int64_t k0 = step * STEP + t * 8;
        uint32_t x[TILES][2][4], b[2][4];
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int64_t m = m0 + i * 16 + h * 8 + g;
                fetch<WHOLE, 8>(x[i][h], (const T *)a.a + m * a.k + k0, m < a.m ? a.k - k0 : 0);
            }
        fetch_columns<T, TURNED, WHOLE>(b, a, n0, k0);
#pragma unroll
        for (int p = 0; p < 4; p += 2)
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                const uint32_t row[4] = {x[i][0][p], x[i][1][p], x[i][0][p + 1], x[i][1][p + 1]};
#pragma unroll
                for (int j = 0; j < 2; j++) multiply(c[i][j], row, b[j][p], b[j][p + 1], (const T *)nullptr);
            }
    }
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int column = 2 * t + e % 2;
                part[warp][i * 16 + e / 2 * 8 + g][TURNED ? column * 2 + j : j * 8 + column] = c[i][j][e];
            }
    __syncthreads();
    for (int i = threadIdx.x; i < TILES * 16 * COLUMNS; i += THREADS) {
        const int64_t m = m0 + i / COLUMNS, n = n0 + i % COLUMNS;
        float sum = 0;
        if (m >= a.m || n >= a.n) continue;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += part[w][i / COLUMNS][i % COLUMNS];
        if (a.bias != nullptr) sum += lsi_get(((const T *)a.bias)[n]);
        if (a.more != nullptr) sum += lsi_get(((const Out *)a.more)[m * a.n + n]);
        ((Out *)a.c)[m * a.n + n] = lsi_put<Out>(lsi_act((ls_act)a.act, a.slope, sum));
    }
}

/* -- sums over few ----------------------------------------------------------------------------------------
 *
 * Both operands are stored by rows of k: a warp has a square of c, a thread four rows and four columns of it
 * that lie together, which are in four tiles. */

template <typename T, typename Out, bool WHOLE>
static __device__ __forceinline__ void put_four(const lsi_cuda_slim_args &a, int64_t m, int64_t n, float (&f)[4])
{
    Out *to = (Out *)a.c + m * a.n + n;

#pragma unroll
    for (int q = 0; q < 4; q++) {
        if (a.bias != nullptr && n + q < a.n) f[q] += lsi_get(((const T *)a.bias)[n + q]);
        if (a.more != nullptr && n + q < a.n) f[q] += lsi_get(((const Out *)a.more)[m * a.n + n + q]);
        f[q] = lsi_act((ls_act)a.act, a.slope, f[q]);
    }
    if (WHOLE) {
        lsi_store<4>(to, f);
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++)
            if (n + q < a.n) to[q] = lsi_put<Out>(f[q]);
    }
}

template <typename T, typename Out, bool WHOLE>
__global__ void __launch_bounds__(SUM_WARPS *LSI_WARP) sums_kernel(const __grid_constant__ lsi_cuda_slim_args a)
{
    lsi_wait();
    const int warp = threadIdx.x / LSI_WARP, lane = threadIdx.x % LSI_WARP, g = lane / 4, t = lane % 4;
    const int64_t across = (a.n + SIDE - 1) / SIDE, square = (int64_t)blockIdx.x * SUM_WARPS + warp;
    const int64_t m0 = square / across * SIDE, n0 = square % across * SIDE;
    float c[2][4][4] = {};

    if (m0 >= a.m) return;
    for (int64_t k0 = 8 * t; k0 < (a.k + STEP - 1) / STEP * STEP; k0 += STEP) {
        uint32_t x[8][2], y[8][2];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int64_t k = k0 + e, m = m0 + g * 4, n = n0 + g * 4;
            fetch<WHOLE, 4>(x[e], (const T *)a.a + k * a.m + m, k < a.k ? a.m - m : 0);
            fetch<WHOLE, 4>(y[e], (const T *)a.b + k * a.n + n, k < a.k ? a.n - n : 0);
        }
#pragma unroll
        for (int p = 0; p < 8; p += 4)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint32_t row[4] = {turned(x[p], x[p + 1], 2 * i), turned(x[p], x[p + 1], 2 * i + 1),
                                         turned(x[p + 2], x[p + 3], 2 * i), turned(x[p + 2], x[p + 3], 2 * i + 1)};
#pragma unroll
                for (int j = 0; j < 4; j++)
                    multiply(c[i][j], row, turned(y[p], y[p + 1], j), turned(y[p + 2], y[p + 3], j),
                             (const T *)nullptr);
            }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int64_t m = m0 + g * 4 + i, n = n0 + 8 * t + 4 * h;
            float four[4];
#pragma unroll
            for (int j = 0; j < 4; j++) four[j] = c[i / 2][j][i % 2 * 2 + h];
            if (m < a.m && n < a.n) put_four<T, Out, WHOLE>(a, m, n, four);
        }
}

/* -- launching --------------------------------------------------------------------------------------------
 */

static bool aligned(const void *p, int64_t row, int elements, int bytes)
{
    return row % elements == 0 && (uintptr_t)p % (unsigned)(elements * bytes) == 0;
}

template <typename T, typename Out, int TILES> static int start_rows(lsi_cuda_stream s, const lsi_cuda_slim_args *a)
{
    const dim3 grid((unsigned)((a->n + COLUMNS - 1) / COLUMNS), (unsigned)((a->m + TILES * 16 - 1) / (TILES * 16)));
    const bool whole = aligned(a->a, a->k, 8, 2) &&
                       (a->trans_b ? aligned(a->b, a->k, 8, 2) : aligned(a->b, a->n, 2, 2));

    if (a->trans_b && whole)
        LSI_LAUNCH(s, grid, THREADS, 0, (rows_kernel<T, Out, TILES, false, true>), *a);
    else if (a->trans_b)
        LSI_LAUNCH(s, grid, THREADS, 0, (rows_kernel<T, Out, TILES, false, false>), *a);
    else if (whole)
        LSI_LAUNCH(s, grid, THREADS, 0, (rows_kernel<T, Out, TILES, true, true>), *a);
    else
        LSI_LAUNCH(s, grid, THREADS, 0, (rows_kernel<T, Out, TILES, true, false>), *a);
    return 0;
}

template <typename T, typename Out> static int start_sums(lsi_cuda_stream s, const lsi_cuda_slim_args *a)
{
    const int64_t squares = (a->m + SIDE - 1) / SIDE * ((a->n + SIDE - 1) / SIDE);
    const unsigned blocks = (unsigned)((squares + SUM_WARPS - 1) / SUM_WARPS);

    if (aligned(a->a, a->m, 4, 2) && aligned(a->b, a->n, 4, 2) && aligned(a->c, a->n, 4, (int)sizeof(Out)))
        LSI_LAUNCH(s, blocks, SUM_WARPS * LSI_WARP, 0, (sums_kernel<T, Out, true>), *a);
    else
        LSI_LAUNCH(s, blocks, SUM_WARPS * LSI_WARP, 0, (sums_kernel<T, Out, false>), *a);
    return 0;
}

template <typename T, typename Out> static int start(lsi_cuda_stream s, const lsi_cuda_slim_args *a)
{
    if (a->trans_a) return start_sums<T, Out>(s, a);
    if (a->m <= 16) return start_rows<T, Out, 1>(s, a);
    if (a->m <= 32) return start_rows<T, Out, 2>(s, a);
    return start_rows<T, Out, 4>(s, a);
}

int lsi_cuda_slim(lsi_cuda_stream s, const lsi_cuda_slim_args *a)
{
    if ((a->trans_a && a->trans_b) || (a->out != a->dtype && a->out != LS_F32)) return (int)cudaErrorNotSupported;
    if (a->dtype == LS_BF16)
        return a->out == LS_F32 ? start<__nv_bfloat16, float>(s, a) : start<__nv_bfloat16, __nv_bfloat16>(s, a);
    if (a->dtype == LS_F16) return a->out == LS_F32 ? start<__half, float>(s, a) : start<__half, __half>(s, a);
    return (int)cudaErrorNotSupported;
}
