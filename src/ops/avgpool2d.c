/* avgpool2d: the mean of each window; with count_pad the zeros of the padding count as elements. */
#include "ops/pool_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    return lsi_pool_infer(c->attr, c->in_dtype[0], c->in[0], &c->out[0], err);
}

static void grad(ls_grad_call *c)
{
    const ls_pool_attr *a = c->attr;

    if (c->want[0]) c->din[0] = ls_avgpool2d_grad(c->dout[0], *a);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_out_shape(g, n, 0)) * (double)lsi_pool_window_size(n->attr);
}

static void ref(const ls_ref_call *c)
{
    const ls_pool_attr *a = c->attr;

    for (int64_t i = 0; i < c->out[0].count; i++) {
        lsi_pool_window w = lsi_pool_window_at(a, c->out[0].shape, i);
        double sum = 0;
        for (int64_t y = w.y0; y < w.y1; y++)
            for (int64_t x = w.x0; x < w.x1; x++) sum += c->in[0].d[w.plane + y * a->in[1] + x];
        c->out[0].d[i] = sum * lsi_pool_weight(a, &w);
    }
}

const ls_op ls_op_avgpool2d = {
    .name = "avgpool2d",
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

ls_value ls_avgpool2d(ls_value x, ls_pool_attr a)
{
    return ls_graph_add(x.g, &ls_op_avgpool2d, 1, &x, &a);
}
