/* warpgroup.cuh: what kernels share that use the instructions of compute capability 9.0 alone (*_90a.cu):
 * products of four warps with operands in shared memory, barriers in shared memory that count arrivals and
 * bytes, and tiles that arrive by themselves.
 *
 * Addresses are those of shared memory, as the instructions take them.  Operands of products are rows of 128
 * bytes, 16 bytes of them at a place that the row's number is mixed into; so the same rows serve as either
 * operand, turned or not. */
#ifndef LS_BACKEND_CUDA_MODULE_WARPGROUP_CUH
#define LS_BACKEND_CUDA_MODULE_WARPGROUP_CUH

#include <stdint.h>

static __device__ __forceinline__ uint32_t lsi_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* -- products -----------------------------------------------------------------------------------------------
 */

/* A matrix of rows in shared memory, from `at` on, for the instructions: the next 8 rows are 1024 bytes on.
 * Where its rows are turned and longer than 64 elements, the next 64 are `across` bytes on. */
static __device__ __forceinline__ uint64_t matrix_at(uint32_t at, uint32_t across = 1024)
{
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(across >> 4) << 16 |
           (uint64_t)(at >> 4 & 0x3fff);
}

static __device__ __forceinline__ void products_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void products_go()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Waits until no more than the last PENDING groups of products are under way. */
template <int PENDING> static __device__ __forceinline__ void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
static __device__ __forceinline__ void products_end()
{
    products_wait<0>();
}
/* What was stored is there for products and copies of tiles, too. */
static __device__ __forceinline__ void stores_seen()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* -- barriers -----------------------------------------------------------------------------------------------
 *
 * A barrier goes on to its next phase when `count` have arrived and all bytes that were announced are there.
 * Who waits says of which phase: even ones are 0, odd ones 1.  The one before the first counts as over. */

static __device__ __forceinline__ void barrier_init(uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
/* Other blocks of the cluster, and copies, see what was initialised. */
static __device__ __forceinline__ void barriers_seen()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* At the barrier of block `rank` of the cluster. */
static __device__ __forceinline__ void barrier_arrive_at(uint32_t barrier, int rank)
{
    asm volatile("{.reg .b32 there;\n mapa.shared::cluster.u32 there, %0, %1;\n "
                 "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}
/* Arrives, and announces bytes that copies will bring. */
static __device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, int phase)
{
    asm volatile("{.reg .pred over;\nAGAIN:\n mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n "
                 "@over bra DONE;\n bra AGAIN;\nDONE:\n}" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
}

/* -- tiles --------------------------------------------------------------------------------------------------
 */

/* Begins to copy the box of the tensor that begins at element x of row y; `barrier` counts its bytes.  What
 * is outside of the tensor becomes 0. */
static __device__ __forceinline__ void fetch_tile(uint32_t to, const void *map, int x, int y,
                                                  uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
}
/* The same to the same place of every block of the cluster that `blocks` has a bit for, each with its own
 * barrier. */
static __device__ __forceinline__ void fetch_tile_for(uint16_t blocks, uint32_t to, const void *map, int x,
                                                      int y, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to),
                 "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y)
                 : "memory");
}

/* -- registers ----------------------------------------------------------------------------------------------
 */

template <int REGISTERS> static __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> static __device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

#endif
