/* kernels.c: the only list of ops with kernels of the CPU backend's own. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/planners.h"
#include "ops/ops.h"

const lsi_cpu_entry lsi_cpu_entries[] = {
    {&ls_op_add, lsi_plan_elementwise},
    {&ls_op_sub, lsi_plan_elementwise},
    {&ls_op_mul, lsi_plan_elementwise},
    {&ls_op_div, lsi_plan_elementwise},
    {&ls_op_maximum, lsi_plan_elementwise},
    {&ls_op_minimum, lsi_plan_elementwise},
    {&ls_op_affine, lsi_plan_elementwise},
    {&ls_op_relu, lsi_plan_elementwise},
    {&ls_op_relu_grad, lsi_plan_elementwise},
    {&ls_op_leaky_relu, lsi_plan_elementwise},
    {&ls_op_leaky_relu_grad, lsi_plan_elementwise},
    {&ls_op_gelu, lsi_plan_elementwise},
    {&ls_op_gelu_grad, lsi_plan_elementwise},
    {&ls_op_tanh, lsi_plan_elementwise},
    {&ls_op_tanh_grad, lsi_plan_elementwise},
    {&ls_op_sigmoid, lsi_plan_elementwise},
    {&ls_op_sigmoid_grad, lsi_plan_elementwise},
    {&ls_op_exp, lsi_plan_elementwise},
    {&ls_op_log, lsi_plan_elementwise},
    {&ls_op_sqrt, lsi_plan_elementwise},
    {&ls_op_rsqrt, lsi_plan_elementwise},
    {&ls_op_square, lsi_plan_elementwise},
    {&ls_op_abs, lsi_plan_elementwise},
    {&ls_op_sign, lsi_plan_elementwise},
    {&ls_op_softplus, lsi_plan_elementwise},
    {&ls_op_copy, lsi_plan_elementwise},
    {&ls_op_broadcast_to, lsi_plan_broadcast_to},
    {&ls_op_pointwise, lsi_plan_pointwise},
    {NULL, NULL},
};
