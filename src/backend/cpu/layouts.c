/* layouts.c: which layout each op wants its tensors in.
 *
 * Convolutions with many channels on both sides work on blocked maps (C16); ops that can work on either take
 * what is there, so that a blocked layout, once entered, lasts until something (a reshape, a linear layer)
 * needs the plain order.  Ops without a kernel of this backend's own run the reference kernel, which is
 * plain. */
#include "backend/cpu/c16.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "ops/ops.h"

/* Vector kernels exist for the types that networks compute in, and for the indices of their pools. */
const ls_layout lsi_layout_c16 = {.name = "c16",
                                  .rank = 4,
                                  .order = {0, 1, 2, 3},
                                  .block = 16,
                                  .block_axis = 1,
                                  .whole = true,
                                  .dtypes = 1u << LS_F32 | 1u << LS_BF16 | 1u << LS_F16 | 1u << LS_U8};

#define FEW_CHANNELS 4 /* up to here, kernels for few channels take or give plain maps */

typedef struct query {
    const ls_graph *g;
    const ls_node *n;
    const ls_layout *const *have;
    const ls_layout **in, **out;
} query;

static bool can_block(const query *q, int32_t value)
{
    const ls_vinfo *v = q->g->values[value];

    return ls_layout_allowed(&lsi_layout_c16, v->dtype, v->shape);
}

static bool same_shape(const query *q, int32_t a, int32_t b)
{
    return ls_shape_equal(q->g->values[a]->shape, q->g->values[b]->shape);
}

static void set_in(query *q, int i, bool blocked)
{
    if (i < q->n->n_in && blocked && can_block(q, q->n->in[i])) q->in[i] = &lsi_layout_c16;
}

static void set_out(query *q, int k, bool blocked)
{
    if (k < q->n->n_out && blocked && can_block(q, q->n->out[k])) q->out[k] = &lsi_layout_c16;
}

/* -- rules
 * -------------------------------------------------------------------------------------------------------- */

static void rule_conv(query *q)
{
    const ls_conv_attr *a = q->n->attr;
    bool dx = q->n->op == &ls_op_conv2d_dx, dw = q->n->op == &ls_op_conv2d_dw;
    int32_t xv = dx ? q->n->out[0] : q->n->in[0];
    int32_t yv = dx ? q->n->in[0] : dw ? q->n->in[1] : q->n->out[0];
    int64_t ci = q->g->values[xv]->shape.dim[1], co = q->g->values[yv]->shape.dim[1];
    bool ci_many = ci % 16 == 0 && can_block(q, xv), co_many = co % 16 == 0 && can_block(q, yv);
    bool simple = a->groups == 1 && a->act <= LS_ACT_TANH; /* anything else runs the reference kernel */
    bool x_blocked = simple && ci_many && (co_many || co <= FEW_CHANNELS);
    bool y_blocked = simple && co_many && (ci_many || ci <= FEW_CHANNELS);

    if (dx) {
        set_out(q, 0, x_blocked);
        set_in(q, 0, y_blocked);
    } else {
        set_in(q, 0, x_blocked);
        if (dw)
            set_in(q, 1, y_blocked);
        else
            set_out(q, 0, y_blocked);
    }
}

/* Element-wise: blocked when some operand is and all are of one shape or single elements. */
static void rule_pointwise(query *q)
{
    const ls_node *n = q->n;
    bool any = false;

    for (int i = 0; i < n->n_in; i++) {
        if (ls_shape_count(q->g->values[n->in[i]]->shape) == 1) continue;
        if (!same_shape(q, n->in[i], n->out[0])) return;
        any = any || q->have[i] == &lsi_layout_c16;
    }
    for (int i = 0; i < n->n_in; i++) set_in(q, i, any && same_shape(q, n->in[i], n->out[0]));
    set_out(q, 0, any);
}

/* Everything of the shape of input `lead` follows its layout; the rest stays plain. */
static void follow(query *q, int lead)
{
    bool blocked = q->have[lead] == &lsi_layout_c16;

    for (int i = 0; i < q->n->n_in; i++) set_in(q, i, blocked && same_shape(q, q->n->in[i], q->n->in[lead]));
    for (int k = 0; k < q->n->n_out; k++)
        set_out(q, k, blocked && same_shape(q, q->n->out[k], q->n->in[lead]));
}

static void rule_follow_first(query *q)
{
    follow(q, 0);
}

/* Norm gradients read dy and x: x was made blocked or not by the convolution before it, dy is reordered to
 * match. */
static void rule_follow_second(query *q)
{
    follow(q, 1);
}

/* Maps that change their size keep their layout; so do the indices of pooling. */
static void rule_resize(query *q)
{
    bool blocked = q->have[0] == &lsi_layout_c16;

    set_in(q, 0, blocked);
    for (int k = 0; k < q->n->n_out; k++) set_out(q, k, blocked);
}

/* dy, index[, y]: the forward pass fixed the layout of the index. */
static void rule_maxpool_grad(query *q)
{
    bool blocked = q->have[1] == &lsi_layout_c16;

    for (int i = 0; i < q->n->n_in; i++) set_in(q, i, blocked);
    set_out(q, 0, blocked);
}

/* Sums over H and W, or over everything but the channels, have blocked kernels; the result is plain. */
static void rule_reduce_sum(query *q)
{
    const ls_reduce_attr *a = q->n->attr;
    bool maps = a->axes == 0xcu || a->axes == 0xdu;

    set_in(q, 0, maps && q->have[0] == &lsi_layout_c16);
}

static const struct {
    const ls_op *op;
    void (*rule)(query *q);
} rules[] = {
    {&ls_op_conv2d, rule_conv},
    {&ls_op_conv2d_dx, rule_conv},
    {&ls_op_conv2d_dw, rule_conv},
    {&ls_op_pointwise, rule_pointwise},
    {&ls_op_bias, rule_follow_first},
    {&ls_op_dropout, rule_follow_first},
    {&ls_op_detach, rule_follow_first},
    {&ls_op_batch_norm, rule_follow_first},
    {&ls_op_batch_norm_grad, rule_follow_second},
    {&ls_op_instance_norm, rule_follow_first},
    {&ls_op_instance_norm_grad, rule_follow_second},
    {&ls_op_bias_act_grad, rule_follow_second},
    {&ls_op_maxpool2d, rule_resize},
    {&ls_op_maxpool2d_grad, rule_maxpool_grad},
    {&ls_op_avgpool2d, rule_resize},
    {&ls_op_avgpool2d_grad, rule_resize},
    {&ls_op_upsample2d, rule_resize},
    {&ls_op_upsample2d_grad, rule_resize},
    {&ls_op_pad, rule_resize},
    {&ls_op_pad_adjoint, rule_resize},
    {&ls_op_reduce_sum, rule_reduce_sum},
};

void lsi_cpu_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                     const ls_layout **in, const ls_layout **out)
{
    query q = {g, n, have, in, out};

    (void)dev;
    if (lsi_cpu_planner_of(n->op) == NULL && !(n->op->flags & LS_OP_VIEW)) return;
    if (!lsi_has_avx2() && !lsi_has_avx512()) return; /* kernels for blocked maps are vector code */
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == n->op) {
            rules[i].rule(&q);
            return;
        }
    if (n->op->pw != LS_PW_NONE) rule_pointwise(&q);
}
