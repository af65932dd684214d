/* barrier: all ranks of a machine come before any goes on.
 *
 * It reads nothing, and its token is read by nobody: control edges say what comes before and what after it.
 * The communicator plans it (exec/collectives.c); what is below is the case of one rank, which waits for
 * nobody. */
#include <stdio.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    (void)err;
    c->out[0] = LS_SHAPE_SCALAR;
    return LS_OK;
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_collective_attr *a = attr;

    snprintf(buf, n, "%s number=%d", a->at == LS_BARRIER_BEFORE_UPDATE ? "before" : "after", a->bucket);
}

static void ref(const ls_ref_call *c)
{
    c->out[0].d[0] = 0;
}

const ls_op ls_op_barrier = {
    .name = "barrier",
    .min_in = 0,
    .max_in = 0,
    .n_out = 1,
    .attr_size = sizeof(ls_collective_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_WAIT | LS_OP_EFFECT,
    .collective = LS_COLL_BARRIER,
    .coll_op = LS_COLL_OP_WHOLE,
    .infer = infer,
    .ref = ref,
    .attr_text = attr_text,
};

const char *ls_barrier_name(int at)
{
    return at == LS_BARRIER_BEFORE_UPDATE ? "before an update" : "after an update";
}

ls_value ls_barrier(ls_graph *g, ls_barrier_at at)
{
    const ls_collective_attr attr = {.bucket = g->n_collectives++, .group = LS_GROUP_MACHINE, .at = (int)at};

    return ls_graph_add(g, &ls_op_barrier, 0, NULL, &attr);
}
