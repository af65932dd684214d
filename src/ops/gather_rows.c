/* gather_rows: row n of the result is row index[n] of the table; a row of NaN where the index is out of
 * range, so that the mistake shows in the loss instead of reading foreign memory.  Its gradient is
 * scatter_rows. */
#include <math.h>

#include "ops/index_rules.h"
#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    if (c->in[0].rank != 2 || c->in[1].rank != 1)
        return ls_fail(err, LS_INVALID, "needs a table (V, D) and indices (N)");
    if (!ls_dtype_is_float(c->in_dtype[0]) || c->in_dtype[1] != LS_I32)
        return ls_fail(err, LS_INVALID, "needs a table of floating type and i32 indices, got %s and %s",
                       ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[1]));
    c->out[0] = LS_SHAPE(c->in[1].dim[0], c->in[0].dim[1]);
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_scatter_rows(c->dout[0], c->in[1], ls_value_shape(c->in[0]).dim[0]);
}

static void ref(const ls_ref_call *c)
{
    int64_t V = c->in[0].shape.dim[0], D = c->in[0].shape.dim[1];

    for (int64_t i = 0; i < c->out[0].count; i++) {
        double row = c->in[1].d[i / D];
        c->out[0].d[i] = lsi_index_ok(row, V) ? c->in[0].d[(int64_t)row * D + i % D] : NAN;
    }
}

const ls_op ls_op_gather_rows = {
    .name = "gather_rows",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .ref = ref,
};

ls_value ls_gather_rows(ls_value table, ls_value index)
{
    return ls_graph_add(table.g, &ls_op_gather_rows, 2, (ls_value[]){table, index}, NULL);
}
