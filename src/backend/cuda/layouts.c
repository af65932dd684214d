/* layouts.c: which layout each op wants its tensors in.
 *
 * Convolutions work channels last, maps and weights; ops that can work on either order take what is there
 * (map_layouts.h).  Whatever has no rule is plain. */
#include "backend/cuda/kernel_util.h"
#include "backend/map_layouts.h"

/* Maxima over points, which are maps of one row: (N, C, 1, L) along L leaves (N, C, 1) in either order. */
static bool over_points(ls_shape x, int axis)
{
    return x.rank == 4 && x.dim[2] == 1 && axis == 3;
}

static void rule_reduce_max(ls_map_query *q)
{
    const ls_vinfo *x = q->g->values[q->n->in[0]];

    ls_map_set_in(q, 0,
                  q->have[0] == q->layout && over_points(x->shape, ((const ls_axis_attr *)q->n->attr)->axis));
}

/* The gradient has no map to follow; what made the index had one. */
static void rule_reduce_max_grad(ls_map_query *q)
{
    const int32_t maker = q->g->values[q->n->in[1]]->node;
    const ls_node *max = maker >= 0 ? q->g->nodes[maker] : NULL;
    const ls_vinfo *dx = q->g->values[q->n->out[0]];

    if (max == NULL || max->op != &ls_op_reduce_max || q->g->values[max->in[0]]->layout != q->layout) return;
    ls_map_set_out(q, 0, over_points(dx->shape, ((const ls_reduce_max_grad_attr *)q->n->attr)->axis));
}

void lsi_cuda_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                      const ls_layout **in, const ls_layout **out)
{
    ls_map_query q = {&ls_layout_nhwc, g, n, have, in, out};

    if (lsi_cuda_of(dev)->plain) return;
    if (n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx || n->op == &ls_op_conv2d_dw) {
        for (int i = 0; i < 2; i++) ls_map_set_in(&q, i, true);
        ls_map_set_out(&q, 0, true);
    } else if (n->op == &ls_op_conv_max_dx || n->op == &ls_op_conv_max_dw) {
        ls_map_set_in(&q, 0, n->op == &ls_op_conv_max_dw);
        ls_map_set_out(&q, 0, n->op == &ls_op_conv_max_dx);
    } else if (n->op == &ls_op_batch_norm_pool || n->op == &ls_op_batch_norm_pool_grad) {
        for (int i = 0; i < n->n_in; i++) ls_map_set_in(&q, i, true); /* statistics are no maps */
        for (int k = 0; k < n->n_out; k++) ls_map_set_out(&q, k, true);
    } else if (n->op == &ls_op_cast) {
        ls_map_follow(&q, 0);
    } else if (n->op == &ls_op_reduce_max) {
        rule_reduce_max(&q);
    } else if (n->op == &ls_op_reduce_max_grad) {
        rule_reduce_max_grad(&q);
    } else {
        ls_map_rule(&q);
    }
}
