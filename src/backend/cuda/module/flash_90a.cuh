/* flash_90a.cuh: what kernels of attention share that are made of compute capability 9.0's instructions: four
 * warps (a warpgroup) multiply 64 rows at a time, the right operand comes from shared memory as it lies, and
 * products go on while warps compute.
 *
 * Rows in shared memory are heads' rows of 64 elements, 128 bytes; 16 bytes of a row are at a place that the
 * row's number is mixed into, as the instructions want it: so the same rows serve as either operand, turned
 * or not. */
#ifndef LS_BACKEND_CUDA_MODULE_FLASH_90A_CUH
#define LS_BACKEND_CUDA_MODULE_FLASH_90A_CUH

#include "backend/cuda/module/flash.cuh"

constexpr int D = 64;

enum {
    ROW = 128,  /* bytes */
    TILE = 64,  /* rows of a product */
    FOUR = 128, /* threads of four warps */
    ALIGNED = 1024
};

/* -- products -----------------------------------------------------------------------------------------------
 */

/* The matrix whose rows begin at `at` in shared memory, for the instructions: the next 8 rows are 1024 bytes
 * on. */
static __device__ __forceinline__ uint64_t matrix_at(const void *at)
{
    const uint32_t byte = (uint32_t)__cvta_generic_to_shared(at);

    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(1024 >> 4) << 16 |
           (uint64_t)(byte >> 4);
}
/* The one that begins some rows, and some bytes within a row, behind it. */
static __device__ __forceinline__ uint64_t behind(uint64_t matrix, int rows, int bytes)
{
    return matrix + (uint64_t)((rows * ROW + bytes) >> 4);
}

static __device__ __forceinline__ void products_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void products_go()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void products_end()
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
/* What was stored is there for products, too. */
static __device__ __forceinline__ void stores_seen()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define REGISTERS_8  "%0,%1,%2,%3,%4,%5,%6,%7"
#define REGISTERS_16 REGISTERS_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define REGISTERS_32 REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define SUMS_8(c)                                                                                            \
    "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
#define SUMS_16(c)                                                                                           \
    SUMS_8(c), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]),      \
        "+f"(c[15])
#define SUMS_32(c)                                                                                           \
    SUMS_16(c), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]),   \
        "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),           \
        "+f"(c[30]), "+f"(c[31])

#define PRODUCT(n, type) "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type

/* c (64 x n) = or, with `more`, += 64 rows of a times n rows of b, turned, of 16 elements each. */
#define ROWS_BY_ROWS(T, type, n, half, a_is, b_is, more_is)                                                  \
    static __device__ __forceinline__ void rows_by_rows(float(&c)[half], uint64_t a, uint64_t b, int more,   \
                                                        const T *)                                           \
    {                                                                                                        \
        asm volatile("{.reg .pred p;\n setp.ne.b32 p, " more_is                                              \
                     ", 0;\n " PRODUCT(n, type) " {" REGISTERS_##half "}, " a_is ", " b_is                   \
                                                                      ", p, 1, 1, 0, 0;}"                    \
                     : SUMS_##half(c)                                                                        \
                     : "l"(a), "l"(b), "r"(more));                                                           \
    }

/* The same with the 64 rows in registers, as sums of products are laid out; where b is turned (1), its 16
 * rows of n elements are multiplied. */
