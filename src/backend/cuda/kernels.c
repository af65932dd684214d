/* kernels.c: the only list of ops with kernels of the CUDA backend's own. */
#include "backend/cuda/planners.h"
#include "ops/ops.h"

const lsi_cuda_entry lsi_cuda_entries[] = {
    {&ls_op_conv2d, lsi_cuda_plan_conv},
    {&ls_op_conv2d_dx, lsi_cuda_plan_conv},
    {&ls_op_conv2d_dw, lsi_cuda_plan_conv},
    {&ls_op_matmul, lsi_cuda_plan_matmul},
    {&ls_op_to_host, lsi_cuda_plan_transfer},
    {&ls_op_to_device, lsi_cuda_plan_transfer},
    {&ls_op_fill, lsi_cuda_plan_fill},
    {&ls_op_cast, lsi_cuda_plan_cast},
    {&ls_op_transpose, lsi_cuda_plan_transpose},
    {&ls_op_slice, lsi_cuda_plan_slice},
    {&ls_op_concat, lsi_cuda_plan_concat},
    {&ls_op_broadcast_to, lsi_cuda_plan_broadcast_to},
    {&ls_op_reorder, lsi_cuda_plan_reorder},
    {&ls_op_copy, lsi_cuda_plan_reorder},
    {&ls_op_assign, lsi_cuda_plan_reorder},
    {&ls_op_pad, lsi_cuda_plan_pad},
    {&ls_op_pad_adjoint, lsi_cuda_plan_pad},
    {&ls_op_gather_rows, lsi_cuda_plan_rows},
    {&ls_op_scatter_rows, lsi_cuda_plan_rows},
    {&ls_op_store_rows, lsi_cuda_plan_rows},
    {NULL, NULL},
};

lsi_cuda_planner lsi_cuda_planner_of(const ls_op *op)
{
    for (const lsi_cuda_entry *e = lsi_cuda_entries; e->op != NULL; e++)
        if (e->op == op) return e->plan;
    return NULL;
}
