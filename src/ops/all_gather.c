/* all_gather_start and all_gather_wait: every rank has a piece, and all get all of them.
 *
 * start: in x1..xn, vectors; out a token.  wait: in token, x1..xn; out y1..yn, where yk is the xk of all
 * ranks, one after the other.  Nothing is added up, so that each may be of a type of its own, in 16 bits for
 * instance.  Gradients stop here: those of gathered parameters are scattered by whoever
 * adds them up. */
#include "ops/collective_rules.h"

static ls_status check_types(const ls_infer *c, int first, ls_err *err)
{
    for (int i = first; i < c->n_in; i++)
        if (!ls_dtype_is_float(c->in_dtype[i]))
            return ls_fail(err, LS_INVALID, "tensor %d is %s: only floating-point numbers are gathered", i,
                           ls_dtype_name(c->in_dtype[i]));
    return LS_OK;
}

static ls_status infer_start(ls_infer *c, ls_err *err)
{
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = c->in_dtype[0] == LS_F64 ? LS_F64 : LS_F32;
    return check_types(c, 0, err);
}

static ls_status infer_wait(ls_infer *c, ls_err *err)
{
    const int ranks = ((const ls_collective_attr *)c->attr)->ranks;

    if (ranks < 1) return ls_fail(err, LS_INVALID, "pieces of %d ranks", ranks);
    for (int k = 0; k < c->n_out; k++) {
        if (c->in[1 + k].rank != 1)
            return ls_fail(err, LS_INVALID, "a piece is a vector, not of %d dimensions", c->in[1 + k].rank);
        c->out[k] = LS_SHAPE(c->in[1 + k].dim[0] * ranks);
        c->out_dtype[k] = c->in_dtype[1 + k];
    }
    return check_types(c, 1, err);
}

const ls_op ls_op_all_gather_start = {
    .name = "all_gather_start",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_EAGER,
    .queue = LS_QUEUE_COMM,
    .collective = LS_COLL_ALL_GATHER,
    .coll_op = LS_COLL_OP_START,
    .infer = infer_start,
    .ref = lsi_ref_start,
    .attr_text = lsi_collective_text,
};

const ls_op ls_op_all_gather_wait = {
    .name = "all_gather_wait",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_WAIT,
    .collective = LS_COLL_ALL_GATHER,
    .coll_op = LS_COLL_OP_WAIT,
    .count_out = lsi_collective_results,
    .infer = infer_wait,
    .ref = lsi_ref_wait,
    .attr_text = lsi_collective_text,
};

ls_value ls_all_gather(int n, const ls_value *x, ls_collective_attr attr, ls_value *in)
{
    return lsi_collective_add(&ls_op_all_gather_start, &ls_op_all_gather_wait, (ls_value){NULL, -1}, n, x,
                              attr, in);
}
