/* probe.h: whether a library's convolution is right.
 *
 * cuDNN has kernels that compute something else than a convolution when maps are padded by more on one side
 * than on the other (seen with 9.14, fp32, gradients of weights), without a word.  So no way of a library is
 * taken before it has been compared with sums of our own, but where there is no memory for that. */
#ifndef LS_BACKEND_CUDA_PROBE_H
#define LS_BACKEND_CUDA_PROBE_H

#include "backend/cuda/cuda.h"

typedef enum lsi_cuda_verdict {
    LSI_CUDA_UNKNOWN, /* nobody has looked, or there was no memory to */
    LSI_CUDA_RIGHT,
    LSI_CUDA_WRONG, /* or it fails */
} lsi_cuda_verdict;

/* Operands have been filled by launch.noise, and the convolution has run in d->now.  `problem` names it for
 * the log. */
lsi_cuda_verdict lsi_cuda_probe_conv(const lsi_cuda_device *d, const lsi_cuda_conv *c, void *const *operand,
                                     const char *problem, int way);

/* Which of the operands x, w, y it makes. */
int lsi_cuda_conv_result(const lsi_cuda_conv *c);

#endif
