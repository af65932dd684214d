/* chain_source.h: the source of the kernel of a chain of element-wise functions. */
#ifndef LS_BACKEND_CUDA_CHAIN_SOURCE_H
#define LS_BACKEND_CUDA_CHAIN_SOURCE_H

#include "backend/cuda/launch/pointwise.h"
#include "base/text.h"

/* The chain alone, as a function of an array of its inputs: `static float NAME(const float *x)`. */
void lsi_cuda_chain_function(ls_text *out, const char *name, int n_in, const ls_pointwise_attr *c);

/* Appends it.  It depends on what the chain does, its type, how inputs are read and the vector's width, but
 * not on sizes: layers of all sizes share a kernel. */
void lsi_cuda_chain_source(ls_text *out, const lsi_cuda_chain_args *a);

#endif
