/* reshape: the same elements in the same row-major order under another shape; moves nothing. */
#include "ops/shape_rules.h"

/* Replaces the one dimension that may be -1 by what is left over. */
static ls_status resolve(ls_shape x, ls_shape *to, ls_err *err)
{
    char want[LS_SHAPE_TEXT];
    ls_shape rest = *to;
    int64_t count = ls_shape_count(x), known;
    int open = -1;

    for (int i = 0; i < to->rank; i++) {
        if (to->dim[i] != -1) continue;
        if (open >= 0)
            return ls_fail(err, LS_INVALID, "%s leaves more than one dimension open",
                           ls_shape_text(*to, want));
        open = i;
        rest.dim[i] = 1;
    }
    if (!ls_shape_valid(rest))
        return ls_fail(err, LS_INVALID, "impossible shape %s", ls_shape_text(*to, want));
    known = ls_shape_count(rest);
    if (open >= 0 && known > 0) rest.dim[open] = count / known;
    if (ls_shape_count(rest) != count || (open >= 0 && known == 0))
        return ls_fail(err, LS_INVALID, "%lld elements cannot take the shape %s", (long long)count,
                       ls_shape_text(*to, want));
    *to = rest;
    return LS_OK;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_shape_attr *a = c->attr;
    ls_status st = resolve(c->in[0], &a->to, err);

    c->out[0] = a->to;
    return st;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_reshape(c->dout[0], ls_value_shape(c->in[0]));
}

const ls_op ls_op_reshape = {
    .name = "reshape",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_shape_attr),
    .flags = LS_OP_VIEW,
    .infer = infer,
    .grad = grad,
    .attr_text = lsi_shape_attr_text,
};

ls_value ls_reshape(ls_value x, ls_shape to)
{
    ls_shape_attr a = {to};

    if (ls_value_ok(x) && resolve(ls_value_shape(x), &a.to, NULL) == LS_OK &&
        ls_shape_equal(a.to, ls_value_shape(x)))
        return x;
    return ls_graph_add(x.g, &ls_op_reshape, 1, &x, &a);
}
