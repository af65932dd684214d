/* assign: the next version of a variable is a copy of a value. */
#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    char a[LS_SHAPE_TEXT], b[LS_SHAPE_TEXT];

    if (c->in_dtype[0] != c->in_dtype[1] || !ls_shape_equal(c->in[0], c->in[1]))
        return ls_fail(err, LS_INVALID, "a variable of %s %s cannot take %s %s",
                       ls_dtype_name(c->in_dtype[0]), ls_shape_text(c->in[0], a),
                       ls_dtype_name(c->in_dtype[1]), ls_shape_text(c->in[1], b));
    c->out[0] = c->in[0];
    return LS_OK;
}

static int alias(int n_in, const void *attr, int k)
{
    (void)n_in;
    (void)attr;
    (void)k;
    return 0;
}

static void ref(const ls_ref_call *c)
{
    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = c->in[1].d[i];
}

const ls_op ls_op_assign = {
    .name = "assign",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,
    .infer = infer,
    .alias = alias,
    .ref = ref,
};

ls_value ls_assign(ls_value variable, ls_value value)
{
    return ls_graph_add(variable.g, &ls_op_assign, 2, (ls_value[]){variable, value}, NULL);
}
