/* planners.h: the planners, as listed in kernels.c.  What each of them does and which variants it leaves to
 * the reference kernels stands in the file named beside it.
 *
 * A new kernel: its arguments in launch/SUBJECT.h, the kernel and its launcher in module/SUBJECT.cu, X(name)
 * in launchers.h, a planner in SUBJECT.c, declared here and listed in kernels.c; move.c is the smallest
 * example.  Every pointer in the arguments is a device address; kernels of one node follow each other on one
 * stream. */
#ifndef LS_BACKEND_CUDA_PLANNERS_H
#define LS_BACKEND_CUDA_PLANNERS_H

#include "backend/cuda/cuda.h"

#define LSI_DECLARE_PLANNER(name)                                                                            \
    ls_status name(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)

/* matmul.c, conv.c: f32, bf16, f16; plain, maps and weights of convolutions also channels-last. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_matmul);
LSI_DECLARE_PLANNER(lsi_cuda_plan_slim); /* slim.c: products of 16 bits with few rows, others as above */
/* conv_max.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_conv_max_dx);
LSI_DECLARE_PLANNER(lsi_cuda_plan_conv_max_dw);
bool lsi_cuda_wants_max(const ls_device *dev, const ls_graph *g, const ls_fusion *f);
LSI_DECLARE_PLANNER(lsi_cuda_plan_conv);
/* attention.c: f32, bf16, f16, plain. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_attention);
/* flash.c: bf16 and f16, plain, heads as wide as lsi_flash_width says. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_self_attention);
/* few.c: where one side has few channels; else as above. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_conv_few);
/* queues.c: every type and layout. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_transfer);
/* move.c: fill of every type; cast between f32, bf16 and f16; every layout. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_fill);
LSI_DECLARE_PLANNER(lsi_cuda_plan_cast);
/* strides.c: every type, every layout without blocks. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_transpose);
LSI_DECLARE_PLANNER(lsi_cuda_plan_slice);
LSI_DECLARE_PLANNER(lsi_cuda_plan_concat);
LSI_DECLARE_PLANNER(lsi_cuda_plan_broadcast_to);
LSI_DECLARE_PLANNER(lsi_cuda_plan_reorder);
/* convert.c: f32, bf16, f16; plain to channels last and back. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_convert);
/* rows.c: f32, bf16, f16; pads plain or channels-last, rows plain (storing them: every type). */
LSI_DECLARE_PLANNER(lsi_cuda_plan_pad);
LSI_DECLARE_PLANNER(lsi_cuda_plan_rows);
/* pointwise.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_pointwise);
LSI_DECLARE_PLANNER(lsi_cuda_plan_elementwise);
LSI_DECLARE_PLANNER(lsi_cuda_plan_bias);
/* norm.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_batch_norm);
LSI_DECLARE_PLANNER(lsi_cuda_plan_batch_norm_grad);
LSI_DECLARE_PLANNER(lsi_cuda_plan_instance_norm);
LSI_DECLARE_PLANNER(lsi_cuda_plan_instance_norm_grad);
LSI_DECLARE_PLANNER(lsi_cuda_plan_layer_norm);
LSI_DECLARE_PLANNER(lsi_cuda_plan_layer_norm_grad);
/* norm_pool.c: f32, bf16, f16; channels last. */
LSI_DECLARE_PLANNER(lsi_cuda_plan_batch_norm_pool);
LSI_DECLARE_PLANNER(lsi_cuda_plan_batch_norm_pool_grad);
bool lsi_cuda_wants_norm_pool(const ls_device *dev, const ls_graph *g, const ls_fusion *f);
/* reduce.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_reduce_sum);
LSI_DECLARE_PLANNER(lsi_cuda_plan_bias_act_grad);
LSI_DECLARE_PLANNER(lsi_cuda_plan_reduce_max);
LSI_DECLARE_PLANNER(lsi_cuda_plan_reduce_max_grad);
/* region.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_region);
/* scores.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_softmax);
LSI_DECLARE_PLANNER(lsi_cuda_plan_cross_entropy);
LSI_DECLARE_PLANNER(lsi_cuda_plan_cross_entropy_grad);
LSI_DECLARE_PLANNER(lsi_cuda_plan_accuracy);
/* optim.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_optimiser);
LSI_DECLARE_PLANNER(lsi_cuda_plan_accumulate);
/* finite.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_all_finite);
LSI_DECLARE_PLANNER(lsi_cuda_plan_pick);
LSI_DECLARE_PLANNER(lsi_cuda_plan_rescale);
/* random.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_dropout);
LSI_DECLARE_PLANNER(lsi_cuda_plan_random);
LSI_DECLARE_PLANNER(lsi_cuda_plan_replay);
/* image.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_maxpool2d);
LSI_DECLARE_PLANNER(lsi_cuda_plan_maxpool2d_grad);
LSI_DECLARE_PLANNER(lsi_cuda_plan_avgpool2d);
LSI_DECLARE_PLANNER(lsi_cuda_plan_upsample2d);
/* chamfer.c */
LSI_DECLARE_PLANNER(lsi_cuda_plan_chamfer);
LSI_DECLARE_PLANNER(lsi_cuda_plan_chamfer_grad);

#endif
