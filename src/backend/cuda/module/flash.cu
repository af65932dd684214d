/* flash.cu: attention whose scores never leave the processor (Dao et al. 2022), bf16 and f16, both ways.
 *
 * A warp has 16 rows of one head, queries or (for dk and dv) keys, in registers, and goes through the other
 * side's rows, which a block of four warps brings to shared memory in tiles of 64, the next while the one
 * before is worked on.  Products are tensor instructions of 16 x 8 x 16 whose sums are f32; what one leaves
 * is laid out as the next wants it, so scores stay in registers.  Forward keeps a running maximum and sum of
 * each row. Backward makes the scores again, twice: once by rows for dq, and once by columns for dk and dv;
 * so nobody adds to what others add to, and bits are the same every time. */
#include "backend/cuda/launch/attention.h"
#include "backend/cuda/module/vector.cuh"

enum { WARPS = 4, THREADS = WARPS * LSI_WARP, TILE = 64, GROUP = 16 };

#define LOG2_E 1.4426950408889634f

/* -- tensor instructions -----------------------------------------------------------------------------------
 */

/* Two numbers as they lie in memory. */
static __device__ __forceinline__ uint32_t pair(float x, float y, const __nv_bfloat16 *)
{
    const __nv_bfloat162 p = __floats2bfloat162_rn(x, y);

    return *(const uint32_t *)&p;
}
static __device__ __forceinline__ uint32_t pair(float x, float y, const __half *)
{
    const __half2 p = __floats2half2_rn(x, y);

    return *(const uint32_t *)&p;
}

/* c += a b: a is 16 x 16, b 16 x 8.  In a thread (row = lane / 4, two = 2 * (lane % 4)) a[0..3] hold rows
 * row, row + 8, row, row + 8 at columns two and, for the last two, two + 8; b[0..1] rows two, two + 8 of
 * column row; c rows row (0, 1) and row + 8 (2, 3) at columns two, two + 1. */
static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1, const __nv_bfloat16 *)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1, const __half *)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four matrices of 8 x 8 whose rows begin at the addresses of lanes 0-7, 8-15, 16-23, 24-31; in a thread of
 * each the elements (lane / 4, two), or those of the matrix turned. */
template <bool TURNED> static __device__ __forceinline__ void matrices(uint32_t (&r)[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    if constexpr (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at));
}

/* -- rows ---------------------------------------------------------------------------------------------------
 */

/* Rows of a tile in shared memory: 16 bytes more than they need, so that eight of them are in different
 * banks.
 */
template <typename T, int D> struct tile {
    static constexpr int PITCH = D + 8;
    T row[TILE][PITCH];
};

static __device__ __forceinline__ void copy_16(void *to, const void *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there ? 16 : 0));
}
static __device__ __forceinline__ void copies_end()
{
    asm volatile("cp.async.commit_group;");
}
template <int PENDING> static __device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
}

/* Begins to copy rows first..first+TILE-1 of n; those behind the end become 0. */
template <typename T, int D>
static __device__ __forceinline__ void fetch(tile<T, D> &to, const T *from, int64_t pitch, int first, int n)
{
    constexpr int PIECE = 16 / (int)sizeof(T), PIECES = D / PIECE;

    for (int i = threadIdx.x; i < TILE * PIECES; i += THREADS) {
        const int r = i / PIECES, c = i % PIECES * PIECE;
        const bool there = first + r < n;
        copy_16(&to.row[r][c], from + (there ? (first + r) * pitch + c : 0), there);
    }
}

/* The 16 x D elements of rows first.. as left operands, from a tile. */
template <typename T, int D>
static __device__ __forceinline__ void left(uint32_t (&a)[D / GROUP][4], const tile<T, D> &from, int first)
{
    const int lane = threadIdx.x % LSI_WARP;

#pragma unroll
    for (int k = 0; k < D / GROUP; k++)
        matrices<false>(a[k], &from.row[first + lane % 16][k * GROUP + lane / 16 * 8]);
}

