/* cudnn.h: descriptors of cuDNN's graph interface, without its ceremony. */
#ifndef LS_BACKEND_CUDA_MODULE_CUDNN_H
#define LS_BACKEND_CUDA_MODULE_CUDNN_H

#include <cudnn.h>
#include <stdbool.h>

#include "backend/cuda/module/library.h"

typedef cudnnBackendDescriptor_t lsi_desc;

static inline int lsi_cudnn_code(cudnnStatus_t st)
{
    if (st == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        st == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        return LSI_CUDA_NO_MEMORY;
    return st == CUDNN_STATUS_SUCCESS ? 0 : LSI_CUDA_CUDNN + (int)st;
}

/* The process's handle, made when it is first asked for. */
int lsi_cudnn_handle(cudnnHandle_t *out);

/* A descriptor that is being made: the first error stays, and later calls do nothing. */
typedef struct lsi_making {
    lsi_desc d;
    int code;
} lsi_making;

lsi_making lsi_make(cudnnBackendDescriptorType_t type);
void lsi_set(lsi_making *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
             const void *values);
/* Ends it: *out is the descriptor, or NULL with the error. */
int lsi_made(lsi_making *m, lsi_desc *out);
void lsi_desc_free(lsi_desc *d); /* accepts one that is NULL, and makes it NULL */

/* A tensor of up to 8 dimensions. */
int lsi_tensor_make(lsi_desc *out, int64_t uid, ls_dtype t, int rank, const int64_t *dim,
                    const int64_t *stride);

/* One that is nowhere in memory: what one operation of a graph hands to the next. */
int lsi_passed_make(lsi_desc *out, int64_t uid, int rank, const int64_t *dim, const int64_t *stride);
/* y = x + b, element by element, or with b NULL y = x where it is positive, else 0. */
int lsi_pointwise_make(lsi_desc *out, lsi_desc x, lsi_desc b, lsi_desc y);

/* What ways must not do. */
typedef struct lsi_refused {
    bool note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
} lsi_refused;

/* -- an operation graph with its ways, as a library problem ------------------------------------------------
 */

enum { LSI_CUDNN_WAYS = 12, LSI_CUDNN_OPERANDS = 8 };

typedef struct lsi_cudnn_problem {
    lsi_cuda_library base;
    lsi_desc graph;
    lsi_desc config[LSI_CUDNN_WAYS], plan[LSI_CUDNN_WAYS];
    int n_operands; /* whose unique ids are 1, 2, ... */
    lsi_desc pack;  /* of the last run: what it was called with is below */
    void *operand[LSI_CUDNN_OPERANDS], *workspace;
} lsi_cudnn_problem;

/* Finds the ways of the `n` operations, which are freed in any case.  On failure *out is untouched. */
int lsi_cudnn_problem_make(lsi_cuda_library **out, lsi_desc *operations, int n, int n_operands,
                           const lsi_refused *refused);

#endif
