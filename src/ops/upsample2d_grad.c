/* upsample2d_grad: the adjoint of upsample2d: the sum of each block of factor x factor elements. */
#include <string.h>

#include "ops/upsample_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_upsample_attr *a = c->attr;
    ls_status st = lsi_upsample_check(c, err);

    if (st != LS_OK) return st;
    c->out[0] = c->in[0];
    for (int i = 2; i < 4; i++) {
        if (c->in[0].dim[i] % a->factor != 0)
            return ls_fail(err, LS_INVALID, "a size of %lld is no multiple of the factor %d",
                           (long long)c->in[0].dim[i], a->factor);
        c->out[0].dim[i] /= a->factor;
    }
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_upsample_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_upsample2d(c->dout[0], a->factor);
}

/* One addition per element of dy. */
static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[0].count; i++)
        c->out[0].d[lsi_upsample_source(c->attr, c->in[0].shape, i)] += c->in[0].d[i];
}

const ls_op ls_op_upsample2d_grad = {
    .name = "upsample2d_grad",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_upsample_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_upsample_attr_text,
};

ls_value ls_upsample2d_grad(ls_value dy, int factor)
{
    ls_upsample_attr a = {factor};

    return ls_graph_add(dy.g, &ls_op_upsample2d_grad, 1, &dy, &a);
}
