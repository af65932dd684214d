/* region_launch.c: launches the two kernels that were compiled for a region. */
#include <cuda_runtime_api.h>

#include "backend/cuda/module/device.h"

/* More shared memory than any kernel gets unasked; and the second kernel, which needs almost none, wants it
 * as well: a processor that has to cut its memory anew stands still meanwhile. */
static cudaError_t allow(const lsi_cuda_region_args *a)
{
    const int most = cudaSharedmemCarveoutMaxShared;
    cudaError_t e =
        cudaFuncSetAttribute(a->first, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)a->shared);

    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(a->first, cudaFuncAttributePreferredSharedMemoryCarveout, most);
    if (e == cudaSuccess && a->second != NULL)
        e = cudaFuncSetAttribute(a->second, cudaFuncAttributePreferredSharedMemoryCarveout, most);
    return e;
}

static cudaError_t launch(void *kernel, int blocks, int threads, size_t shared, void **list,
                          lsi_cuda_stream s)
{
    const cudaError_t e = cudaLaunchKernel(kernel, (dim3){(unsigned)blocks, 1, 1},
                                           (dim3){(unsigned)threads, 1, 1}, list, shared, (cudaStream_t)s);

    if (e == cudaSuccess) lsi_cuda_note_kernel(s);
    return e;
}

int lsi_cuda_region(lsi_cuda_stream s, const lsi_cuda_region_args *a)
{
    lsi_cuda_region_pointers p = a->pointers;
    void *list[] = {&p};
    const int entered = lsi_cuda_enter();
    cudaError_t e = (cudaError_t)entered;

    if (e == cudaSuccess) e = allow(a);
    if (e == cudaSuccess) e = launch(a->first, a->blocks, a->threads, a->shared, list, s);
    if (e == cudaSuccess && a->second != NULL)
        e = launch(a->second, a->finish_blocks, a->finish_threads, 0, list, s);
    return (int)e;
}
