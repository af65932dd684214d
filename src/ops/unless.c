/* unless: x, or zeros where a number is not 0.  Also of an x that is not finite, which no product makes 0. */
#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    if (!ls_dtype_is_float(c->in_dtype[0]) || ls_shape_count(c->in[0]) != 1)
        return ls_fail(err, LS_INVALID, "what decides must be one number");
    c->out[0] = c->in[1];
    c->out_dtype[0] = c->in_dtype[1];
    return LS_OK;
}

static void ref(const ls_ref_call *c)
{
    const bool zero = c->in[0].d[0] != 0;

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = zero ? 0 : c->in[1].d[i];
}

const ls_op ls_op_unless = {
    .name = "unless",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
};

ls_value ls_unless(ls_value found, ls_value x)
{
    return ls_graph_add(x.g, &ls_op_unless, 2, (ls_value[]){found, x}, NULL);
}
