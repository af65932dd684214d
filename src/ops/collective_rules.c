/* collective_rules.c: shapes, costs and the case of one rank of what ranks do together.
 *
 * A collective is two nodes, so that a plan can compute between them.  start: in a weight (of sums), x1..xn;
 * out a token.  wait: in token, x1..xn; out y1..yn.  The tensors are inputs of both, which keeps them in
 * place until they have arrived.  The reference kernels are the case of one rank; with more the communicator
 * plans these nodes (exec/collectives.c), because an exchange belongs to it and not to a device. */
#include "ops/collective_rules.h"

#include <stdio.h>

ls_status lsi_collective_check(const ls_infer *c, int first, ls_err *err)
{
    const ls_dtype type = c->in_dtype[0];

    if (type != LS_F32 && type != LS_F64)
        return ls_fail(err, LS_INVALID, "a bucket of %s: only f32 (and f64 on one rank) can be exchanged",
                       ls_dtype_name(type));
    for (int i = 0; i < first; i++)
        if (c->in_dtype[i] != type || ls_shape_count(c->in[i]) != 1)
            return ls_fail(err, LS_INVALID, "the weight (or token) must be one floating-point number");
    for (int i = first; i < c->n_in; i++)
        if (c->in_dtype[i] != type)
            return ls_fail(err, LS_INVALID, "tensor %d is %s, but a bucket of %s takes no other type", i,
                           ls_dtype_name(c->in_dtype[i]), ls_dtype_name(type));
    return LS_OK;
}

static ls_status token(ls_infer *c, int first, ls_err *err)
{
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = c->in_dtype[0];
    return lsi_collective_check(c, first, err);
}

ls_status lsi_infer_weighted_start(ls_infer *c, ls_err *err)
{
    return token(c, 1, err);
}

ls_status lsi_infer_start(ls_infer *c, ls_err *err)
{
    return token(c, 0, err);
}

ls_status lsi_infer_wait(ls_infer *c, ls_err *err)
{
    for (int k = 0; k < c->n_out; k++) {
        c->out[k] = c->in[1 + k];
        c->out_dtype[k] = c->in_dtype[1 + k];
    }
    return lsi_collective_check(c, 1, err);
}

int lsi_collective_results(int n_in, const void *attr)
{
    (void)attr;
    return n_in - 1;
}

void lsi_collective_text(const void *attr, char *buf, size_t n)
{
    const ls_collective_attr *a = attr;
    int at = snprintf(buf, n, "bucket=%d%s", a->bucket, ls_group_text(a->group));

    if (a->carried) at += snprintf(buf + at, n - (size_t)at, " carried");
    if (a->exact) at += snprintf(buf + at, n - (size_t)at, " exact");
    if (a->plain > 0) at += snprintf(buf + at, n - (size_t)at, " plain=%d", a->plain);
    if (a->shards > 0) at += snprintf(buf + at, n - (size_t)at, " shards=%lld", (long long)a->shards);
    if (a->ranks > 0) at += snprintf(buf + at, n - (size_t)at, " ranks=%d", a->ranks);
    if (a->room > 0) at += snprintf(buf + at, n - (size_t)at, " room=%d", a->room);
    if (a->root > 0) snprintf(buf + at, n - (size_t)at, " root=%d", a->root);
}

double lsi_collective_flops(const ls_graph *g, const ls_node *n)
{
    double count = 0;

    for (int k = 1; k < n->n_in; k++) count += (double)ls_shape_count(*ls_node_in_shape(g, n, k));
    return 2 * count;
}

ls_value lsi_collective_add(const ls_op *start, const ls_op *wait, ls_value weight, int n, const ls_value *x,
                            ls_collective_attr attr, ls_value *in)
{
    const bool weighs = ls_value_ok(weight);
    ls_graph *g = n > 0 ? x[0].g : weight.g;
    ls_value begun;

    for (int i = 0; i < n; i++) {
        if (!ls_value_ok(x[i])) return x[i];
        in[1 + i] = x[i];
    }
    if (attr.bucket < 0) attr.bucket = g->n_collectives++;
    in[0] = weight;
    begun = ls_graph_add(g, start, n + weighs, in + !weighs, &attr);
    if (!ls_value_ok(begun)) return begun;
    in[0] = begun;
    return ls_graph_add(g, wait, 1 + n, in, &attr);
}

const ls_node *ls_carried_wait(const ls_graph *g, const ls_node *start)
{
    const ls_collective_attr *a = start->attr;

    for (int32_t i = 0; a->carried && i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!n->dead && n->carried && (n->op->flags & LS_OP_COLLECTIVE) &&
            n->op->coll_op == LS_COLL_OP_WAIT && ((const ls_collective_attr *)n->attr)->bucket == a->bucket)
            return n;
    }
    return NULL;
}

/* -- one rank ---------------------------------------------------------------------------------------------
 */

void lsi_ref_weighted_start(const ls_ref_call *c)
{
    c->out[0].d[0] = c->in[0].d[0];
}

void lsi_ref_start(const ls_ref_call *c)
{
    c->out[0].d[0] = 1;
}

void lsi_ref_wait(const ls_ref_call *c)
{
    const int plain = ((const ls_collective_attr *)c->attr)->plain;

    for (int k = 0; k < c->n_out; k++)
        for (int64_t i = 0; i < c->out[k].count; i++)
            c->out[k].d[i] =
                i < c->in[1 + k].count ? (k < c->n_out - plain ? c->in[0].d[0] : 1) * c->in[1 + k].d[i] : 0;
}
