/* region_launch.c: launches the two kernels that were compiled for a region. */
#include <cuda_runtime_api.h>

#include "backend/cuda/module/device.h"

enum { FINISH = 256 }; /* as source/region_finish.cuh has it */

/* More shared memory than any kernel gets unasked. */
static cudaError_t allow(void *kernel, size_t shared)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
}

int lsi_cuda_region(lsi_cuda_stream s, const lsi_cuda_region_args *a)
{
    lsi_cuda_region_pointers p = a->pointers;
    void *list[] = {&p};
    const int entered = lsi_cuda_enter();
    cudaError_t e = (cudaError_t)entered;

    if (e == cudaSuccess) e = allow(a->first, a->shared);
    if (e == cudaSuccess)
        e = cudaLaunchKernel(a->first, (dim3){(unsigned)a->blocks, 1, 1}, (dim3){(unsigned)a->threads, 1, 1},
                             list, a->shared, (cudaStream_t)s);
    if (e == cudaSuccess) lsi_cuda_note_kernel(s);
    if (e != cudaSuccess || a->second == NULL) return (int)e;
    e = cudaLaunchKernel(a->second, (dim3){(unsigned)a->finish_blocks, 1, 1}, (dim3){FINISH, 1, 1}, list, 0,
                         (cudaStream_t)s);
    if (e == cudaSuccess) lsi_cuda_note_kernel(s);
    return (int)e;
}