/* s (16 x 16) = a (16 x D) times the 16 rows first.. of the tile, turned. */
template <typename T, int D>
static __device__ __forceinline__ void times_rows(float (&s)[2][4], const uint32_t (&a)[D / GROUP][4],
                                                  const tile<T, D> &rows, int first)
{
    const int lane = threadIdx.x % LSI_WARP;

#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[h][i] = 0;
#pragma unroll
    for (int k = 0; k < D / GROUP; k++) {
        uint32_t b[4]; /* rows 0-7 at columns 0-7 and 8-15 of this k, then rows 8-15 */
        matrices<false>(b, &rows.row[first + lane / 16 * 8 + lane % 8][k * GROUP + lane / 8 % 2 * 8]);
        multiply(s[0], a[k], b[0], b[1], (const T *)nullptr);
        multiply(s[1], a[k], b[2], b[3], (const T *)nullptr);
    }
}

/* sum (16 x D) += p (16 x 16, as sums of products are laid out) times the 16 rows first.. of the tile. */
template <typename T, int D>
static __device__ __forceinline__ void add_times(float (&sum)[D / 8][4], const float (&p)[2][4],
                                                 const tile<T, D> &rows, int first)
{
    const int lane = threadIdx.x % LSI_WARP;
    const T *type = nullptr;
    const uint32_t a[4] = {pair(p[0][0], p[0][1], type), pair(p[0][2], p[0][3], type),
                           pair(p[1][0], p[1][1], type), pair(p[1][2], p[1][3], type)};

#pragma unroll
    for (int n = 0; n < D / GROUP; n++) {
        uint32_t b[4]; /* columns 0-7 of this n, rows 0-7 and 8-15; then columns 8-15 */
        matrices<true>(b, &rows.row[first + lane % 16][n * GROUP + lane / 16 * 8]);
        multiply(sum[2 * n], a, b[0], b[1], type);
        multiply(sum[2 * n + 1], a, b[2], b[3], type);
    }
}

/* Writes 16 x D numbers, times a factor for rows row and row + 8, to rows first.. of n. */
template <typename T, int D>
static __device__ __forceinline__ void store(T *to, int64_t pitch, int first, int n,
                                             const float (&x)[D / 8][4], float factor, float factor_8)
{
    const int lane = threadIdx.x % LSI_WARP, row = first + lane / 4, two = lane % 4 * 2;

#pragma unroll
    for (int k = 0; k < D / 8; k++) {
        if (row < n)
            *(uint32_t *)(to + row * pitch + k * 8 + two) =
                pair(x[k][0] * factor, x[k][1] * factor, (const T *)nullptr);
        if (row + 8 < n)
            *(uint32_t *)(to + (row + 8) * pitch + k * 8 + two) =
                pair(x[k][2] * factor_8, x[k][3] * factor_8, (const T *)nullptr);
    }
}

/* Which head a block has, and where its rows begin. */
struct place {
    int64_t q, out, row;
};

template <typename A> static __device__ __forceinline__ place place_of(const A &a)
{
    const int64_t n = blockIdx.y / a.heads, h = blockIdx.y % a.heads;

    return {n * a.q_rows.sample + h * a.q_rows.head, n * a.out_rows.sample + h * a.out_rows.head,
            (int64_t)blockIdx.y * a.t};
}

/* The same operation over the four threads that share a row. */
static __device__ __forceinline__ float row_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(LSI_FULL, x, 1));
    return fmaxf(x, __shfl_xor_sync(LSI_FULL, x, 2));
}
static __device__ __forceinline__ float row_sum(float x)
{
    x += __shfl_xor_sync(LSI_FULL, x, 1);
    return x + __shfl_xor_sync(LSI_FULL, x, 2);
}

/* -- forward ------------------------------------------------------------------------------------------------
 */

/* Scores of one tile become probabilities times exp(largest so far): s in, p out; `sum` and what was summed
 * up before are scaled to the new maximum. */
