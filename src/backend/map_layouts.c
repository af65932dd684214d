/* map_layouts.c: rules of ops that take the layout of maps that is there. */
#include "backend/map_layouts.h"

#include "ops/ops.h"

bool ls_map_allowed(const ls_map_query *q, int32_t value)
{
    const ls_vinfo *v = q->g->values[value];

    return ls_layout_allowed(q->layout, v->dtype, v->shape);
}

void ls_map_set_in(ls_map_query *q, int i, bool wanted)
{
    if (i < q->n->n_in && wanted && ls_map_allowed(q, q->n->in[i])) q->in[i] = q->layout;
}

void ls_map_set_out(ls_map_query *q, int k, bool wanted)
{
    if (k < q->n->n_out && wanted && q->g->values[q->n->out[k]]->var < 0 && ls_map_allowed(q, q->n->out[k]))
        q->out[k] = q->layout;
}

static bool has(const ls_map_query *q, int i)
{
    return q->have[i] == q->layout;
}

static bool same_shape(const ls_map_query *q, int32_t a, int32_t b)
{
    return ls_shape_equal(q->g->values[a]->shape, q->g->values[b]->shape);
}

void ls_map_follow(ls_map_query *q, int lead)
{
    for (int i = 0; i < q->n->n_in; i++)
        ls_map_set_in(q, i, has(q, lead) && same_shape(q, q->n->in[i], q->n->in[lead]));
    for (int k = 0; k < q->n->n_out; k++)
        ls_map_set_out(q, k, has(q, lead) && same_shape(q, q->n->out[k], q->n->in[lead]));
}

/* Element-wise: in the layout when some operand is and all are of one shape or single elements. */
static void rule_pointwise(ls_map_query *q)
{
    const ls_node *n = q->n;
    bool any = false;

    for (int i = 0; i < n->n_in; i++) {
        if (ls_shape_count(q->g->values[n->in[i]]->shape) == 1) continue;
        if (!same_shape(q, n->in[i], n->out[0])) return;
        any = any || has(q, i);
    }
    for (int i = 0; i < n->n_in; i++) ls_map_set_in(q, i, any && same_shape(q, n->in[i], n->out[0]));
    ls_map_set_out(q, 0, any);
}

static void rule_follow_first(ls_map_query *q)
{
    ls_map_follow(q, 0);
}

/* Gradients read dy and x: x is as the convolution before it made it, and dy is reordered to match. */
static void rule_follow_second(ls_map_query *q)
{
    ls_map_follow(q, 1);
}

/* Maps that change their size keep their layout; so do the indices of pooling. */
static void rule_resize(ls_map_query *q)
{
    ls_map_set_in(q, 0, has(q, 0));
    for (int k = 0; k < q->n->n_out; k++) ls_map_set_out(q, k, has(q, 0));
}

/* dy, index[, y]: the forward pass fixed the layout of the index. */
static void rule_maxpool_grad(ls_map_query *q)
{
    for (int i = 0; i < q->n->n_in; i++) ls_map_set_in(q, i, has(q, 1));
    ls_map_set_out(q, 0, has(q, 1));
}

/* Sums over H and W, or over everything but the channels; the result is plain. */
static void rule_reduce_sum(ls_map_query *q)
{
    const ls_reduce_attr *a = q->n->attr;

    ls_map_set_in(q, 0, (a->axes == 0xcu || a->axes == 0xdu) && has(q, 0));
}

static const struct {
    const ls_op *op;
    void (*rule)(ls_map_query *q);
} rules[] = {
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
    {&ls_op_reduce_sum, rule_reduce_sum},
};

void ls_map_rule(ls_map_query *q)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == q->n->op) {
            rules[i].rule(q);
            return;
        }
    if (q->n->op->pw != LS_PW_NONE) rule_pointwise(q);
}
