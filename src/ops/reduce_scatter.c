/* reduce_scatter_start and reduce_scatter_wait: the weighted sum over ranks, of which each gets a piece.
 *
 * start: in weight, x1..xn; out a token.  wait: in token, x1..xn; out y1..yn, where yk is piece number rank
 * of the flat sum over ranks of weight * xk: ceil(count / ranks) elements, zeros behind the tensor's end. */
#include "ops/collective_rules.h"

static ls_status infer_wait(ls_infer *c, ls_err *err)
{
    const int ranks = ((const ls_collective_attr *)c->attr)->ranks;

    if (ranks < 1) return ls_fail(err, LS_INVALID, "pieces for %d ranks", ranks);
    for (int k = 0; k < c->n_out; k++) {
        c->out[k] = LS_SHAPE(ls_exchange_piece(ls_shape_count(c->in[1 + k]), ranks));
        c->out_dtype[k] = c->in_dtype[1 + k];
    }
    return lsi_collective_check(c, 1, err);
}

/* What a rank's loss makes of its piece, weighted like the loss, concerns every rank's tensor there. */
static void grad_wait(ls_grad_call *c)
{
    const ls_node *start = c->g->nodes[c->g->values[c->in[0].id]->node];
    const ls_value weight = {c->g, start->in[0]};
    ls_collective_attr attr = *(const ls_collective_attr *)start->attr;

    for (int k = 0; k < c->n_out; k++) {
        ls_value dy, all, room[2];
        if (!c->want[1 + k] || !ls_value_ok(c->dout[k])) continue;
        attr.bucket = -1;
        dy = ls_mul(c->dout[k], weight);
        all = ls_all_gather(1, &dy, attr, room);
        if (!ls_value_ok(all)) return;
        all = ls_prefix(all, ls_shape_count(ls_value_shape(c->in[1 + k])));
        c->din[1 + k] = ls_reshape(all, ls_value_shape(c->in[1 + k]));
    }
}

const ls_op ls_op_reduce_scatter_start = {
    .name = "reduce_scatter_start",
    .min_in = 2,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_EAGER,
    .queue = LS_QUEUE_COMM,
    .collective = LS_COLL_REDUCE_SCATTER,
    .coll_op = LS_COLL_OP_START,
    .infer = lsi_infer_weighted_start,
    .ref = lsi_ref_weighted_start,
    .attr_text = lsi_collective_text,
};

const ls_op ls_op_reduce_scatter_wait = {
    .name = "reduce_scatter_wait",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_COLLECTIVE | LS_OP_WAIT,
    .collective = LS_COLL_REDUCE_SCATTER,
    .coll_op = LS_COLL_OP_WAIT,
    .count_out = lsi_collective_results,
    .infer = infer_wait,
    .grad = grad_wait,
    .flops = lsi_collective_flops,
    .ref = lsi_ref_wait,
    .attr_text = lsi_collective_text,
};

ls_value ls_reduce_scatter(ls_value weight, int n, const ls_value *x, ls_collective_attr attr, ls_value *in)
{
    if (!ls_value_ok(weight)) return weight;
    return lsi_collective_add(&ls_op_reduce_scatter_start, &ls_op_reduce_scatter_wait, weight, n, x, attr,
                              in);
}
