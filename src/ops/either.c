/* either: a where two counts are equal, else b. */
#include "ops/ops.h"

enum { COUNT, KNOWN, A, B };

static ls_status infer(ls_infer *c, ls_err *err)
{
    if (ls_shape_count(c->in[COUNT]) != 1 || ls_shape_count(c->in[KNOWN]) != 1)
        return ls_fail(err, LS_INVALID, "what is compared must be one number each");
    if (c->in_dtype[A] != c->in_dtype[B] || !ls_shape_equal(c->in[A], c->in[B]))
        return ls_fail(err, LS_INVALID, "what is chosen from must have one type and shape");
    c->out[0] = c->in[A];
    c->out_dtype[0] = c->in_dtype[A];
    return LS_OK;
}

static void ref(const ls_ref_call *c)
{
    const double *from = c->in[COUNT].d[0] == c->in[KNOWN].d[0] ? c->in[A].d : c->in[B].d;

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = from[i];
}

const ls_op ls_op_either = {
    .name = "either",
    .min_in = 4,
    .max_in = 4,
    .n_out = 1,
    .flags = LS_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
};

ls_value ls_either(ls_value count, ls_value known, ls_value a, ls_value b)
{
    return ls_graph_add(a.g, &ls_op_either, 4, (ls_value[]){count, known, a, b}, NULL);
}
