/* all_reduce_start and all_reduce_wait: the weighted sum over ranks of one bucket of tensors.
 * all_reduce_leaf: what one shard gives to such a sum, where that follows the tree over shards.
 *
 * start: in weight, x1..xn; out a token.  wait: in token, x1..xn; out y1..yn, where yk is the sum over all
 * ranks of weight * xk; of the last `plain` tensors, of xk.  With shards yk is the sum over all leaves; xk
 * then only says what shape it has (but for the plain ones).  leaf: in weight, shard, x1..xn; out a token.
 * One rank without a communicator has no leaves: such plans are made for ranks, be it one. */
#include "ops/collective_rules.h"

/* Ranks' losses are weighted like their tensors, so the gradient of the sum is the same sum of gradients. */
static void grad_wait(ls_grad_call *c)
{
    const ls_node *start = c->g->nodes[c->g->values[c->in[0].id]->node];
    ls_value *dout = ls_arena_alloc(c->g->arena, sizeof *dout * (size_t)(2 * c->n_out + 1)), sum;
    const ls_collective_attr *a = start->attr;
    ls_collective_attr attr = {.bucket = -1, .group = a->group};
    int n = 0;

    if (dout == NULL) {
        ls_graph_fail(c->g, LS_NOMEM, "autodiff: no memory");
        return;
    }
    for (int k = 0; k < c->n_out; k++)
        if (c->want[1 + k] && ls_value_ok(c->dout[k])) {
            dout[n++] = c->dout[k];
            attr.plain += k >= c->n_out - a->plain;
        }
    if (n == 0) return;
    sum = ls_all_reduce((ls_value){c->g, start->in[0]}, n, dout, attr, dout + n);
    for (int k = 0, i = 0; ls_value_ok(sum) && k < c->n_out; k++)
        if (c->want[1 + k] && ls_value_ok(c->dout[k])) c->din[1 + k] = ls_graph_out(sum, i++);
}

static ls_status infer_leaf(ls_infer *c, ls_err *err)
{
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = c->in_dtype[0];
    return lsi_collective_check(c, 2, err);
}

/* Of a sum over leaves the tensors themselves are there for their shapes, but for the plain ones, of start
 * and wait alike. */
static bool reads(const void *attr, int n_in, int k)
{
    const ls_collective_attr *a = attr;

    return a->shards == 0 || k == 0 || k >= n_in - a->plain;
}

const ls_op ls_op_all_reduce_leaf = {
    .name = "all_reduce_leaf",
    .min_in = 3,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_EAGER | LS_OP_EFFECT,
    .queue = LS_QUEUE_COMM,
    .collective = LS_COLL_ALL_REDUCE,
    .coll_op = LS_COLL_OP_LEAF,
    .infer = infer_leaf,
    .flops = lsi_collective_flops,
    .ref = lsi_ref_weighted_start,
    .attr_text = lsi_collective_text,
};

const ls_op ls_op_all_reduce_start = {
    .name = "all_reduce_start",
    .min_in = 2,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_EAGER,
    .queue = LS_QUEUE_COMM,
    .collective = LS_COLL_ALL_REDUCE,
    .coll_op = LS_COLL_OP_START,
    .infer = lsi_infer_weighted_start,
    .reads = reads,
    .ref = lsi_ref_weighted_start,
    .attr_text = lsi_collective_text,
};

const ls_op ls_op_all_reduce_wait = {
    .name = "all_reduce_wait",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_COLLECTIVE | LS_OP_WAIT,
    .collective = LS_COLL_ALL_REDUCE,
    .coll_op = LS_COLL_OP_WAIT,
    .count_out = lsi_collective_results,
    .infer = lsi_infer_wait,
    .grad = grad_wait,
    .flops = lsi_collective_flops,
    .reads = reads,
    .ref = lsi_ref_wait,
    .attr_text = lsi_collective_text,
};

ls_value ls_all_reduce(ls_value weight, int n, const ls_value *x, ls_collective_attr attr, ls_value *in)
{
    if (!ls_value_ok(weight)) return weight;
    return lsi_collective_add(&ls_op_all_reduce_start, &ls_op_all_reduce_wait, weight, n, x, attr, in);
}

ls_value ls_all_reduce_leaf(ls_value weight, ls_value shard, int n, const ls_value *x,
                            ls_collective_attr attr, ls_value *in)
{
    in[0] = weight;
    in[1] = shard;
    for (int i = 0; i < n; i++) in[2 + i] = x[i];
    return ls_graph_add(weight.g, &ls_op_all_reduce_leaf, 2 + n, in, &attr);
}
