/* cudnn.c: making descriptors, finding the ways of an operation graph, running one. */
#include "backend/cuda/module/cudnn.h"

#include <stdlib.h>
#include <string.h>

int lsi_cudnn_handle(cudnnHandle_t *out)
{
    static cudnnHandle_t one;
    int code = 0;

    if (one == NULL) code = lsi_cudnn_code(cudnnCreate(&one));
    *out = one;
    return code;
}

/* -- descriptors ------------------------------------------------------------------------------------------
 */

lsi_making lsi_make(cudnnBackendDescriptorType_t type)
{
    lsi_making m = {0};

    m.code = lsi_cudnn_code(cudnnBackendCreateDescriptor(type, &m.d));
    return m;
}

void lsi_set(lsi_making *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
             const void *values)
{
    if (m->code == 0) m->code = lsi_cudnn_code(cudnnBackendSetAttribute(m->d, name, type, n, values));
}

int lsi_made(lsi_making *m, lsi_desc *out)
{
    if (m->code == 0) m->code = lsi_cudnn_code(cudnnBackendFinalize(m->d));
    if (m->code != 0) lsi_desc_free(&m->d);
    *out = m->d;
    return m->code;
}

void lsi_desc_free(lsi_desc *d)
{
    if (*d != NULL) cudnnBackendDestroyDescriptor(*d);
    *d = NULL;
}

