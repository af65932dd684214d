/* gemm.h: matrix products of the CPU backend, and the implementations to choose from.
 *
 *   C = act([C +] op(A) op(B) + bias), row-major, `batch` times; all of it fp32, or some of it bf16: then f32
 *   operands are rounded to bf16 where that is faster, and sums are fp32.
 *
 * op(A) is (m, k), op(B) is (k, n), C is (m, n).  Several implementations can do a problem; a caller that
 * runs it often times the applicable ones when it plans and keeps the winner, others call lsi_gemm.  Running
 * allocates nothing of ours: scratch comes from the caller.  Results are the same bits in every run at one
 * thread count. */
#ifndef LS_BACKEND_CPU_GEMM_H
#define LS_BACKEND_CPU_GEMM_H

#include "backend/cpu/conv.h"
#include "lockstep/tensor.h"

typedef struct lsi_gemm_problem {
    int64_t m, n, k;       /* any may be 0; k == 0 means a product of zero */
    int64_t lda, ldb, ldc; /* elements from row to row of A, B, C as stored */
    bool trans_a, trans_b; /* A is stored (k, m), B is stored (n, k) */
    int64_t batch;         /* at least 1 */
    int64_t stride_a, stride_b,
        stride_c;    /* elements from one matrix of the batch to the next; 0 shares A or B */
    bool accumulate; /* add to C instead of overwriting it */
    bool has_bias;   /* n entries, added to every row */
    lsi_conv_act act;
    float slope; /* of LSI_ACT_LEAKY */
    int threads;
    ls_dtype a_type, b_type, c_type, bias_type; /* LS_F32 (which is 0) or LS_BF16 */
} lsi_gemm_problem;

/* Whether all of it is fp32. */
static inline bool lsi_gemm_is_f32(const lsi_gemm_problem *p)
{
    return p->a_type == LS_F32 && p->b_type == LS_F32 && p->c_type == LS_F32 && p->bias_type == LS_F32;
}

typedef struct lsi_gemm_impl {
    const char *name;
    bool (*applicable)(const lsi_gemm_problem *p);
    size_t (*scratch)(const lsi_gemm_problem *p); /* bytes; may be NULL for none */
    /* `bias` may be NULL without has_bias; `scratch` is aligned to 64 bytes.  What it returns when not LS_OK
     * is for the kernel to tell. */
    ls_status (*run)(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                     void *scratch);
} lsi_gemm_impl;

/* Best guess first, ended by NULL (gemm.c: the only list). */
extern const lsi_gemm_impl *const lsi_gemm_impls[];

/* The first applicable implementation, without timing. */
size_t lsi_gemm_scratch(const lsi_gemm_problem *p);
ls_status lsi_gemm(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                   void *scratch);

#endif
