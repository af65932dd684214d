/* reduce_sum: the sum over a set of dimensions.  ls_reduce_mean and ls_sum_to are made of it. */
#include <stdio.h>

#include "ops/pointwise_rules.h"

/* Resolves LS_ALL_AXES; false when a dimension is named that x does not have. */
static bool resolve_axes(ls_shape x, unsigned *axes)
{
    unsigned all = (1u << x.rank) - 1;

    if (*axes == LS_ALL_AXES) *axes = all;
    return (*axes & ~all) == 0;
}

static ls_shape reduced(ls_shape x, unsigned axes, bool keep)
{
    ls_shape y = {0};

    for (int i = 0; i < x.rank; i++) {
        if (!(axes & 1u << i))
            y.dim[y.rank++] = x.dim[i];
        else if (keep)
            y.dim[y.rank++] = 1;
    }
    return y;
}

/* Number of elements that are summed into one. */
static int64_t terms(ls_shape x, unsigned axes)
{
    int64_t n = 1;

    for (int i = 0; i < x.rank; i++)
        if (axes & 1u << i) n *= x.dim[i];
    return n;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_reduce_attr *a = c->attr;

    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    if (!resolve_axes(c->in[0], &a->axes))
        return ls_fail(err, LS_INVALID, "the set of axes 0x%x names dimensions beyond the %d that exist",
                       a->axes, c->in[0].rank);
    c->out[0] = reduced(c->in[0], a->axes, a->keep);
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_reduce_attr *a = c->attr;
    ls_shape x = ls_value_shape(c->in[0]);

    if (c->want[0]) c->din[0] = ls_broadcast_to(ls_reshape(c->dout[0], reduced(x, a->axes, true)), x);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_reduce_attr *a = c->attr;
    ls_shape x = c->in[0].shape, y = reduced(x, a->axes, true);

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = 0;
    for (int64_t i = 0; i < c->in[0].count; i++) c->out[0].d[lsi_broadcast_offset(y, x, i)] += c->in[0].d[i];
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_reduce_attr *a = attr;

    snprintf(buf, n, "axes=0x%x keep=%d", a->axes, a->keep);
}

const ls_op ls_op_reduce_sum = {
    .name = "reduce_sum",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_reduce_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_reduce_sum(ls_value x, unsigned axes, bool keep)
{
    ls_shape s = ls_value_shape(x);

    /* A sum of one term moves nothing. */
    if (ls_value_ok(x) && resolve_axes(s, &axes) && terms(s, axes) == 1)
        return ls_reshape(x, reduced(s, axes, keep));
    return ls_graph_add(x.g, &ls_op_reduce_sum, 1, &x, &(ls_reduce_attr){axes, keep});
}

ls_value ls_reduce_mean(ls_value x, unsigned axes, bool keep)
{
    ls_value sum = ls_reduce_sum(x, axes, keep);

    if (!ls_value_ok(sum) || !resolve_axes(ls_value_shape(x), &axes)) return sum;
    return ls_scale(sum, 1.0 / (double)terms(ls_value_shape(x), axes));
}

ls_value ls_sum_to(ls_value x, ls_shape to)
{
    ls_shape s = ls_value_shape(x), both;
    char from_text[LS_SHAPE_TEXT], to_text[LS_SHAPE_TEXT];
    unsigned axes = 0, new_axes;

    if (!ls_value_ok(x) || ls_shape_equal(s, to)) return x;
    if (!ls_shape_broadcast(to, s, &both) || !ls_shape_equal(both, s))
        return ls_graph_fail(x.g, LS_INVALID, "sum_to: a tensor of shape %s cannot be summed to %s",
                             ls_shape_text(s, from_text), ls_shape_text(to, to_text));
    new_axes = (1u << (s.rank - to.rank)) - 1;
    for (int i = s.rank - to.rank; i < s.rank; i++)
        if (to.dim[i - (s.rank - to.rank)] != s.dim[i]) axes |= 1u << i;
    /* Dimensions that `to` has with size 1 are kept if that alone gives its shape; otherwise a view does the
     * rest. */
    return ls_reshape(ls_reduce_sum(x, axes | new_axes, new_axes == 0), to);
}
