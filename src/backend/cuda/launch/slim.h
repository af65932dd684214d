/* slim.h: products of 16-bit numbers with few rows, or sums over few (module/slim.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_SLIM_H
#define LS_BACKEND_CUDA_LAUNCH_SLIM_H

#include <stdbool.h>

#include "lockstep/tensor.h"

/* c = act(op(a) op(b) + bias + more), row-major; not both operands are transposed.  With trans_a, sums over k
 * are short; else rows are few: c is made by blocks of 16 columns and up to 64 rows. */
typedef struct lsi_cuda_slim_args {
    const void *a, *b;
    const void *bias, *more; /* NULL: none; a number per column, and one per element of c */
    void *c;
    int64_t m, n, k;
    bool trans_a, trans_b;
    ls_dtype dtype, out; /* of a, b and the bias: bf16 or f16; of c and `more`: the same or f32 */
    int act;             /* an ls_act */
    float slope;
} lsi_cuda_slim_args;

#endif
