/* scatter_rows: adds row n of the input into row index[n] of zeros (n_rows, D); rows whose index is out of
 * range are ignored.  The adjoint of gather_rows, and the other way round. */
#include <stdio.h>
#include <string.h>

#include "ops/index_rules.h"
#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_scatter_attr *a = c->attr;

    if (c->in[0].rank != 2 || c->in[1].rank != 1 || c->in[1].dim[0] != c->in[0].dim[0])
        return ls_fail(err, LS_INVALID, "needs rows (N, D) and indices (N)");
    if (!ls_dtype_is_float(c->in_dtype[0]) || c->in_dtype[1] != LS_I32)
        return ls_fail(err, LS_INVALID, "needs rows of floating type and i32 indices, got %s and %s",
                       ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[1]));
    c->out[0] = LS_SHAPE(a->n_rows, c->in[0].dim[1]);
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_gather_rows(c->dout[0], c->in[1]);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_scatter_attr *a = c->attr;
    int64_t D = c->in[0].shape.dim[1];

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[0].count; i++) {
        double row = c->in[1].d[i / D];
        if (lsi_index_ok(row, a->n_rows)) c->out[0].d[(int64_t)row * D + i % D] += c->in[0].d[i];
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_scatter_attr *a = attr;

    snprintf(buf, n, "rows=%lld", (long long)a->n_rows);
}

const ls_op ls_op_scatter_rows = {
    .name = "scatter_rows",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(ls_scatter_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_scatter_rows(ls_value rows, ls_value index, int64_t n_rows)
{
    ls_scatter_attr a = {n_rows};

    return ls_graph_add(rows.g, &ls_op_scatter_rows, 2, (ls_value[]){rows, index}, &a);
}
