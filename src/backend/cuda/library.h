/* library.h: nodes that a library computes: the choice among its ways, and the kernel. */
#ifndef LS_BACKEND_CUDA_LIBRARY_H
#define LS_BACKEND_CUDA_LIBRARY_H

#include "backend/cuda/kernel_util.h"

enum { LSI_CUDA_OPERANDS = 8 };

/* Where a problem's operands come from in a call: input i is i, output k is -1 - k. */
typedef struct lsi_cuda_library_node {
    const char *problem;       /* text that identifies it, for remembering */
    const char *impl;          /* for plans: "cublaslt" */
    lsi_cuda_library *library; /* taken over in any case */
    const lsi_cuda_conv *conv; /* what it is, if it is one: its ways are checked (probe.h).  The caller's */
    int n;                     /* operands */
    int from[LSI_CUDA_OPERANDS];
    size_t bytes[LSI_CUDA_OPERANDS]; /* of each, for trials */
    bool gathers;                    /* operand `gathered` is made of its input by `gather`, in scratch */
    int gathered;
    lsi_cuda_move_args gather;
    bool after; /* `epilogue` follows, on output 0 */
    int bias;   /* input that is its bias; -1: none */
    lsi_cuda_epilogue_args epilogue;
} lsi_cuda_library_node;

/* A node of ls_op_matmul as a product, without what follows it (matmul.c); false where it is none. */
bool lsi_cuda_product_of(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, lsi_cuda_product *p);

/* The way that is best, with what it needs in memory; -1 when none works.  A convolution's way was checked,
 * now or when it was remembered; without memory to check a guess it is taken, with a word in the log.  The
 * library stays the caller's. */
int lsi_cuda_library_way(const lsi_cuda_device *d, const lsi_cuda_library_node *node, size_t *workspace);

/* Chooses among the library's ways, by measurement unless kernels are fixed, and makes the kernel.
 * LS_UNSUPPORTED when none works. */
ls_status lsi_cuda_library_plan(ls_device *dev, const lsi_cuda_library_node *node, ls_kernel *out,
                                ls_err *err) LS_MUST_CHECK;

#endif
