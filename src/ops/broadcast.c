/* broadcast_start and broadcast_wait: all get what the root has.
 *
 * start: in x1..xn; out a token.  wait: in token, x1..xn; out y1..yn, where yk is the root's xk; that of
 * other ranks says only what shape it has.  Gradients stop here. */
#include "ops/collective_rules.h"

const ls_op ls_op_broadcast_start = {
    .name = "broadcast_start",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_EAGER,
    .queue = LS_QUEUE_COMM,
    .collective = LS_COLL_BROADCAST,
    .coll_op = LS_COLL_OP_START,
    .infer = lsi_infer_start,
    .ref = lsi_ref_start,
    .attr_text = lsi_collective_text,
};

const ls_op ls_op_broadcast_wait = {
    .name = "broadcast_wait",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_WAIT,
    .collective = LS_COLL_BROADCAST,
    .coll_op = LS_COLL_OP_WAIT,
    .count_out = lsi_collective_results,
    .infer = lsi_infer_wait,
    .ref = lsi_ref_wait,
    .attr_text = lsi_collective_text,
};

ls_value ls_broadcast(int n, const ls_value *x, ls_collective_attr attr, ls_value *in)
{
    return lsi_collective_add(&ls_op_broadcast_start, &ls_op_broadcast_wait, (ls_value){NULL, -1}, n, x, attr,
                              in);
}