template <int D>
static __device__ __forceinline__ void softmax(float (&s)[TILE / GROUP][2][4], float (&top)[2],
                                               float (&sum)[2], float (&out)[D / 8][4], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) { /* rows row and row + 8 */
        float m = top[half];
#pragma unroll
        for (int j = 0; j < TILE / GROUP; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) m = fmaxf(m, fmaxf(s[j][h][2 * half], s[j][h][2 * half + 1]));
        m = row_max(m);
        const float shift = m == -INFINITY ? 0.0f : m * scale, keep = exp2f(top[half] * scale - shift);
        top[half] = m;
        sum[half] *= keep;
#pragma unroll
        for (int k = 0; k < D / 8; k++) {
            out[k][2 * half] *= keep;
            out[k][2 * half + 1] *= keep;
        }
#pragma unroll
        for (int j = 0; j < TILE / GROUP; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    s[j][h][i] = exp2f(fmaf(s[j][h][i], scale, -shift));
                    sum[half] += s[j][h][i];
                }
    }
}

template <typename T, int D>
__global__ void __launch_bounds__(THREADS) flash_kernel(const __grid_constant__ lsi_cuda_flash_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    tile<T, D> *k_tile = (tile<T, D> *)shared, *v_tile = k_tile + 2;
    const int t = (int)a.t, tiles = (t + TILE - 1) / TILE, lane = threadIdx.x % LSI_WARP;
    const int first = (int)blockIdx.x * TILE, mine = threadIdx.x / LSI_WARP * GROUP;
    const place at = place_of(a);
    const T *k = (const T *)a.k + at.q, *v = (const T *)a.v + at.q;
    const float scale = a.scale * LOG2_E;
    const bool works = first + mine < t;
    uint32_t q[D / GROUP][4];
    float out[D / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    fetch(v_tile[0], (const T *)a.q + at.q, a.q_rows.row, first, t);
    copies_end();
    wait_copies<0>();
    __syncthreads();
    left(q, v_tile[0], mine);
    __syncthreads();
    fetch(k_tile[0], k, a.q_rows.row, 0, t);
    fetch(v_tile[0], v, a.q_rows.row, 0, t);
    copies_end();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) {
            fetch(k_tile[(i + 1) % 2], k, a.q_rows.row, (i + 1) * TILE, t);
            fetch(v_tile[(i + 1) % 2], v, a.q_rows.row, (i + 1) * TILE, t);
        }
        copies_end();
        wait_copies<1>();
        __syncthreads();
        if (works) {
            const int here = t - i * TILE < TILE ? t - i * TILE : TILE; /* keys of this tile */
            float s[TILE / GROUP][2][4];
#pragma unroll
            for (int j = 0; j < TILE / GROUP; j++) {
                if (j * GROUP < here) times_rows(s[j], q, k_tile[i % 2], j * GROUP);
                if ((j + 1) * GROUP > here)
#pragma unroll
                    for (int h = 0; h < 2; h++)
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            if (j * GROUP + h * 8 + lane % 4 * 2 + e % 2 >= here) s[j][h][e] = -INFINITY;
            }
            softmax<D>(s, top, sum, out, scale);
#pragma unroll
            for (int j = 0; j < TILE / GROUP; j++)
                if (j * GROUP < here) add_times(out, s[j], v_tile[i % 2], j * GROUP);
        }
        __syncthreads();
    }
    if (!works) return;
    const float all = row_sum(sum[0]), all_8 = row_sum(sum[1]);
    store<T, D>((T *)a.out + at.out, a.out_rows.row, first + mine, t, out, 1 / all, 1 / all_8);
    const int row = first + mine + lane / 4;
    if (lane % 4 == 0 && row < t) a.lse[at.row + row] = top[0] * a.scale + logf(all);
    if (lane % 4 == 0 && row + 8 < t) a.lse[at.row + row + 8] = top[1] * a.scale + logf(all_8);
}

/* -- backward -----------------------------------------------------------------------------------------------
 */

