/* pointwise_rules.c: shape rules, broadcasting and the reference kernel of all element-wise ops. */
#include "ops/pointwise_rules.h"

#include <stdio.h>

ls_status lsi_infer_unary(ls_infer *c, ls_err *err)
{
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    c->out[0] = c->in[0];
    return LS_OK;
}

ls_status lsi_infer_binary(ls_infer *c, ls_err *err)
{
    if (c->in_dtype[0] != c->in_dtype[1])
        return ls_fail(err, LS_INVALID, "types differ: %s and %s; cast one of them",
                       ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[1]));
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    if (!ls_shape_broadcast(c->in[0], c->in[1], &c->out[0]))
        return ls_fail(err, LS_INVALID, "the shapes cannot be broadcast together");
    return LS_OK;
}

int64_t lsi_broadcast_offset(ls_shape operand, ls_shape result, int64_t index)
{
    int64_t offset = 0, stride = 1;

    for (int i = operand.rank - 1; i >= 0; i--) {
        int64_t extent = result.dim[i + result.rank - operand.rank];
        int64_t pos = index % extent;
        index /= extent;
        if (operand.dim[i] != 1) offset += pos * stride;
        stride *= operand.dim[i];
    }
    return offset;
}

void lsi_ref_pointwise(const ls_op *op, const ls_ref_call *c)
{
    static const double none[2] = {0, 0};
    const double *p = c->attr != NULL ? ((const ls_pw_attr *)c->attr)->p : none;

    for (int64_t i = 0; i < c->out[0].count; i++) {
        double a = c->in[0].d[lsi_broadcast_offset(c->in[0].shape, c->out[0].shape, i)];
        double b = c->n_in > 1 ? c->in[1].d[lsi_broadcast_offset(c->in[1].shape, c->out[0].shape, i)] : 0;
        c->out[0].d[i] = op->pw_eval(a, b, p);
    }
}

void lsi_pw_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_pw_attr *a = attr;

    snprintf(buf, n, "%.9g %.9g", a->p[0], a->p[1]);
}