static int make_tensor(lsi_desc *out, int64_t uid, cudnnDataType_t type, bool passed, int rank,
                       const int64_t *dim, const int64_t *stride)
{
    const int64_t aligned = 16;
    lsi_making m = lsi_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    lsi_set(&m, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    lsi_set(&m, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    lsi_set(&m, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &aligned);
    lsi_set(&m, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
    lsi_set(&m, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride);
    if (passed) lsi_set(&m, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &passed);
    return lsi_made(&m, out);
}

int lsi_tensor_make(lsi_desc *out, int64_t uid, ls_dtype t, int rank, const int64_t *dim,
                    const int64_t *stride)
{
    const cudnnDataType_t type = t == LS_BF16  ? CUDNN_DATA_BFLOAT16
                                 : t == LS_F16 ? CUDNN_DATA_HALF
                                               : CUDNN_DATA_FLOAT;

    return make_tensor(out, uid, type, false, rank, dim, stride);
}

int lsi_passed_make(lsi_desc *out, int64_t uid, int rank, const int64_t *dim, const int64_t *stride)
{
    return make_tensor(out, uid, CUDNN_DATA_FLOAT, true, rank, dim, stride);
}

int lsi_pointwise_make(lsi_desc *out, lsi_desc x, lsi_desc b, lsi_desc y)
{
    const cudnnPointwiseMode_t mode = b != NULL ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD;
    const cudnnDataType_t math = CUDNN_DATA_FLOAT;
    lsi_making m = lsi_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    lsi_desc function;
    int code;

    lsi_set(&m, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    lsi_set(&m, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
    code = lsi_made(&m, &function);
    if (code != 0) return code;
    m = lsi_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    lsi_set(&m, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &function);
    lsi_set(&m, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b != NULL) lsi_set(&m, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
    lsi_set(&m, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    code = lsi_made(&m, out);
    lsi_desc_free(&function);
    return code;
}

/* -- ways -------------------------------------------------------------------------------------------------
 */

/* The library may be newer than the header that this was built with, and have notes that this has no words
 * for: of such a way nobody knows whether its bits repeat. */
static bool is_noted(const lsi_refused *refused, cudnnBackendNumericalNote_t note)
{
    const long long at = note; /* enumerations may have no sign */

    return at < 0 || at >= CUDNN_NUMERICAL_NOTE_TYPE_COUNT || refused->note[at];
}

static bool is_refused(lsi_desc config, const lsi_refused *refused)
{
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    lsi_desc engine = NULL;
    int64_t n = 0;
    bool bad = true;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                 &engine) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note) == CUDNN_STATUS_SUCCESS) {
        bad = n > CUDNN_NUMERICAL_NOTE_TYPE_COUNT; /* it says how many it has, and gives no more than asked */
        for (int64_t i = 0; i < n && !bad; i++) bad = is_noted(refused, note[i]);
    }
    lsi_desc_free(&engine);
    return bad;
}

/* Adds what one kind of heuristics offers. */
static int add_ways(lsi_cudnn_problem *l, cudnnBackendHeurMode_t mode, const lsi_refused *refused)
{
    enum { ASKED = 24 };
    lsi_making m = lsi_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    lsi_desc heuristics, config[ASKED] = {NULL};
    int64_t n = 0;
    int code;

    lsi_set(&m, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->graph);
    lsi_set(&m, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    code = lsi_made(&m, &heuristics);
    for (int i = 0; i < ASKED && code == 0; i++)
        code = lsi_cudnn_code(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]));
    if (code == 0)
        code = lsi_cudnn_code(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, ASKED, &n, config));
    for (int i = 0; i < ASKED; i++) {
        const bool wanted =
            code == 0 && i < n && l->base.ways < LSI_CUDNN_WAYS && !is_refused(config[i], refused);
        if (wanted)
            l->config[l->base.ways++] = config[i];
        else
            lsi_desc_free(&config[i]);
    }
    lsi_desc_free(&heuristics);
    return code;
}

static int prepare(lsi_cuda_library *base, int way, size_t *workspace)
{
    lsi_cudnn_problem *l = (lsi_cudnn_problem *)base;
    int64_t bytes = 0, n = 0;
    cudnnHandle_t h;
    int code = lsi_cudnn_handle(&h);

    if (code == 0 && l->plan[way] == NULL) {
        lsi_making m = lsi_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        lsi_set(&m, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
        lsi_set(&m, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                &l->config[way]);
        code = lsi_made(&m, &l->plan[way]);
    }
    if (code == 0)
        code = lsi_cudnn_code(cudnnBackendGetAttribute(l->plan[way], CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                       CUDNN_TYPE_INT64, 1, &n, &bytes));
    *workspace = (size_t)bytes;
    return code;
}

/* What a run is called with is made once as long as it stays the same, which it does in a step. */
static int pack(lsi_cudnn_problem *l, void *const *operands, void *workspace)
{
    static const int64_t uid[LSI_CUDNN_OPERANDS] = {1, 2, 3, 4, 5, 6, 7, 8};
    lsi_making m;

    if (l->pack != NULL && l->workspace == workspace &&
        memcmp(l->operand, operands, sizeof *operands * (size_t)l->n_operands) == 0)
        return 0;
    lsi_desc_free(&l->pack);
    memcpy(l->operand, operands, sizeof *operands * (size_t)l->n_operands);
    l->workspace = workspace;
    m = lsi_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    lsi_set(&m, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, l->n_operands, operands);
    lsi_set(&m, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, l->n_operands, uid);
    lsi_set(&m, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    return lsi_made(&m, &l->pack);
}

static int run(lsi_cuda_library *base, int way, void *const *operands, void *workspace, lsi_cuda_stream s)
{
    lsi_cudnn_problem *l = (lsi_cudnn_problem *)base;
    cudnnHandle_t h;
    int code = lsi_cudnn_handle(&h);

    if (code == 0) code = pack(l, operands, workspace);
    if (code == 0) code = lsi_cudnn_code(cudnnSetStream(h, (cudaStream_t)s));
    return code == 0 ? lsi_cudnn_code(cudnnBackendExecute(h, l->plan[way], l->pack)) : code;
}

static void drop(lsi_cuda_library *base)
{
    lsi_cudnn_problem *l = (lsi_cudnn_problem *)base;

    lsi_desc_free(&l->pack);
    for (int i = 0; i < LSI_CUDNN_WAYS; i++) {
        lsi_desc_free(&l->plan[i]);
        lsi_desc_free(&l->config[i]);
    }
    lsi_desc_free(&l->graph);
    free(l);
}

static int make_graph(lsi_cudnn_problem *l, lsi_desc *operations, int n)
{
    lsi_making m = lsi_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnnHandle_t h;
    const int code = lsi_cudnn_handle(&h);

    if (m.code == 0) m.code = code;
    lsi_set(&m, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, operations);
    lsi_set(&m, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
    return lsi_made(&m, &l->graph);
}

int lsi_cudnn_problem_make(lsi_cuda_library **out, lsi_desc *operations, int n, int n_operands,
                           const lsi_refused *refused)
{
    lsi_cudnn_problem *l = calloc(1, sizeof *l);
    int code = l != NULL ? 0 : (int)cudaErrorMemoryAllocation;

    if (code == 0) {
        l->base = (lsi_cuda_library){0, prepare, run, drop};
        l->n_operands = n_operands;
        code = make_graph(l, operations, n);
    }
    for (int i = 0; i < n; i++) lsi_desc_free(&operations[i]);
    if (code == 0) (void)add_ways(l, CUDNN_HEUR_MODE_A, refused);
    if (code == 0 && l->base.ways < LSI_CUDNN_WAYS) code = add_ways(l, CUDNN_HEUR_MODE_FALLBACK, refused);
    if (l != NULL && l->base.ways > 0) code = 0;
    if (code == 0 && l->base.ways == 0) code = lsi_cudnn_code(CUDNN_STATUS_NOT_SUPPORTED);
    if (code == 0)
        *out = &l->base;
    else if (l != NULL)
        drop(&l->base);
    return code;
}
