/* layouts.c: which layout each op wants its tensors in.
 *
 * Convolutions work channels last, maps and weights; ops that can work on either order take what is there, so
 * that a map, once channels last, stays so until something (a reshape, a linear layer) needs the plain order.
 * Whatever has no rule is plain. */
#include "backend/cuda/kernel_util.h"

typedef struct query {
    const ls_graph *g;
    const ls_node *n;
    const ls_layout *const *have;
    const ls_layout **in, **out;
} query;

static bool can_turn(const query *q, int32_t value)
{
    const ls_vinfo *v = q->g->values[value];

    return v->shape.rank == 4 && v->var < 0 && ls_layout_allowed(&ls_layout_nhwc, v->dtype, v->shape);
}

static bool same_shape(const query *q, int32_t a, int32_t b)
{
    return ls_shape_equal(q->g->values[a]->shape, q->g->values[b]->shape);
}

static bool has(const query *q, int i)
{
    return q->have[i] == &ls_layout_nhwc;
}

/* Inputs may be variables: they are read through a copy. */
static void set_in(query *q, int i, bool last)
{
    const ls_vinfo *v = i < q->n->n_in ? q->g->values[q->n->in[i]] : NULL;

    if (last && v != NULL && ls_layout_allowed(&ls_layout_nhwc, v->dtype, v->shape))
        q->in[i] = &ls_layout_nhwc;
}

static void set_out(query *q, int k, bool last)
{
    if (k < q->n->n_out && last && can_turn(q, q->n->out[k])) q->out[k] = &ls_layout_nhwc;
}

/* -- rules ------------------------------------------------------------------------------------------------
 */

static void rule_conv(query *q)
{
    for (int i = 0; i < 2; i++) set_in(q, i, true);
    set_out(q, 0, true);
}

/* Element-wise: channels last when some operand is and all are of one shape or single elements. */
static void rule_pointwise(query *q)
{
    const ls_node *n = q->n;
    bool any = false;

    for (int i = 0; i < n->n_in; i++) {
        if (ls_shape_count(q->g->values[n->in[i]]->shape) == 1) continue;
        if (!same_shape(q, n->in[i], n->out[0])) return;
        any = any || has(q, i);
    }
    for (int i = 0; i < n->n_in; i++) set_in(q, i, any && same_shape(q, n->in[i], n->out[0]));
    set_out(q, 0, any);
}

/* Everything of the shape of input `lead` follows its layout; the rest stays plain. */
static void follow(query *q, int lead)
{
    for (int i = 0; i < q->n->n_in; i++)
        set_in(q, i, has(q, lead) && same_shape(q, q->n->in[i], q->n->in[lead]));
    for (int k = 0; k < q->n->n_out; k++)
        set_out(q, k, has(q, lead) && same_shape(q, q->n->out[k], q->n->in[lead]));
}

static void rule_follow_first(query *q)
{
    follow(q, 0);
}

/* Gradients read dy and x: x is as the convolution before it made it, and dy is reordered to match. */
static void rule_follow_second(query *q)
{
    follow(q, 1);
}

/* Maps that change their size keep their layout; so do the indices of pooling. */
static void rule_resize(query *q)
{
    set_in(q, 0, has(q, 0));
    for (int k = 0; k < q->n->n_out; k++) set_out(q, k, has(q, 0));
}

/* dy, index[, y]: the forward pass fixed the layout of the index. */
static void rule_maxpool_grad(query *q)
{
    for (int i = 0; i < q->n->n_in; i++) set_in(q, i, has(q, 1));
    set_out(q, 0, has(q, 1));
}

/* Sums over H and W, or over everything but the channels; the result is plain. */
static void rule_reduce(query *q)
{
    const ls_reduce_attr *a = q->n->attr;

    set_in(q, 0, (a->axes == 0xcu || a->axes == 0xdu) && has(q, 0));
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
    {&ls_op_reduce_sum, rule_reduce},
    {&ls_op_cast, rule_follow_first},
};

void lsi_cuda_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                      const ls_layout **in, const ls_layout **out)
{
    query q = {g, n, have, in, out};

    if (lsi_cuda_of(dev)->plain) return;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == n->op) {
            rules[i].rule(&q);
            return;
        }
    if (n->op->pw != LS_PW_NONE) rule_pointwise(&q);
}
