/* library.h: problems that are given to cuBLASLt and cuDNN (module/product.c, module/conv.c).
 *
 * A library offers several ways to solve a problem; which is best is measured by the planner.  A problem and
 * its ways are one lsi_cuda_library (api.h). */
#ifndef LS_BACKEND_CUDA_LAUNCH_LIBRARY_H
#define LS_BACKEND_CUDA_LAUNCH_LIBRARY_H

#include "lockstep/tensor.h"

/* How numbers of 32 bits are multiplied: with all their bits, or rounded to 19 (tf32). */
typedef enum lsi_cuda_math { LSI_CUDA_EXACT, LSI_CUDA_TF32 } lsi_cuda_math;

/* What a product does with its result. */
typedef enum lsi_cuda_after {
    LSI_CUDA_NOTHING,
    LSI_CUDA_BIAS, /* adds one number per column */
    LSI_CUDA_RELU,
    LSI_CUDA_BIAS_RELU
} lsi_cuda_after;

/* c = op(a) op(b), row-major, for each of a batch.  Operands: a, b, c, the bias where there is one, and what
 * is added where something is: it lies like c. */
typedef struct lsi_cuda_product {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;                /* elements from row to row, as stored */
    int64_t stride_a, stride_b, stride_c; /* from matrix to matrix; 0: the same for all */
    bool trans_a, trans_b;
    ls_dtype dtype, out; /* of a, b and the bias; of c */
    lsi_cuda_math math;
    lsi_cuda_after epilogue;
    bool adds; /* with LSI_CUDA_BIAS: operand 4 */
} lsi_cuda_product;

typedef enum lsi_cuda_conv_pass { LSI_CUDA_CONV_Y, LSI_CUDA_CONV_DX, LSI_CUDA_CONV_DW } lsi_cuda_conv_pass;

/* One of the three: y from x and w, x from y and w, w from x and y.  Operands: x, w, y, and the bias, one
 * number of the same type per channel of y, where y has one added and, with LSI_CUDA_BIAS_RELU, what is
 * negative taken away. */
typedef struct lsi_cuda_conv {
    lsi_cuda_conv_pass pass;
    ls_dtype dtype;
    lsi_cuda_math math;
    int64_t x[4], x_stride[4]; /* N, C, H, W, in whatever order the strides say */
    int64_t w[4], w_stride[4]; /* O, C / groups, KH, KW */
    int64_t y[4], y_stride[4];
    int64_t stride[2], dilation[2], before[2], after[2]; /* paddings */
    lsi_cuda_after epilogue;                             /* LSI_CUDA_NOTHING, or for y one with a bias */
} lsi_cuda_conv;

#endif
