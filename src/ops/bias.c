/* bias: y = x + b, with b (C) added along one axis of x. */
#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_axis_attr *a = c->attr;
    ls_status st = lsi_resolve_axis(&a->axis, c->in[0].rank, err);

    if (st != LS_OK) return st;
    if (c->in_dtype[0] != c->in_dtype[1] || !ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs two tensors of one floating type, got %s and %s",
                       ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[1]));
    if (c->in[1].rank != 1 || c->in[1].dim[0] != c->in[0].dim[a->axis])
        return ls_fail(err, LS_INVALID, "the bias must be a vector with the %lld entries of axis %d",
                       (long long)c->in[0].dim[a->axis], a->axis);
    c->out[0] = c->in[0];
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_axis_attr *a = c->attr;
    unsigned all = (1u << ls_value_shape(c->in[0]).rank) - 1;

    if (c->want[0]) c->din[0] = c->dout[0];
    if (c->want[1]) c->din[1] = ls_reduce_sum(c->dout[0], all & ~(1u << a->axis), false);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_out_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_axis_attr *a = c->attr;
    lsi_split x = lsi_split_at(c->in[0].shape, a->axis);

    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] = c->in[0].d[i] + c->in[1].d[i / x.inner % x.length];
}

const ls_op ls_op_bias = {
    .name = "bias",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(ls_axis_attr),
    .flags = LS_OP_INPLACE,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_axis_attr_text,
};

ls_value ls_bias(ls_value x, ls_value b, int axis)
{
    return ls_graph_add(x.g, &ls_op_bias, 2, (ls_value[]){x, b}, &(ls_axis_attr){axis});
}
