/* pad_adjoint: the adjoint of pad: every element of x receives the sum of the padded elements that show it.
 */
#include <string.h>

#include "ops/pad_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_pad_attr *a = c->attr;
    ls_shape dy = c->in[0], x = dy, padded;

    if (dy.rank < 2) return ls_fail(err, LS_INVALID, "needs at least two dimensions");
    for (int i = 0; i < 4; i++) x.dim[x.rank - 2 + i % 2] -= a->pad[i];
    if (x.dim[x.rank - 2] < 0 || x.dim[x.rank - 1] < 0)
        return ls_fail(err, LS_INVALID, "more padding than there are elements");
    c->out[0] = x;
    return lsi_pad_shape(a, x, &padded, err);
}

static void grad(ls_grad_call *c)
{
    const ls_pad_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_pad2d(c->dout[0], a->mode, a->pad[0], a->pad[1], a->pad[2], a->pad[3]);
}

static void add(double *x, double *padded, int64_t from, int64_t to)
{
    x[from] += padded[to];
}

static void ref(const ls_ref_call *c)
{
    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    lsi_pad_each(c->attr, c->out[0], c->in[0], add);
}

const ls_op ls_op_pad_adjoint = {
    .name = "pad_adjoint",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_pad_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = lsi_pad_attr_text,
};

ls_value ls_pad2d_adjoint(ls_value dy, ls_pad_mode mode, int64_t top, int64_t left, int64_t bottom,
                          int64_t right)
{
    ls_pad_attr a = {mode, {top, left, bottom, right}};

    return ls_graph_add(dy.g, &ls_op_pad_adjoint, 1, &dy, &a);
}
