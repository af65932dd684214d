/* chain_launch.c: launches the kernel that was compiled for a chain of element-wise functions. */
#include <cuda_runtime_api.h>

#include "backend/cuda/module/device.h"

enum { THREADS = 256, MOST_BLOCKS = 132 * 16 };

/* As source/chain.cuh has it. */
typedef struct arguments {
    const void *in[LS_PW_MAX_INPUTS];
    void *out;
    unsigned count;
    unsigned dim[LS_MAX_RANK], stride[LS_PW_MAX_INPUTS][LS_MAX_RANK];
} arguments;

int lsi_cuda_launch_chain(lsi_cuda_stream s, const lsi_cuda_chain_args *a)
{
    const int64_t each = (int64_t)THREADS * a->vector, blocks = (a->count + each - 1) / each;
    int code = lsi_cuda_enter();
    arguments args = {.out = a->out, .count = (unsigned)a->count};
    void *list[] = {&args};

    if (code != 0) return code;
    for (int d = 0; d < a->rank; d++) args.dim[d] = (unsigned)a->dim[d];
    for (int i = 0; i < a->n_in; i++) {
        args.in[i] = a->in[i];
        for (int d = 0; d < a->rank; d++) args.stride[i][d] = (unsigned)a->stride[i][d];
    }
    code = (int)cudaLaunchKernel(a->compiled,
                                 (dim3){(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1},
                                 (dim3){THREADS, 1, 1}, list, 0, (cudaStream_t)s);
    if (code == 0) lsi_cuda_note_kernel(s);
    return code;
}
