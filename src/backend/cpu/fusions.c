/* fusions.c: which fused ops this backend wants. */
#include "backend/cpu/b16.h"
#include "backend/cpu/c16.h"
#include "backend/cpu/conv_pooled.h"
#include "backend/cpu/cpu.h"

#define FIRST_LAYER 4 /* channels of its input, at most */

/* The kernel that works from the positions that won (conv_pooled.c) pays in a first layer.  With more
 * channels, products with zeros at full speed cost less than scattered ones without; so do blocked maps. */
static bool wants_pooled_weights(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    const ls_conv_attr *conv = f->outer->attr;
    const ls_pool_attr *pool = f->inner->attr;

    (void)dev;
    if (conv->groups != 1 || conv->in[1] > FIRST_LAYER) return false;
    for (int i = 0; i < 2; i++)
        if (conv->kernel[i] > LSI_POOLED_TAPS || conv->stride[i] != 1 || conv->dilation[i] != 1 ||
            pool->stride[i] < pool->kernel[i])
            return false;
    return !ls_layout_allowed(&lsi_layout_c16, LS_F32, *ls_node_in_shape(g, f->outer, 1));
}

/* Products of bf16 numbers find heads where they lie; in fp32 plans stay what they were. */
static bool wants_heads(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    (void)dev;
    return g->values[f->outer->in[0]]->dtype == LS_BF16 && lsi_b16_kernels_here() != NULL;
}

/* Ops whose kernels read, and write, each tensor in the floating type that it is stored in.  Others are
 * planned for one type, or have rules of their own for what is wide. */
static bool is_typed(const ls_op *op)
{
    static const ls_op *const typed[] = {
        &ls_op_matmul,    &ls_op_conv2d,     &ls_op_conv2d_dx,    &ls_op_conv2d_dw, &ls_op_conv2d_dw_pooled,
        &ls_op_pointwise, &ls_op_reduce_sum, &ls_op_broadcast_to, &ls_op_bias,      &ls_op_bias_act_grad,
        &ls_op_concat,    &ls_op_chamfer,    &ls_op_chamfer_grad,
    };

    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++)
        if (typed[i] == op) return true;
    return op->pw != LS_PW_NONE;
}

static bool reads_any_type(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    (void)dev;
    (void)g;
    return is_typed(f->outer->op) || f->outer->op == &ls_op_replay || f->outer->op == &ls_op_store_rows;
}

static bool writes_any_type(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    const ls_op *op = f->inner->op;

    (void)dev;
    (void)g;
    return (is_typed(op) && op != &ls_op_chamfer) || op == &ls_op_cross_entropy_grad ||
           op == &ls_op_random_normal || op == &ls_op_random_uniform || op == &ls_op_fill;
}

const ls_fusion_rule lsi_cpu_fusions[] = {
    {LS_FUSE_BIAS, NULL},
    {LS_FUSE_RESIDUAL, NULL},
    {LS_FUSE_ACT, NULL},
    {LS_FUSE_POOL_MASK, NULL},
    {LS_FUSE_NORM_GRAD, NULL},
    {LS_FUSE_POOL_SUM, NULL},
    {LS_FUSE_POOL_GRAD, NULL},
    {LS_FUSE_BIAS_GRAD, NULL},
    {LS_FUSE_POOLED_WEIGHTS, wants_pooled_weights},
    {LS_FUSE_HEADS, wants_heads},
    {LS_FUSE_POINTWISE, NULL},
    {LS_FUSE_CAST_OUT, writes_any_type},
    {LS_FUSE_CAST_IN, reads_any_type},
    {LS_FUSE_NONE, NULL},
};