#define REGISTERS_BY(name, turned, T, type, n, half, a0, a1, a2, a3, b_is, more_is)                          \
    static __device__ __forceinline__ void name(float(&c)[half], const uint32_t(&a)[4], uint64_t b,          \
                                                int more, const T *)                                         \
    {                                                                                                        \
        asm volatile("{.reg .pred p;\n setp.ne.b32 p, " more_is                                              \
                     ", 0;\n " PRODUCT(n, type) " {" REGISTERS_##half "}, {" a0 "," a1 "," a2 "," a3         \
                                                                      "}, " b_is ", p, 1, 1, " turned ";}"   \
                     : SUMS_##half(c)                                                                        \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));                       \
    }

#define PRODUCTS(T, type)                                                                                    \
    ROWS_BY_ROWS(T, type, 16, 8, "%8", "%9", "%10")                                                          \
    ROWS_BY_ROWS(T, type, 32, 16, "%16", "%17", "%18")                                                       \
    ROWS_BY_ROWS(T, type, 64, 32, "%32", "%33", "%34")                                                       \
    REGISTERS_BY(registers_by_rows, "0", T, type, 16, 8, "%8", "%9", "%10", "%11", "%12", "%13")             \
    REGISTERS_BY(registers_by_rows, "0", T, type, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37")          \
    REGISTERS_BY(registers_by_columns, "1", T, type, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37")

PRODUCTS(__nv_bfloat16, "bf16")
PRODUCTS(__half, "f16")

/* N of the numbers of an array, from the one at `first` on, as an array. */
template <int N, int ALL> static __device__ __forceinline__ float (&part(float (&x)[ALL], int first))[N]
{
    return *(float(*)[N])(x + first);
}

/* -- rows ---------------------------------------------------------------------------------------------------
 */

/* Where shared memory begins for rows: the instructions mix bits of addresses. */
static __device__ __forceinline__ void *aligned(unsigned char *shared)
{
    return shared + (ALIGNED - (uint32_t)__cvta_generic_to_shared(shared) % ALIGNED) % ALIGNED;
}

static __device__ __forceinline__ int mixed(int row, int byte)
{
    return row * ROW + (byte ^ (row & 7) << 4);
}

/* Thread `me` of `all` begins to copy its 16 bytes of rows 0..count-1, which are the tensor's from row
 * `first` on; those behind its n rows become 0. */
template <typename T>
static __device__ __forceinline__ void fetch_rows(unsigned char *to, const T *from, int64_t pitch, int first,
                                                  int count, int n, int me, int all)
{
#pragma unroll 4
    for (int i = me; i < count * 8; i += all) {
        const int r = i / 8, c = i % 8;
        const bool there = first + r < n;
        copy_16(to + mixed(r, c * 16), from + (there ? (first + r) * pitch + c * 8 : 0), there);
    }
}

/* Four lanes have four numbers each; then each has the first, second, third or last of all. */
static __device__ __forceinline__ void turn(uint32_t (&r)[4])
{
    const bool odd = threadIdx.x % 2 != 0, high = threadIdx.x % 4 / 2 != 0;
    uint32_t x = __shfl_xor_sync(LSI_FULL, odd ? r[0] : r[1], 1),
             y = __shfl_xor_sync(LSI_FULL, odd ? r[2] : r[3], 1);

    r[0] = odd ? x : r[0];
    r[1] = odd ? r[1] : x;
    r[2] = odd ? y : r[2];
    r[3] = odd ? r[3] : y;
    x = __shfl_xor_sync(LSI_FULL, high ? r[0] : r[2], 2);
    y = __shfl_xor_sync(LSI_FULL, high ? r[1] : r[3], 2);
    r[0] = high ? x : r[0];
    r[1] = high ? y : r[1];
    r[2] = high ? r[2] : x;
    r[3] = high ? r[3] : y;
}

/* Writes a warp's 16 x 64 sums, times a factor for rows row and row + 8, to rows first.. of n, 16 bytes at a
 * time. */
template <typename T>
static __device__ __forceinline__ void store_sums(T *to, int64_t pitch, int first, int n,
                                                  const float (&x)[D / 2], float factor, float factor_8)
{
    const int lane = threadIdx.x % LSI_WARP;

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + lane / 4 + 8 * half;
        const float f = half == 0 ? factor : factor_8;
#pragma unroll
        for (int h = 0; h < D / 32; h++) {
            uint32_t r[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int e = (h * 4 + i) * 4 + half * 2;
                r[i] = pair(x[e] * f, x[e + 1] * f, (const T *)nullptr);
            }
            turn(r);
            if (row < n)
                *(uint4 *)(to + row * pitch + h * 32 + lane % 4 * 8) = make_uint4(r[0], r[1], r[2], r[3]);
        }
    }
}

#endif
