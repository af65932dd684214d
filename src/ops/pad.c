/* pad: x (..., H, W) with rows and columns added around the last two dimensions: zeros, or the image mirrored
 * at its edge elements (which are not repeated). */
#include <string.h>

#include "ops/pad_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    return lsi_pad_shape(c->attr, c->in[0], &c->out[0], err);
}

static void grad(ls_grad_call *c)
{
    const ls_pad_attr *a = c->attr;

    if (c->want[0])
        c->din[0] = ls_pad2d_adjoint(c->dout[0], a->mode, a->pad[0], a->pad[1], a->pad[2], a->pad[3]);
}

static void copy(double *x, double *padded, int64_t from, int64_t to)
{
    padded[to] = x[from];
}

static void ref(const ls_ref_call *c)
{
    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    lsi_pad_each(c->attr, c->in[0], c->out[0], copy);
}

const ls_op ls_op_pad = {
    .name = "pad",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_pad_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = lsi_pad_attr_text,
};

ls_value ls_pad2d(ls_value x, ls_pad_mode mode, int64_t top, int64_t left, int64_t bottom, int64_t right)
{
    ls_pad_attr a = {mode, {top, left, bottom, right}};

    return ls_graph_add(x.g, &ls_op_pad, 1, &x, &a);
}
