/* reduce_max: the largest element along one axis, and the index of the first such element for the gradient.
 * A NaN counts as larger than any number, so that it does not vanish. */
#include <math.h>

#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_axis_attr *a = c->attr;
    ls_status st = lsi_resolve_axis(&a->axis, c->in[0].rank, err);

    if (st != LS_OK) return st;
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    if (c->in[0].dim[a->axis] == 0)
        return ls_fail(err, LS_INVALID, "axis %d is empty: it has no maximum", a->axis);
    c->out[0].rank = c->in[0].rank - 1;
    for (int i = 0; i < c->out[0].rank; i++) c->out[0].dim[i] = c->in[0].dim[i < a->axis ? i : i + 1];
    c->out[1] = c->out[0];
    c->out_dtype[1] = LS_I32;
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_axis_attr *a = c->attr;

    if (c->want[0])
        c->din[0] = ls_reduce_max_grad(c->dout[0], c->out[1], a->axis, ls_value_shape(c->in[0]).dim[a->axis]);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_axis_attr *a = c->attr;
    lsi_split x = lsi_split_at(c->in[0].shape, a->axis);

    for (int64_t i = 0; i < c->out[0].count; i++) {
        const double *line = c->in[0].d + i / x.inner * x.length * x.inner + i % x.inner;
        int64_t best = 0;
        for (int64_t k = 1; k < x.length && !isnan(line[best * x.inner]); k++)
            if (line[k * x.inner] > line[best * x.inner] || isnan(line[k * x.inner])) best = k;
        c->out[0].d[i] = line[best * x.inner];
        c->out[1].d[i] = (double)best;
    }
}

const ls_op ls_op_reduce_max = {
    .name = "reduce_max",
    .min_in = 1,
    .max_in = 1,
    .n_out = 2,
    .attr_size = sizeof(ls_axis_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_axis_attr_text,
};

ls_value ls_reduce_max(ls_value x, int axis)
{
    return ls_graph_add(x.g, &ls_op_reduce_max, 1, &x, &(ls_axis_attr){axis});
}
