/* broadcast_to: x repeated along new leading dimensions and along those where it has size 1. */
#include "ops/pointwise_rules.h"
#include "ops/shape_rules.h"

static bool fits(ls_shape x, ls_shape to)
{
    ls_shape both;

    return ls_shape_valid(to) && ls_shape_broadcast(x, to, &both) && ls_shape_equal(both, to);
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_shape_attr *a = c->attr;
    char want[LS_SHAPE_TEXT];

    if (!fits(c->in[0], a->to))
        return ls_fail(err, LS_INVALID, "the input cannot be broadcast to %s", ls_shape_text(a->to, want));
    c->out[0] = a->to;
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_sum_to(c->dout[0], ls_value_shape(c->in[0]));
}

static void ref(const ls_ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] = c->in[0].d[lsi_broadcast_offset(c->in[0].shape, c->out[0].shape, i)];
}

const ls_op ls_op_broadcast_to = {
    .name = "broadcast_to",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_shape_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = lsi_shape_attr_text,
};

ls_value ls_broadcast_to(ls_value x, ls_shape to)
{
    /* New dimensions of size 1 repeat nothing. */
    if (ls_value_ok(x) && fits(ls_value_shape(x), to) &&
        ls_shape_count(ls_value_shape(x)) == ls_shape_count(to))
        return ls_reshape(x, to);
    return ls_graph_add(x.g, &ls_op_broadcast_to, 1, &x, &(ls_shape_attr){to});
}
