/* avgpool2d_grad: the adjoint of avgpool2d: spreads every dy evenly over its window. */
#include <string.h>

#include "ops/pool_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    return lsi_pool_infer_grad(c->attr, c->in_dtype[0], c->in[0], &c->out[0], err);
}

static void grad(ls_grad_call *c)
{
    const ls_pool_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_avgpool2d(c->dout[0], *a);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0)) * (double)lsi_pool_window_size(n->attr);
}

static void ref(const ls_ref_call *c)
{
    const ls_pool_attr *a = c->attr;

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[0].count; i++) {
        lsi_pool_window w = lsi_pool_window_at(a, c->in[0].shape, i);
        double share = c->in[0].d[i] * lsi_pool_weight(a, &w);
        for (int64_t y = w.y0; y < w.y1; y++)
            for (int64_t x = w.x0; x < w.x1; x++) c->out[0].d[w.plane + y * a->in[1] + x] += share;
    }
}

const ls_op ls_op_avgpool2d_grad = {
    .name = "avgpool2d_grad",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_pool_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_pool_attr_text,
};

ls_value ls_avgpool2d_grad(ls_value dy, ls_pool_attr a)
{
    return ls_graph_add(dy.g, &ls_op_avgpool2d_grad, 1, &dy, &a);
}
