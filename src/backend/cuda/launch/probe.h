/* probe.h: what the kernels that check a library's convolution are called with (module/probe.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_PROBE_H
#define LS_BACKEND_CUDA_LAUNCH_PROBE_H

#include "backend/cuda/launch/library.h"

/* count numbers between -1 and 1 that look random, the same for the same key.  They have 8 bits, so that no
 * type rounds them, and products of two are exact in fp32. */
typedef struct lsi_cuda_noise_args {
    void *out;
    ls_dtype dtype;
    int64_t count;
    unsigned key;
} lsi_cuda_noise_args;

/* One element of a convolution's result. */
typedef struct lsi_cuda_probed {
    double found;     /* as the library left it */
    double sum;       /* as it should be, before it is rounded to its type */
    double magnitude; /* of all products together: what the library's own roundings are measured by */
} lsi_cuda_probed;

/* Looks at `samples` elements of the result, all over it and often at the edges of maps and filters, and adds
 * up what each should be. */
typedef struct lsi_cuda_probe_args {
    lsi_cuda_conv conv;
    const void *x, *w, *y, *bias; /* operands of the convolution; the result is among them */
    lsi_cuda_probed *out;
    int samples;
} lsi_cuda_probe_args;

#endif
