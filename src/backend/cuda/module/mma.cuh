/* mma.cuh: the matrix units by warp, and copies to shared memory that run by
 * themselves. */
#ifndef LS_BACKEND_CUDA_MODULE_MMA_CUH
#define LS_BACKEND_CUDA_MODULE_MMA_CUH

#include <stdint.h>

/* d += a * b for bf16 tiles of 16 x 16 and 16 x 8.  Of d, lane 4 g + t has
 * columns 2 t and 2 t + 1 of rows g (d[0], d[1]) and g + 8 (d[2], d[3]); of a,
 * pairs along k: rows g and g + 8 at 2 t, then both at 2 t + 8; of b, pairs
 * along k in column g at 2 t and at 2 t + 8. */
static __device__ __forceinline__ void lsi_mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t lsi_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8
 * of matrix l / 8. */
static __device__ __forceinline__ void lsi_ldmatrix(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
static __device__ __forceinline__ void lsi_ldmatrix_trans(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* 16 bytes from memory, or zeros. */
static __device__ __forceinline__ void lsi_copy16(uint32_t to, const void *from, bool ok)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(ok ? 16 : 0)
                 : "memory");
}
static __device__ __forceinline__ void lsi_copy4(uint32_t to, const void *from, bool ok)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(ok ? 4 : 0)
                 : "memory");
}
static __device__ __forceinline__ void lsi_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Until no more than n groups are under way. */
template <int n> static __device__ __forceinline__ void lsi_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

#endif
