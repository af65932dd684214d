/* launchers.h: the only list of the module's kernels.
 *
 * X(name) stands for `int lsi_cuda_name(lsi_cuda_stream s, const lsi_cuda_name_args *a)` in a file
 * module/SUBJECT.cu, which enqueues the kernel and returns 0 or a CUDA error; its arguments are in
 * launch/SUBJECT.h.  Planners call it as d->api->launch.name(stream, &args).  A launcher allocates nothing
 * and waits for nothing, so that it can be captured in a CUDA graph. */
#ifndef LS_BACKEND_CUDA_LAUNCHERS_H
#define LS_BACKEND_CUDA_LAUNCHERS_H

#include "backend/cuda/launch/attention.h"
#include "backend/cuda/launch/chamfer.h"
#include "backend/cuda/launch/conv_max.h"
#include "backend/cuda/launch/convert.h"
#include "backend/cuda/launch/epilogue.h"
#include "backend/cuda/launch/few.h"
#include "backend/cuda/launch/finite.h"
#include "backend/cuda/launch/image.h"
#include "backend/cuda/launch/move.h"
#include "backend/cuda/launch/norm.h"
#include "backend/cuda/launch/optim.h"
#include "backend/cuda/launch/pieces.h"
#include "backend/cuda/launch/pointwise.h"
#include "backend/cuda/launch/probe.h"
#include "backend/cuda/launch/random.h"
#include "backend/cuda/launch/reduce.h"
#include "backend/cuda/launch/region.h"
#include "backend/cuda/launch/scores.h"
#include "backend/cuda/launch/slim.h"

typedef void *lsi_cuda_stream; /* a cudaStream_t */

/* clang-format off */
#define LSI_CUDA_LAUNCHERS(X) \
    /* slim.cu */ \
    X(slim) \
    /* attention.cu, flash.cu, epilogue.cu, move.cu, rows.cu */ \
    X(attend) X(attend_grad) X(flash) X(flash_grad) X(epilogue) X(fill) X(cast) X(move) X(copies) X(turn) \
    X(pad) X(gather_rows) X(scatter_rows) X(store_rows) \
    /* convert.cu, pieces.cu */ \
    X(convert) X(pieces) \
    /* pointwise.cu */ \
    X(chain) \
    /* norm.cu, norm_pool.cu, layer_norm.cu */ \
    X(norm) X(norm_grad) X(norm_pool) X(norm_pool_grad) X(layer_norm) X(layer_norm_grad) \
    /* reduce.cu, reduce_max.cu */ \
    X(sum) X(sum_any) X(bias_act_grad) X(max) X(max_grad) \
    /* scores.cu */ \
    X(softmax) X(cross_entropy) X(cross_entropy_grad) X(accuracy) \
    /* optim.cu */ \
    X(optim) X(accumulate) \
    /* finite.cu */ \
    X(all_finite) X(pick) X(rescale) \
    /* random.cu */ \
    X(dropout) X(random) X(replay) \
    /* pool.cu, resample.cu */ \
    X(maxpool) X(maxpool_grad) X(avgpool) X(upsample) \
    /* conv_max.cu */ \
    X(conv_max_dx) X(conv_max_dw) \
    /* chamfer.cu */ \
    X(chamfer) X(chamfer_grad) \
    /* probe.cu */ \
    X(noise) X(probe) \
    /* few_total.cu */ \
    X(few_total) \
    /* region_launch.c */ \
    X(region)
/* clang-format on */

typedef struct lsi_cuda_launch {
#define LSI_CUDA_MEMBER(name) int (*name)(lsi_cuda_stream s, const lsi_cuda_##name##_args *a);
    LSI_CUDA_LAUNCHERS(LSI_CUDA_MEMBER)
#undef LSI_CUDA_MEMBER
} lsi_cuda_launch;

#ifdef __cplusplus
extern "C" {
#endif
#define LSI_CUDA_DECLARE(name) int lsi_cuda_##name(lsi_cuda_stream s, const lsi_cuda_##name##_args *a);
LSI_CUDA_LAUNCHERS(LSI_CUDA_DECLARE)
#undef LSI_CUDA_DECLARE
#ifdef __cplusplus
}
#endif

#endif
