/* maxpool2d: the largest element of each window, and its position in the window as one byte, which is all
 * that the gradient needs.  Padding never wins; of equal elements the first does; a NaN wins over everything.
 */
#include <math.h>

#include "ops/pool_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_pool_attr *a = c->attr;
    ls_status st = lsi_pool_infer(a, c->in_dtype[0], c->in[0], &c->out[0], err);

    if (st != LS_OK) return st;
    st = lsi_pool_check_positions(a, err);
    if (st != LS_OK) return st;
    c->out[1] = c->out[0];
    c->out_dtype[1] = LS_U8;
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_pool_attr *a = c->attr;

    LS_BUG_IF(a->relu);
    if (c->want[0]) c->din[0] = ls_maxpool2d_grad(c->dout[0], c->out[1], *a);
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
        double best = -INFINITY;
        int64_t index = -1;
        for (int64_t y = w.y0; y < w.y1; y++)
            for (int64_t x = w.x0; x < w.x1; x++) {
                double v = c->in[0].d[w.plane + y * a->in[1] + x];
                if (index >= 0 && !(v > best) && !(isnan(v) && !isnan(best))) continue;
                best = v;
                index = (y - w.top) * a->kernel[1] + (x - w.left);
            }
        c->out[0].d[i] = a->relu ? ls_act_eval(LS_ACT_RELU, 0, best) : best;
        c->out[1].d[i] = (double)index;
    }
}

const ls_op ls_op_maxpool2d = {
    .name = "maxpool2d",
    .min_in = 1,
    .max_in = 1,
    .n_out = 2,
    .attr_size = sizeof(ls_pool_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_pool_attr_text,
};

ls_value ls_maxpool2d(ls_value x, ls_pool_attr a)
{
    return ls_graph_add(x.g, &ls_op_maxpool2d, 1, &x, &a);
}