/* dq, and what out . dout is in each row, for the kernel behind it. */
template <typename T, int D>
__global__ void __launch_bounds__(THREADS) flash_dq_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    tile<T, D> *k_tile = (tile<T, D> *)shared, *v_tile = k_tile + 2;
    const int t = (int)a.t, tiles = (t + TILE - 1) / TILE, lane = threadIdx.x % LSI_WARP;
    const int first = (int)blockIdx.x * TILE, mine = threadIdx.x / LSI_WARP * GROUP;
    const place at = place_of(a);
    const T *k = (const T *)a.k + at.q, *v = (const T *)a.v + at.q;
    const float scale = a.scale * LOG2_E;
    const bool works = first + mine < t;
    uint32_t q[D / GROUP][4], dout[D / GROUP][4];
    float dq[D / 8][4] = {}, dot[2] = {}, lse[2];

    fetch(k_tile[0], (const T *)a.q + at.q, a.q_rows.row, first, t);
    fetch(k_tile[1], (const T *)a.dout + at.out, a.out_rows.row, first, t);
    fetch(v_tile[0], (const T *)a.out + at.out, a.out_rows.row, first, t);
    copies_end();
    wait_copies<0>();
    __syncthreads();
    left(q, k_tile[0], mine);
    left(dout, k_tile[1], mine);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = mine + lane / 4 + 8 * half, row = first + r;
        for (int c = lane % 4; c < D; c += 4)
            dot[half] = fmaf(lsi_get(k_tile[1].row[r][c]), lsi_get(v_tile[0].row[r][c]), dot[half]);
        dot[half] = row_sum(dot[half]);
        lse[half] = row < t ? a.lse[at.row + row] * LOG2_E : 0.0f;
        if (lane % 4 == 0 && row < t) a.dots[at.row + row] = dot[half];
    }
    __syncthreads();
    fetch(k_tile[0], k, a.q_rows.row, 0, t);
    fetch(v_tile[0], v, a.q_rows.row, 0, t);
    copies_end();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) {
            fetch(k_tile[(i + 1) % 2], k, a.q_rows.row, (i + 1) * TILE, t);
            fetch(v_tile[(i + 1) % 2], v, a.q_rows.row, (i + 1) * TILE, t);
        }
        copies_end();
        wait_copies<1>();
        __syncthreads();
        const int here = t - i * TILE < TILE ? t - i * TILE : TILE;
        for (int j = 0; works && j < here; j += GROUP) {
            float s[2][4], dp[2][4];
            times_rows(s, q, k_tile[i % 2], j);
            times_rows(dp, dout, v_tile[i % 2], j);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const bool there = j + h * 8 + lane % 4 * 2 + e % 2 < here;
                    const float p = exp2f(fmaf(s[h][e], scale, -lse[e / 2]));
                    s[h][e] = there ? a.scale * p * (dp[h][e] - dot[e / 2]) : 0.0f;
                }
            add_times(dq, s, k_tile[i % 2], j);
        }
        __syncthreads();
    }
    if (works) store<T, D>((T *)a.dq + at.q, a.q_rows.row, first + mine, t, dq, 1, 1);
}

