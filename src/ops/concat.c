/* concat: tensors of equal shape but for one axis, put behind one another along it. */
#include <string.h>

#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_axis_attr *a = c->attr;
    ls_status st = lsi_resolve_axis(&a->axis, c->in[0].rank, err);

    if (st != LS_OK) return st;
    c->out[0] = c->in[0];
    for (int i = 1; i < c->n_in; i++) {
        ls_shape s = c->in[i];
        if (c->in_dtype[i] != c->in_dtype[0])
            return ls_fail(err, LS_INVALID, "input %d is %s, input 0 is %s", i, ls_dtype_name(c->in_dtype[i]),
                           ls_dtype_name(c->in_dtype[0]));
        if (s.rank == c->in[0].rank) {
            c->out[0].dim[a->axis] += s.dim[a->axis];
            s.dim[a->axis] = c->in[0].dim[a->axis];
        }
        if (!ls_shape_equal(s, c->in[0]))
            return ls_fail(err, LS_INVALID, "input %d differs from input 0 in more than axis %d", i, a->axis);
    }
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_axis_attr *a = c->attr;
    int64_t start = 0;

    for (int i = 0; i < c->n_in; i++) {
        int64_t length = ls_value_shape(c->in[i]).dim[a->axis];
        if (c->want[i]) c->din[i] = ls_slice(c->dout[0], a->axis, start, length);
        start += length;
    }
}

static void ref(const ls_ref_call *c)
{
    const ls_axis_attr *a = c->attr;
    lsi_split y = lsi_split_at(c->out[0].shape, a->axis);
    int64_t start = 0;

    for (int i = 0; i < c->n_in; i++) {
        int64_t length = c->in[i].shape.dim[a->axis], run = length * y.inner;
        for (int64_t o = 0; o < y.outer; o++)
            memcpy(c->out[0].d + (o * y.length + start) * y.inner, c->in[i].d + o * run,
                   (size_t)run * sizeof(double));
        start += length;
    }
}

const ls_op ls_op_concat = {
    .name = "concat",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_axis_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = lsi_axis_attr_text,
};

ls_value ls_concat(int n, const ls_value *x, int axis)
{
    LS_BUG_IF(n < 1);
    if (n == 1) return x[0];
    return ls_graph_add(x[0].g, &ls_op_concat, n, x, &(ls_axis_attr){axis});
}
