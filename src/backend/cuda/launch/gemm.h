/* gemm.h: products of our own, with what follows them (module/gemm_90a.cu): bf16, compute capability 9.0. */
#ifndef LS_BACKEND_CUDA_LAUNCH_GEMM_H
#define LS_BACKEND_CUDA_LAUNCH_GEMM_H

#include <stdbool.h>

#include "lockstep/tensor.h"

/* What becomes of a product, which is rounded to bf16 where it is kept. */
typedef enum lsi_gemm_after {
    LSI_GEMM_BIAS,     /* c = product + bias */
    LSI_GEMM_ADD,      /* c = product + bias + more */
    LSI_GEMM_GELU,     /* c = product + bias, y = gelu(c) */
    LSI_GEMM_GELU_GRAD /* c = product * gelu'(more), sums = those of c's columns */
} lsi_gemm_after;

enum {
    LSI_GEMM_ROWS = 128,  /* of a tile */
    LSI_GEMM_MOST = 6144, /* columns */
    LSI_GEMM_WAYS = 4     /* of dividing the product: see module/gemm_90a.cu */
};

/* c (m x n) = op(a) op(b), row-major, without gaps between rows. */
typedef struct lsi_cuda_gemm_args {
    int64_t m, n, k;
    bool trans_a, trans_b;
    lsi_gemm_after after;
    int way;
    const void *a, *b;
    const void *bias; /* n numbers, or NULL */
    const void *more; /* as c */
    void *c, *y;
    float *partial; /* LSI_GEMM_PARTIAL(m) rows of n */
    void *sums;     /* n numbers of `sums_dtype` */
    ls_dtype sums_dtype;
} lsi_cuda_gemm_args;

#define LSI_GEMM_PARTIAL(m) (((m) + LSI_GEMM_ROWS - 1) / LSI_GEMM_ROWS)

/* Whether tiles can be copied, rows of 16 bytes, and indices counted; and whether there is a kernel for what
 * follows with these operands. */
static inline bool lsi_gemm_fits(const lsi_cuda_gemm_args *a)
{
    const bool forward = !a->trans_a && a->trans_b, back = !a->trans_a && !a->trans_b;

    if (a->after == LSI_GEMM_BIAS ? a->trans_a && a->trans_b
                                  : !(a->after == LSI_GEMM_GELU_GRAD ? back : forward))
        return false;
    return a->m > 0 && a->n > 0 && a->k > 0 && a->n % 8 == 0 && a->k % 8 == 0 &&
           (a->m % 8 == 0 || !a->trans_a) && a->n <= LSI_GEMM_MOST && a->m <= 1 << 28 && a->k <= 1 << 28;
}

#endif
