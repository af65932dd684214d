/* chamfer.h: what the kernels over clouds of points are called with (module/chamfer.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_CHAMFER_H
#define LS_BACKEND_CUDA_LAUNCH_CHAMFER_H

#include "lockstep/tensor.h"

/* Clouds p (batch, 3, np) and q (batch, 3, nq): the sum of squared distances to the nearest point, both ways,
 * and which point that is. */
typedef struct lsi_cuda_chamfer_args {
    ls_dtype dtype;
    int64_t batch, np, nq;
    const void *p, *q;
    float *sum;
    int32_t *index_p, *index_q;
    float *partial;   /* scratch: lsi_chamfer_blocks floats */
    unsigned *ticket; /* one, 0 between launches */
} lsi_cuda_chamfer_args;

/* Points of one cloud that a block has. */
enum { LSI_CHAMFER_POINTS = 512 };

static inline int64_t lsi_chamfer_blocks(int64_t batch, int64_t np, int64_t nq)
{
    return batch * ((np + LSI_CHAMFER_POINTS - 1) / LSI_CHAMFER_POINTS +
                    (nq + LSI_CHAMFER_POINTS - 1) / LSI_CHAMFER_POINTS);
}

typedef struct lsi_cuda_chamfer_grad_args {
    ls_dtype dtype;
    int64_t batch, np, nq;
    const float *dloss;
    const void *p, *q;
    const int32_t *index_p, *index_q;
    void *dp;
} lsi_cuda_chamfer_grad_args;

#endif
