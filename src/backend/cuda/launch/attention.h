/* attention.h: what lies between the products of attention (module/attention.cu).  Scores are rows of `t`
 * numbers that begin every `pitch`. */
#ifndef LS_BACKEND_CUDA_LAUNCH_ATTENTION_H
#define LS_BACKEND_CUDA_LAUNCH_ATTENTION_H

#include <stdbool.h>

#include "lockstep/tensor.h"

/* p = softmax(scale * scores) along each row, and the log-sum-exp of the row; the rest of a row of p is 0. */
typedef struct lsi_cuda_attend_args {
    const float *scores;
    void *p; /* may be the scores, where dtype is f32 */
    float *lse;
    ls_dtype dtype; /* of p */
    int64_t rows, t, pitch;
    float scale;
} lsi_cuda_attend_args;

/* From scores and dp = dout v^T: p = exp(scale * scores - lse) and ds = scale * p * (dp - dout . out). */
typedef struct lsi_cuda_attend_grad_args {
    const float *scores, *dp, *lse;
    void *p, *ds;           /* may be scores and dp, where dtype is f32 */
    const void *out, *dout; /* rows of d elements */
    ls_dtype dtype;
    int64_t rows, t, pitch, d;
    float scale;
} lsi_cuda_attend_grad_args;

/* -- without scores in memory (module/flash.cu): bf16 and f16, heads as wide as lsi_flash_width says
 * -----------
 */

/* Where the rows of one operand lie, in elements: row t of head h of sample n begins at n * sample + h * head
 * + t * row. */
typedef struct lsi_cuda_rows {
    int64_t sample, head, row;
} lsi_cuda_rows;

/* Heads as wide as this have a kernel. */
static inline bool lsi_flash_width(int64_t d)
{
    return d == 32 || d == 64 || d == 128;
}

/* Which kernels: 0 takes the fastest that fit (docs/decisions/0039); the others are for measuring, and one
 * that does not fit is an error. */
typedef enum lsi_flash_way {
    LSI_FLASH_BEST,
    LSI_FLASH_TILES, /* module/flash.cu */
    LSI_FLASH_HEADS, /* module/flash_heads.cu */
    LSI_FLASH_90A,   /* module/flash_out_90a.cu, flash_grad_90a.cu */
    LSI_FLASH_WAYS
} lsi_flash_way;

typedef struct lsi_cuda_flash_args {
    ls_dtype dtype;
    lsi_flash_way way;
    int64_t samples, heads, t, d;
    float scale;
    lsi_cuda_rows q_rows, out_rows; /* of q, k and v; of out */
    const void *q, *k, *v;
    void *out;
    float *lse; /* (samples, heads, t) */
} lsi_cuda_flash_args;

typedef struct lsi_cuda_flash_grad_args {
    ls_dtype dtype;
    lsi_flash_way way;
    int64_t samples, heads, t, d;
    float scale;
    lsi_cuda_rows q_rows, out_rows; /* of q, k, v, dq, dk and dv; of out and dout */
    const void *q, *k, *v, *out, *dout;
    const float *lse;
    void *dq, *dk, *dv;
    float *dots; /* scratch, like lse: out . dout of each row */
} lsi_cuda_flash_grad_args;

#endif
