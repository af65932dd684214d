/* store_rows: the next version of a table has row n of the given rows at index[n]; rows whose index is out of
 * range go nowhere, and of two for the same place the later one stays. */
#include "ops/index_rules.h"
#include "ops/ops.h"

enum { TABLE, ROWS, INDEX };

static ls_status infer(ls_infer *c, ls_err *err)
{
    if (c->in[TABLE].rank != 2 || c->in[ROWS].rank != 2 || c->in[TABLE].dim[1] != c->in[ROWS].dim[1] ||
        !ls_shape_equal(c->in[INDEX], LS_SHAPE(c->in[ROWS].dim[0])))
        return ls_fail(err, LS_INVALID, "needs a table (V, D), rows (N, D) and indices (N)");
    if (c->in_dtype[TABLE] != c->in_dtype[ROWS] || c->in_dtype[INDEX] != LS_I32)
        return ls_fail(err, LS_INVALID, "needs rows of the table's type %s and i32 indices, got %s and %s",
                       ls_dtype_name(c->in_dtype[TABLE]), ls_dtype_name(c->in_dtype[ROWS]),
                       ls_dtype_name(c->in_dtype[INDEX]));
    c->out[0] = c->in[TABLE];
    return LS_OK;
}

static int alias(int n_in, const void *attr, int k)
{
    (void)n_in;
    (void)attr;
    (void)k;
    return TABLE;
}

/* The rows are read and written; the rest of the table stays where it is. */
static double bytes(const ls_graph *g, const ls_node *n)
{
    const ls_vinfo *rows = g->values[n->in[ROWS]];

    return 2.0 * (double)ls_layout_bytes(rows->layout, rows->dtype, rows->shape);
}

static void ref(const ls_ref_call *c)
{
    const int64_t V = c->in[TABLE].shape.dim[0], D = c->in[TABLE].shape.dim[1];

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = c->in[TABLE].d[i];
    for (int64_t i = 0; i < c->in[ROWS].count; i++) {
        const double row = c->in[INDEX].d[i / D];
        if (lsi_index_ok(row, V)) c->out[0].d[(int64_t)row * D + i % D] = c->in[ROWS].d[i];
    }
}

const ls_op ls_op_store_rows = {
    .name = "store_rows",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,
    .infer = infer,
    .bytes = bytes,
    .alias = alias,
    .ref = ref,
};

ls_value ls_store_rows(ls_value table, ls_value rows, ls_value index)
{
    return ls_graph_add(table.g, &ls_op_store_rows, 3, (ls_value[]){table, rows, index}, NULL);
}
