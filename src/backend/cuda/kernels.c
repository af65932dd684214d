/* kernels.c: the only list of ops with kernels of the CUDA backend's own. */
#include "backend/cuda/planners.h"
#include "ops/ops.h"

const lsi_cuda_entry lsi_cuda_entries[] = {
    {&ls_op_fill, lsi_cuda_plan_fill},
    {&ls_op_cast, lsi_cuda_plan_cast},
    {NULL, NULL},
};

lsi_cuda_planner lsi_cuda_planner_of(const ls_op *op)
{
    for (const lsi_cuda_entry *e = lsi_cuda_entries; e->op != NULL; e++)
        if (e->op == op) return e->plan;
    return NULL;
}
