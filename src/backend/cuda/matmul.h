/* matmul.h: products of matrices, whoever computes them. */
#ifndef LS_BACKEND_CUDA_MATMUL_H
#define LS_BACKEND_CUDA_MATMUL_H

#include "backend/cuda/cuda.h"

/* The product of inputs 0 and 1 of a matmul, or of a node that has its attributes and a product of them for
 * output 0; without what follows it.  False: there is no kernel for it. */
bool lsi_cuda_describe_product(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n,
                               lsi_cuda_product *p);
/* The library's kernel for such a product, of the first n_in inputs: operands, bias, what is added. */
ls_status lsi_cuda_plan_product(ls_device *dev, const ls_graph *g, const ls_node *n, int n_in, ls_kernel *out,
                                ls_err *err) LS_MUST_CHECK;

#endif
