/* kernels.c: the only list of ops with kernels of the CPU backend's own. */
#include "backend/cpu/cpu.h"
#include "ops/ops.h"

const lsi_cpu_entry lsi_cpu_entries[] = {
    {&ls_op_conv2d, lsi_plan_conv},
    {&ls_op_conv2d_dx, lsi_plan_conv},
    {&ls_op_conv2d_dw, lsi_plan_conv},
    {&ls_op_matmul, lsi_plan_matmul},
    {NULL, NULL},
};
