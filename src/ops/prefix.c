/* prefix: the first elements of a vector, where they are; moves nothing. */
#include <stdio.h>

#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_prefix_attr *a = c->attr;

    if (c->in[0].rank != 1)
        return ls_fail(err, LS_INVALID, "only a vector has a prefix, not what has %d dimensions",
                       c->in[0].rank);
    if (a->length < 0 || a->length > c->in[0].dim[0])
        return ls_fail(err, LS_INVALID, "%lld elements are not among the %lld of the vector",
                       (long long)a->length, (long long)c->in[0].dim[0]);
    c->out[0] = LS_SHAPE(a->length);
    return LS_OK;
}

/* Zeros for the elements that nobody sees. */
static void grad(ls_grad_call *c)
{
    const ls_prefix_attr *a = c->attr;
    const int64_t rest = ls_value_shape(c->in[0]).dim[0] - a->length;
    ls_value part[2] = {c->dout[0]};

    if (!c->want[0]) return;
    if (rest > 0) part[1] = ls_fill(c->g, LS_SHAPE(rest), ls_value_dtype(c->in[0]), 0);
    c->din[0] = ls_concat(rest > 0 ? 2 : 1, part, 0);
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    snprintf(buf, n, "length=%lld", (long long)((const ls_prefix_attr *)attr)->length);
}

const ls_op ls_op_prefix = {
    .name = "prefix",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_prefix_attr),
    .flags = LS_OP_VIEW,
    .infer = infer,
    .grad = grad,
    .attr_text = attr_text,
};

ls_value ls_prefix(ls_value x, int64_t length)
{
    const ls_shape s = ls_value_shape(x);

    if (ls_value_ok(x) && s.rank == 1 && s.dim[0] == length) return x;
    return ls_graph_add(x.g, &ls_op_prefix, 1, &x, &(ls_prefix_attr){length});
}
