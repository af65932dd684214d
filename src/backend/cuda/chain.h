/* chain.h: kernels that are generated for chains of element-wise functions, compiled once and kept on disk.
 */
#ifndef LS_BACKEND_CUDA_CHAIN_H
#define LS_BACKEND_CUDA_CHAIN_H

#include "backend/cuda/cuda.h"

/* The kernel for a chain whose type, inputs and width are set: from this process, from $LOCKSTEP_CACHE (or
 * ~/.cache/lockstep), or compiled now.  NULL where that cannot be had, with a line in the log: the chain is
 * then interpreted.  LOCKSTEP_CUDA_COMPILE=off asks for that. */
void *lsi_cuda_chain_kernel(lsi_cuda_device *dev, const lsi_cuda_chain_args *a);

#endif
