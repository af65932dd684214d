/* product.c: products of matrices through cuBLASLt.
 *
 * cuBLASLt counts columns first: c = a b, row by row, is the product of b and a there, each read column by
 * column, and a bias per column of ours is one per row of its. */
#include <cublasLt.h>
#include <stdlib.h>

#include "backend/cuda/module/library.h"

enum { MAX_WAYS = 16, ALIGNED = 16 };
#define WORKSPACE ((size_t)32 << 20)

typedef struct product {
    lsi_cuda_library base;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t first, second, result;
    cublasLtMatmulHeuristicResult_t way[MAX_WAYS];
    bool biased, adds;
} product;

static int code_of(cublasStatus_t st)
{
    if (st == CUBLAS_STATUS_ALLOC_FAILED) return LSI_CUDA_NO_MEMORY;
    return st == CUBLAS_STATUS_SUCCESS ? 0 : LSI_CUDA_CUBLAS + (int)st;
}

/* The process's one; a handle of cuBLASLt has no stream and is safe to share. */
static int handle(cublasLtHandle_t *out)
{
    static cublasLtHandle_t one;
    int code = 0;

    if (one == NULL) code = code_of(cublasLtCreate(&one));
    *out = one;
    return code;
}

static cudaDataType_t type_of(ls_dtype t)
{
    return t == LS_BF16 ? CUDA_R_16BF : t == LS_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static int set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    return code_of(cublasLtMatmulDescSetAttribute(d, what, value, bytes));
}

static int describe(product *l, const lsi_cuda_product *p)
{
    const cublasComputeType_t math =
        p->dtype == LS_F32 && p->math == LSI_CUDA_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t first = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = p->epilogue == LSI_CUDA_BIAS        ? CUBLASLT_EPILOGUE_BIAS
                                        : p->epilogue == LSI_CUDA_RELU      ? CUBLASLT_EPILOGUE_RELU
                                        : p->epilogue == LSI_CUDA_BIAS_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                                            : CUBLASLT_EPILOGUE_DEFAULT;
    const int32_t bias = (int32_t)type_of(p->dtype);
    int code = code_of(cublasLtMatmulDescCreate(&l->how, math, CUDA_R_32F));

    if (code == 0) code = set(l->how, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (code == 0) code = set(l->how, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (code == 0) code = set(l->how, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (code == 0 && l->biased) code = set(l->how, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias);
    return code;
}

static int layout(cublasLtMatrixLayout_t *out, ls_dtype t, int64_t rows, int64_t columns, int64_t leading,
                  int64_t batch, int64_t stride)
{
    const int32_t count = (int32_t)batch;
    int code =
        code_of(cublasLtMatrixLayoutCreate(out, type_of(t), (uint64_t)rows, (uint64_t)columns, leading));

    if (code == 0 && batch > 1)
        code = code_of(
            cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    if (code == 0 && batch > 1)
        code = code_of(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                        &stride, sizeof stride));
    return code;
}

static int layouts(product *l, const lsi_cuda_product *p)
{
    int code = layout(&l->first, p->dtype, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k, p->ldb,
                      p->batch, p->stride_b);

    if (code == 0)
        code = layout(&l->second, p->dtype, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m, p->lda,
                      p->batch, p->stride_a);
    if (code == 0) code = layout(&l->result, p->out, p->n, p->m, p->ldc, p->batch, p->stride_c);
    return code;
}

/* Ways that add up in an order that is fixed: sums of parts are reduced in the workspace, never by atomics.
 */
static int find_ways(product *l)
{
    const uint32_t aligned = ALIGNED, reductions = CUBLASLT_REDUCTION_SCHEME_MASK & ~1u;
    const size_t workspace = WORKSPACE;
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtHandle_t h;
    int found = 0, code = handle(&h);

    if (code == 0) code = code_of(cublasLtMatmulPreferenceCreate(&wish));
#define WISH(what, value)                                                                                    \
    if (code == 0)                                                                                           \
    code = code_of(                                                                                          \
        cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_##what, &(value), sizeof(value)))
    WISH(MAX_WORKSPACE_BYTES, workspace);
    WISH(REDUCTION_SCHEME_MASK, reductions);
    WISH(MIN_ALIGNMENT_A_BYTES, aligned);
    WISH(MIN_ALIGNMENT_B_BYTES, aligned);
    WISH(MIN_ALIGNMENT_C_BYTES, aligned);
    WISH(MIN_ALIGNMENT_D_BYTES, aligned);
#undef WISH
    if (code == 0)
        code = code_of(cublasLtMatmulAlgoGetHeuristic(h, l->how, l->first, l->second, l->result, l->result,
                                                      wish, MAX_WAYS, l->way, &found));
    if (wish != NULL) cublasLtMatmulPreferenceDestroy(wish);
    for (int i = 0; i < found; i++)
        if (l->way[i].state == CUBLAS_STATUS_SUCCESS) l->way[l->base.ways++] = l->way[i];
    return code == 0 && l->base.ways == 0 ? code_of(CUBLAS_STATUS_NOT_SUPPORTED) : code;
}

static int prepare(lsi_cuda_library *base, int way, size_t *workspace)
{
    product *l = (product *)base;
    cublasLtMatmulHeuristicResult_t checked;
    cublasLtHandle_t h;
    int code = handle(&h);

    if (code == 0)
        code = code_of(cublasLtMatmulAlgoCheck(h, l->how, l->first, l->second, l->result, l->result,
                                               &l->way[way].algo, &checked));
    *workspace = l->way[way].workspaceSize;
    return code;
}

static int run(lsi_cuda_library *base, int way, void *const *operands, void *workspace, lsi_cuda_stream s)
{
    product *l = (product *)base;
    const float one = 1, zero = 0;
    const void *more = l->adds ? operands[4] : operands[2];
    cublasLtHandle_t h;
    int code = handle(&h);

    if (code == 0 && l->biased)
        code = set(l->how, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands[3], sizeof operands[3]);
    if (code != 0) return code;
    return code_of(cublasLtMatmul(h, l->how, &one, operands[1], l->first, operands[0], l->second,
                                  l->adds ? &one : &zero, more, l->result, operands[2], l->result,
                                  &l->way[way].algo, workspace, l->way[way].workspaceSize, (cudaStream_t)s));
}

static void drop(lsi_cuda_library *base)
{
    product *l = (product *)base;

    if (l->result != NULL) cublasLtMatrixLayoutDestroy(l->result);
    if (l->second != NULL) cublasLtMatrixLayoutDestroy(l->second);
    if (l->first != NULL) cublasLtMatrixLayoutDestroy(l->first);
    if (l->how != NULL) cublasLtMatmulDescDestroy(l->how);
    free(l);
}

int lsi_cuda_product_make(lsi_cuda_library **out, const lsi_cuda_product *p)
{
    product *l = calloc(1, sizeof *l);
    int code;

    if (l == NULL) return (int)cudaErrorMemoryAllocation;
    l->base = (lsi_cuda_library){0, prepare, run, drop};
    l->biased = p->epilogue == LSI_CUDA_BIAS || p->epilogue == LSI_CUDA_BIAS_RELU;
    l->adds = p->adds;
    code = describe(l, p);
    if (code == 0) code = layouts(l, p);
    if (code == 0) code = find_ways(l);
    if (code != 0)
        drop(&l->base);
    else
        *out = &l->base;
    return code;
}
