/* slice: y = x restricted to start <= index < start + length along one axis. */
#include <stdio.h>
#include <string.h>

#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_slice_attr *a = c->attr;
    ls_status st = lsi_resolve_axis(&a->axis, c->in[0].rank, err);
    int64_t size;

    if (st != LS_OK) return st;
    size = c->in[0].dim[a->axis];
    if (a->start < 0 || a->start > size || a->length < 0 || a->length > size - a->start)
        return ls_fail(err, LS_INVALID, "%lld elements from %lld on do not lie within the %lld of axis %d",
                       (long long)a->length, (long long)a->start, (long long)size, a->axis);
    c->out[0] = c->in[0];
    c->out[0].dim[a->axis] = a->length;
    return LS_OK;
}

/* Zeros take the places that were cut off. */
static void grad(ls_grad_call *c)
{
    const ls_slice_attr *a = c->attr;
    ls_shape before = ls_value_shape(c->in[0]), after = before;
    ls_dtype dtype = ls_value_dtype(c->in[0]);
    ls_value part[3];
    int n = 0;

    if (!c->want[0]) return;
    before.dim[a->axis] = a->start;
    after.dim[a->axis] -= a->start + a->length;
    if (before.dim[a->axis] > 0) part[n++] = ls_fill(c->g, before, dtype, 0);
    part[n++] = c->dout[0];
    if (after.dim[a->axis] > 0) part[n++] = ls_fill(c->g, after, dtype, 0);
    c->din[0] = ls_concat(n, part, a->axis);
}

static void ref(const ls_ref_call *c)
{
    const ls_slice_attr *a = c->attr;
    lsi_split x = lsi_split_at(c->in[0].shape, a->axis);
    int64_t run = a->length * x.inner;

    for (int64_t o = 0; o < x.outer; o++)
        memcpy(c->out[0].d + o * run, c->in[0].d + (o * x.length + a->start) * x.inner,
               (size_t)run * sizeof(double));
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_slice_attr *a = attr;

    snprintf(buf, n, "axis=%d start=%lld length=%lld", a->axis, (long long)a->start, (long long)a->length);
}

const ls_op ls_op_slice = {
    .name = "slice",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_slice_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_slice(ls_value x, int axis, int64_t start, int64_t length)
{
    ls_slice_attr a = {axis, start, length};
    ls_shape s = ls_value_shape(x);

    if (ls_value_ok(x) && lsi_resolve_axis(&axis, s.rank, NULL) == LS_OK && start == 0 &&
        length == s.dim[axis])
        return x;
    return ls_graph_add(x.g, &ls_op_slice, 1, &x, &a);
}
