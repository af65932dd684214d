/* finite.h: whether gradients are finite, and what follows of it (module/finite.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_FINITE_H
#define LS_BACKEND_CUDA_LAUNCH_FINITE_H

#include "ops/ops.h"

/* One tensor of f32, bf16 or f16. */
typedef struct lsi_cuda_looked_at {
    const void *x;
    int64_t count;
    int32_t first; /* number of its first chunk: tensors lie behind one another in chunks */
    ls_dtype dtype;
} lsi_cuda_looked_at;

/* Elements that a block looks at. */
enum { LSI_FINITE_CHUNK = 16384 };

typedef struct lsi_cuda_all_finite_args {
    const lsi_cuda_looked_at *tensors; /* in host memory: they become arguments of the kernel */
    int n;
    int64_t chunks;   /* of all of them */
    int number;       /* of the first tensor, as the result counts them */
    unsigned *ticket; /* two, 0 between launches */
    float *out;
} lsi_cuda_all_finite_args;

/* out = a where left equals right, else b.  No right is 0, no b is zeros. */
typedef struct lsi_cuda_pick_args {
    const void *left, *right;
    ls_dtype left_type, right_type;
    const void *a, *b;
    void *out;
    int64_t bytes;
} lsi_cuda_pick_args;

enum { LSI_RESCALE_FOUND = 32 };

/* ops/rescale.c has the rule.  Variables change where they lie; those that there are none of are NULL. */
typedef struct lsi_cuda_rescale_args {
    ls_rescale_attr attr;
    const float *scale;
    float *next_scale;
    int32_t *skipped, *good;
    const float *found[LSI_RESCALE_FOUND];
    int n_found;
    float *report;
} lsi_cuda_rescale_args;

#endif
