/* gemm.h: matrix products of the CPU backend, and the implementations to choose from.
 *
 *   C = act([C +] op(A) op(B) + bias), row-major fp32, `batch` times.
 *
 * op(A) is (m, k), op(B) is (k, n), C is (m, n).  Several implementations can do a problem; a caller that
 * runs it often times the applicable ones when it plans and keeps the winner, others call lsi_gemm.  Running
 * allocates nothing of ours: scratch comes from the caller.  Results are the same bits in every run at one
 * thread count. */
#ifndef LS_BACKEND_CPU_GEMM_H
#define LS_BACKEND_CPU_GEMM_H

#include "backend/cpu/conv.h"

typedef struct lsi_gemm_problem {
    int64_t m, n, k;       /* any may be 0; k == 0 means a product of zero */
    int64_t lda, ldb, ldc; /* floats from row to row of A, B, C as stored */
    bool trans_a, trans_b; /* A is stored (k, m), B is stored (n, k) */
    int64_t batch;         /* at least 1 */
    int64_t stride_a, stride_b,
        stride_c;    /* floats from one matrix of the batch to the next; 0 shares A or B */
    bool accumulate; /* add to C instead of overwriting it */
    bool has_bias;   /* n entries, added to every row */
    lsi_conv_act act;
    float slope; /* of LSI_ACT_LEAKY */
    int threads;
} lsi_gemm_problem;

typedef struct lsi_gemm_impl {
    const char *name;
    bool (*applicable)(const lsi_gemm_problem *p);
    size_t (*scratch)(const lsi_gemm_problem *p); /* bytes; may be NULL for none */
    /* `bias` may be NULL without has_bias; `scratch` is aligned to 64 bytes.  What it returns when not LS_OK
     * is for the kernel to tell. */
    ls_status (*run)(const lsi_gemm_problem *p, const float *a, const float *b, float *c, const float *bias,
                     void *scratch);
} lsi_gemm_impl;

/* Best guess first, ended by NULL (gemm.c: the only list). */
extern const lsi_gemm_impl *const lsi_gemm_impls[];

/* The first applicable implementation, without timing. */
size_t lsi_gemm_scratch(const lsi_gemm_problem *p);
ls_status lsi_gemm(const lsi_gemm_problem *p, const float *a, const float *b, float *c, const float *bias,
                   void *scratch);

#endif
