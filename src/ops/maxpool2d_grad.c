/* maxpool2d_grad: every dy goes to the element that won its window; elements that won several windows collect
 * the sum.  With relu (fused) the output y of the pool is the third input, and dy counts only where y > 0. It
 * has no gradient of its own: no op gathers by window positions. */
#include <string.h>

#include "ops/pool_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_pool_attr *a = c->attr;

    if (c->in_dtype[1] != LS_U8 || !ls_shape_equal(c->in[0], c->in[1]))
        return ls_fail(err, LS_INVALID, "the positions must be u8, of the shape of dy");
    if ((c->n_in == 3) != a->relu)
        return ls_fail(err, LS_INVALID, "takes the pool's output exactly when a relu is fused");
    if (a->relu && (c->in_dtype[2] != c->in_dtype[0] || !ls_shape_equal(c->in[0], c->in[2])))
        return ls_fail(err, LS_INVALID, "y must have the type and shape of dy");
    return lsi_pool_infer_grad(a, c->in_dtype[0], c->in[0], &c->out[0], err);
}

/* One addition per element of dy. */
static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_pool_attr *a = c->attr;

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[0].count; i++) {
        lsi_pool_window w = lsi_pool_window_at(a, c->in[0].shape, i);
        int64_t index = (int64_t)c->in[1].d[i];
        int64_t y = w.top + index / a->kernel[1], x = w.left + index % a->kernel[1];
        double dy =
            a->relu ? ls_act_grad_from_y(LS_ACT_RELU, 0, c->in[2].d[i], c->in[0].d[i]) : c->in[0].d[i];
        c->out[0].d[w.plane + y * a->in[1] + x] += dy;
    }
}

const ls_op ls_op_maxpool2d_grad = {
    .name = "maxpool2d_grad",
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(ls_pool_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_pool_attr_text,
};

ls_value ls_maxpool2d_grad(ls_value dy, ls_value index, ls_pool_attr a)
{
    return ls_graph_add(dy.g, &ls_op_maxpool2d_grad, 2, (ls_value[]){dy, index}, &a);
}
