/* planners.h: the planners of the vector kernels, as listed in kernels.c.  What each of them does and which
 * variants it leaves to the reference kernels stands in the file named beside it. */
#ifndef LS_BACKEND_CPU_PLANNERS_H
#define LS_BACKEND_CPU_PLANNERS_H

#include "backend/cpu/cpu.h"

#define LSI_DECLARE_PLANNER(name)                                                                            \
    ls_status name(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)

/* pointwise.c: f32, all layouts where operands are of one shape or single elements; broadcasting when plain.
 */
LSI_DECLARE_PLANNER(lsi_plan_pointwise);
LSI_DECLARE_PLANNER(lsi_plan_elementwise);
LSI_DECLARE_PLANNER(lsi_plan_broadcast_to);
/* gelu.c: bf16, any layout; the rest by lsi_plan_elementwise. */
LSI_DECLARE_PLANNER(lsi_plan_gelu);
/* norm.c: f32, both layouts, every fused form. */
LSI_DECLARE_PLANNER(lsi_plan_batch_norm);
LSI_DECLARE_PLANNER(lsi_plan_batch_norm_grad);
LSI_DECLARE_PLANNER(lsi_plan_instance_norm);
LSI_DECLARE_PLANNER(lsi_plan_instance_norm_grad);
/* bias.c: f32, both layouts. */
LSI_DECLARE_PLANNER(lsi_plan_bias);
LSI_DECLARE_PLANNER(lsi_plan_bias_act_grad);
/* optim.c: f32 weights and states. */
LSI_DECLARE_PLANNER(lsi_plan_optimiser);
/* accumulate.c: f32; assign: any type. */
LSI_DECLARE_PLANNER(lsi_plan_accumulate);
LSI_DECLARE_PLANNER(lsi_plan_assign);
/* all_finite.c: f32, plain. */
LSI_DECLARE_PLANNER(lsi_plan_all_finite);
/* pool.c, pad.c: f32, both layouts. */
LSI_DECLARE_PLANNER(lsi_plan_maxpool2d);
LSI_DECLARE_PLANNER(lsi_plan_maxpool2d_grad);
LSI_DECLARE_PLANNER(lsi_plan_avgpool2d);
LSI_DECLARE_PLANNER(lsi_plan_avgpool2d_grad);
LSI_DECLARE_PLANNER(lsi_plan_upsample2d);
LSI_DECLARE_PLANNER(lsi_plan_upsample2d_grad);
LSI_DECLARE_PLANNER(lsi_plan_pad);
/* reduce.c: f32; plain for the usual sets of axes, C16 for sums over H, W or over N, H, W. */
LSI_DECLARE_PLANNER(lsi_plan_reduce_sum);
/* rows.c: f32, plain. */
LSI_DECLARE_PLANNER(lsi_plan_softmax);
LSI_DECLARE_PLANNER(lsi_plan_layer_norm);
LSI_DECLARE_PLANNER(lsi_plan_layer_norm_grad);
LSI_DECLARE_PLANNER(lsi_plan_cross_entropy);
LSI_DECLARE_PLANNER(lsi_plan_cross_entropy_grad);
LSI_DECLARE_PLANNER(lsi_plan_accuracy);
/* random.c: f32; dropout on both layouts. */
LSI_DECLARE_PLANNER(lsi_plan_dropout);
LSI_DECLARE_PLANNER(lsi_plan_random);
/* replay.c: f32, plain. */
LSI_DECLARE_PLANNER(lsi_plan_replay);
LSI_DECLARE_PLANNER(lsi_plan_store_rows);
/* move.c, transpose.c: plain; slice and concat of every type, transpose of 4-byte types, cast between f32 and
 * 16-bit floats, the others f32. */
LSI_DECLARE_PLANNER(lsi_plan_slice);
LSI_DECLARE_PLANNER(lsi_plan_concat);
LSI_DECLARE_PLANNER(lsi_plan_fill);
LSI_DECLARE_PLANNER(lsi_plan_cast);
LSI_DECLARE_PLANNER(lsi_plan_indexed_rows);
LSI_DECLARE_PLANNER(lsi_plan_transpose);
/* reduce_max.c, chamfer.c: f32, plain. */
LSI_DECLARE_PLANNER(lsi_plan_reduce_max);
LSI_DECLARE_PLANNER(lsi_plan_reduce_max_grad);
LSI_DECLARE_PLANNER(lsi_plan_chamfer);
LSI_DECLARE_PLANNER(lsi_plan_chamfer_grad);
/* attention.c: f32 or bf16, plain; of self_attention too. */
LSI_DECLARE_PLANNER(lsi_plan_attention);
/* reorder.c: plain <-> C16, every type. */
LSI_DECLARE_PLANNER(lsi_plan_reorder);
/* conv_pooled.c: f32, plain; stride 1, no dilation, no groups, filters of up to 8x8. */
LSI_DECLARE_PLANNER(lsi_plan_conv_dw_pooled);
/* plan_conv.c, plan_matmul.c: f32; the implementation is chosen by measurement. */
LSI_DECLARE_PLANNER(lsi_plan_conv);
LSI_DECLARE_PLANNER(lsi_plan_matmul);

#endif
