/* compiled.h: kernels that are compiled from generated sources, once, and kept on disk. */
#ifndef LS_BACKEND_CUDA_COMPILED_H
#define LS_BACKEND_CUDA_COMPILED_H

#include "backend/cuda/cuda.h"

enum { LSI_COMPILED_KERNELS = 2 }; /* of one source, at most */

/* Whether there is a run-time compiler; with LOCKSTEP_CUDA_COMPILE=off there is none.  The first answer that
 * there is none though it was wanted leaves a line in the log. */
bool lsi_cuda_can_compile(lsi_cuda_device *dev);

/* The kernels called names[0..n-1] of a source: from this process, from $LOCKSTEP_CACHE (or
 * ~/.cache/lockstep), or compiled now.  False where that cannot be had, with a line in the log.  `kind`
 * begins the name of the file that they are kept in. */
bool lsi_cuda_compiled(lsi_cuda_device *dev, const char *kind, const char *source, int n,
                       const char *const *names, void **kernels);

#endif
