/* upsample2d: every element of x (N, C, H, W) becomes a block of factor x factor equal elements. */
#include "ops/upsample_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_upsample_attr *a = c->attr;
    ls_status st = lsi_upsample_check(c, err);

    if (st != LS_OK) return st;
    c->out[0] = c->in[0];
    for (int i = 2; i < 4; i++) c->out[0].dim[i] *= a->factor;
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_upsample_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_upsample2d_grad(c->dout[0], a->factor);
}

static void ref(const ls_ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] = c->in[0].d[lsi_upsample_source(c->attr, c->out[0].shape, i)];
}

const ls_op ls_op_upsample2d = {
    .name = "upsample2d",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_upsample_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = lsi_upsample_attr_text,
};

ls_value ls_upsample2d(ls_value x, int factor)
{
    ls_upsample_attr a = {factor};

    return ls_graph_add(x.g, &ls_op_upsample2d, 1, &x, &a);
}
