/* flash.cuh: what kernels share whose scores stay in registers (flash.cu, flash_heads.cu, *_90a.cu): tensor
 * instructions of 16 x 8 x 16 and how their operands come from rows in shared memory. */
#ifndef LS_BACKEND_CUDA_MODULE_FLASH_CUH
#define LS_BACKEND_CUDA_MODULE_FLASH_CUH

#include "backend/cuda/launch/attention.h"
#include "backend/cuda/module/vector.cuh"

enum { GROUP = 16 };

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

/* Rows in shared memory: 16 bytes more than they need, so that eight of them are in different banks. */
#define PITCH(D) ((D) + 8)

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
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* All threads of a block begin to copy rows first..first+count-1 of n; those behind the end become 0. */
template <typename T, int D>
static __device__ __forceinline__ void fetch(T (*to)[PITCH(D)], const T *from, int64_t pitch, int first,
                                             int count, int n)
{
    constexpr int PIECE = 16 / (int)sizeof(T), PIECES = D / PIECE;

    for (int i = threadIdx.x; i < count * PIECES; i += (int)blockDim.x) {
        const int r = i / PIECES, c = i % PIECES * PIECE;
        const bool there = first + r < n;
        copy_16(&to[r][c], from + (there ? (first + r) * pitch + c : 0), there);
    }
}

/* The 16 x D elements of rows first.. as left operands, from a tile. */
template <typename T, int D>
static __device__ __forceinline__ void left(uint32_t (&a)[D / GROUP][4], T (*from)[PITCH(D)], int first)
{
    const int lane = threadIdx.x % LSI_WARP;

#pragma unroll
    for (int k = 0; k < D / GROUP; k++)
        matrices<false>(a[k], &from[first + lane % 16][k * GROUP + lane / 16 * 8]);
}

/* s (16 x 16) = a (16 x D) times the 16 rows first.. of the tile, turned. */
template <typename T, int D>
static __device__ __forceinline__ void times_rows(float (&s)[2][4], const uint32_t (&a)[D / GROUP][4],
                                                  T (*rows)[PITCH(D)], int first)
{
    const int lane = threadIdx.x % LSI_WARP;

#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[h][i] = 0;
#pragma unroll
    for (int k = 0; k < D / GROUP; k++) {
        uint32_t b[4]; /* rows 0-7 at columns 0-7 and 8-15 of this k, then rows 8-15 */
        matrices<false>(b, &rows[first + lane / 16 * 8 + lane % 8][k * GROUP + lane / 8 % 2 * 8]);
        multiply(s[0], a[k], b[0], b[1], (const T *)nullptr);
        multiply(s[1], a[k], b[2], b[3], (const T *)nullptr);
    }
}

/* sum (16 x D) += p (16 x 16, as sums of products are laid out) times the 16 rows first.. of the tile. */
template <typename T, int D>
static __device__ __forceinline__ void add_times(float (&sum)[D / 8][4], const float (&p)[2][4],
                                                 T (*rows)[PITCH(D)], int first)
{
    const int lane = threadIdx.x % LSI_WARP;
    const T *type = nullptr;
    const uint32_t a[4] = {pair(p[0][0], p[0][1], type), pair(p[0][2], p[0][3], type),
                           pair(p[1][0], p[1][1], type), pair(p[1][2], p[1][3], type)};

#pragma unroll
    for (int n = 0; n < D / GROUP; n++) {
        uint32_t b[4]; /* columns 0-7 of this n, rows 0-7 and 8-15; then columns 8-15 */
        matrices<true>(b, &rows[first + lane % 16][n * GROUP + lane / 16 * 8]);
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

static __device__ __forceinline__ float power_of_2(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
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

/* out . dout of the warp's 16 queries from `mine` on, and the sum of exponents as a power of 2; behind the
 * end no probability is left.  Eight lanes have a row, and all rows are under way at once. */
template <typename T, int D>
static __device__ __forceinline__ void query_numbers(const lsi_cuda_flash_grad_args &a, const place &at,
                                                     int t, int mine, float *lse, float *dots)
{
    constexpr int EACH = 8, LANES = D / EACH, AT_ONCE = LSI_WARP / LANES, STEPS = GROUP / AT_ONCE;
    const int lane = threadIdx.x % LSI_WARP;
    lsi_packed<EACH, T> out[STEPS], dout[STEPS];

#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int r = mine + i * AT_ONCE + lane / LANES;
        out[i].raw = dout[i].raw = {};
        if (r >= t) continue;
        out[i].fetch((const T *)a.out + at.out + r * a.out_rows.row + lane % LANES * EACH);
        dout[i].fetch((const T *)a.dout + at.out + r * a.out_rows.row + lane % LANES * EACH);
    }
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int r = mine + i * AT_ONCE + lane / LANES;
        float x[EACH], y[EACH], dot = 0;
        out[i].unpack(x);
        dout[i].unpack(y);
#pragma unroll
        for (int k = 0; k < EACH; k++) dot = fmaf(x[k], y[k], dot);
        dot = lsi_warp_sum<LANES>(dot);
        if (lane % LANES == 0) {
            dots[r] = dot;
            lse[r] = r < t ? a.lse[at.row + r] * LOG2_E : INFINITY;
        }
    }
}

/* Lets a kernel have as much shared memory as it needs; cheap to say again. */
static inline int lsi_flash_allow(const void *kernel, size_t bytes)
{
    const int code = lsi_cuda_enter();

    return code != 0
               ? code
               : (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

/* flash_heads.cu: whether it has kernels for heads of t rows of d elements; and those. */
bool lsi_flash_fits(int64_t t, int64_t d);
int lsi_flash_heads(lsi_cuda_stream s, const lsi_cuda_flash_args *a);
int lsi_flash_heads_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a);
/* flash_out_90a.cu and flash_grad_90a.cu: the same on devices that they are for. */
bool lsi_flash_90a_fits(int64_t t, int64_t d);
int lsi_flash_out_90a(lsi_cuda_stream s, const lsi_cuda_flash_args *a);
int lsi_flash_grad_90a(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a);

#endif
