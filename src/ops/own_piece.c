/* own_piece: of a tensor that all ranks of a group have, the piece that is this rank's: a vector of
 * ceil(count / ranks) elements, zeros behind the tensor's end.
 *
 * Which piece that is is known when a plan is compiled (passes/own_piece.c): before, plans are the same on
 * all ranks, and so are their hashes. */
#include <stdio.h>

#include "ops/macros.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_own_piece_attr *a = c->attr;

    if (a->ranks < 1) return ls_fail(err, LS_INVALID, "a piece for one of %d ranks", a->ranks);
    c->out[0] = LS_SHAPE(ls_exchange_piece(ls_shape_count(c->in[0]), a->ranks));
    return LS_OK;
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_own_piece_attr *a = attr;

    snprintf(buf, n, "ranks=%d%s", a->ranks, ls_group_text(a->group));
}

const ls_op ls_op_own_piece = {
    .name = "own_piece",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_own_piece_attr),
    .flags = LS_OP_NO_GRAD,
    .infer = infer,
    .attr_text = attr_text,
};

ls_value ls_own_piece(ls_value x, int ranks, ls_group group)
{
    return ls_graph_add(x.g, &ls_op_own_piece, 1, &x, &(ls_own_piece_attr){ranks, group});
}