/* dk and dv: rows are keys, columns queries. */
template <typename T, int D>
__global__ void __launch_bounds__(THREADS)
    flash_dkv_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    tile<T, D> *q_tile = (tile<T, D> *)shared, *dout_tile = q_tile + 2;
    float(*numbers)[2][TILE] = (float(*)[2][TILE])(dout_tile + 2); /* lse and dots of a tile's queries */
    const int t = (int)a.t, tiles = (t + TILE - 1) / TILE, lane = threadIdx.x % LSI_WARP;
    const int first = (int)blockIdx.x * TILE, mine = threadIdx.x / LSI_WARP * GROUP;
    const place at = place_of(a);
    const T *q = (const T *)a.q + at.q, *dout = (const T *)a.dout + at.out;
    const float scale = a.scale * LOG2_E;
    const bool works = first + mine < t;
    uint32_t k[D / GROUP][4], v[D / GROUP][4];
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};

    const auto fetch_queries = [&](int i) {
        fetch(q_tile[i % 2], q, a.q_rows.row, i * TILE, t);
        fetch(dout_tile[i % 2], dout, a.out_rows.row, i * TILE, t);
        for (int r = threadIdx.x; r < 2 * TILE; r += THREADS) {
            const int row = i * TILE + r % TILE;
            const float *from = r < TILE ? a.lse : a.dots;
            /* no probability behind the end: exp of minus infinity */
            numbers[i % 2][r / TILE][r % TILE] = row < t    ? from[at.row + row] * (r < TILE ? LOG2_E : 1.0f)
                                                 : r < TILE ? INFINITY
                                                            : 0.0f;
        }
    };
    fetch(q_tile[0], (const T *)a.k + at.q, a.q_rows.row, first, t);
    fetch(q_tile[1], (const T *)a.v + at.q, a.q_rows.row, first, t);
    copies_end();
    wait_copies<0>();
    __syncthreads();
    left(k, q_tile[0], mine);
    left(v, q_tile[1], mine);
    __syncthreads();
    fetch_queries(0);
    copies_end();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) fetch_queries(i + 1);
        copies_end();
        wait_copies<1>();
        __syncthreads();
        const int here = t - i * TILE < TILE ? t - i * TILE : TILE;
        for (int j = 0; works && j < here; j += GROUP) {
            float p[2][4], ds[2][4];
            times_rows(p, k, q_tile[i % 2], j);
            times_rows(ds, v, dout_tile[i % 2], j);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int query = j + h * 8 + lane % 4 * 2 + e % 2;
                    p[h][e] = exp2f(fmaf(p[h][e], scale, -numbers[i % 2][0][query]));
                    ds[h][e] = a.scale * p[h][e] * (ds[h][e] - numbers[i % 2][1][query]);
                }
            add_times(dv, p, dout_tile[i % 2], j);
            add_times(dk, ds, q_tile[i % 2], j);
        }
        __syncthreads();
    }
    if (!works) return;
    store<T, D>((T *)a.dk + at.q, a.q_rows.row, first + mine, t, dk, 1, 1);
    store<T, D>((T *)a.dv + at.q, a.q_rows.row, first + mine, t, dv, 1, 1);
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

/* Lets a kernel have as much shared memory as it needs; cheap to say again. */
template <typename K> static int allow(K kernel, size_t bytes)
{
    const int code = lsi_cuda_enter();

    return code != 0
               ? code
               : (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

template <typename A> static dim3 grid_of(const A *a)
{
    return dim3((unsigned)((a->t + TILE - 1) / TILE), (unsigned)(a->samples * a->heads));
}

template <typename T, int D> static int flash(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    const size_t bytes = 4 * sizeof(tile<T, D>);
    const int code = allow(flash_kernel<T, D>, bytes);

    if (code != 0) return code;
    LSI_LAUNCH(s, grid_of(a), THREADS, bytes, (flash_kernel<T, D>), *a);
    return 0;
}

template <typename T, int D> static int flash_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    const size_t bytes = 4 * sizeof(tile<T, D>), more = bytes + 4 * TILE * sizeof(float);
    int code = allow(flash_dq_kernel<T, D>, bytes);

    if (code == 0) code = allow(flash_dkv_kernel<T, D>, more);
    if (code != 0) return code;
    LSI_LAUNCH(s, grid_of(a), THREADS, bytes, (flash_dq_kernel<T, D>), *a);
    LSI_LAUNCH(s, grid_of(a), THREADS, more, (flash_dkv_kernel<T, D>), *a);
    return 0;
}

#define BY_WIDTH(function, T)                                                                                \
    switch (a->d) {                                                                                          \
    case 32: return function<T, 32>(s, a);                                                                   \
    case 64: return function<T, 64>(s, a);                                                                   \
    case 128: return function<T, 128>(s, a);                                                                 \
    default: return (int)cudaErrorNotSupported;                                                              \
    }

int lsi_cuda_flash(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    if (a->dtype == LS_BF16) BY_WIDTH(flash, __nv_bfloat16);
    if (a->dtype == LS_F16) BY_WIDTH(flash, __half);
    return (int)cudaErrorNotSupported;
}

int lsi_cuda_flash_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    if (a->dtype == LS_BF16) BY_WIDTH(flash_grad, __nv_bfloat16);
    if (a->dtype == LS_F16) BY_WIDTH(flash_grad, __half);
    return (int)cudaErrorNotSupported;
}
