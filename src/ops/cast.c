/* cast: the same numbers in another type.  Floating types round to nearest (ties to even), which happens
 * where a backend stores the result; only the way to integers is spelled out here. */
#include <math.h>
#include <stdio.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_cast_attr *a = c->attr;

    if ((unsigned)a->to >= LS_DTYPE_N)
        return ls_fail(err, LS_INVALID, "there is no type number %d", (int)a->to);
    c->out[0] = c->in[0];
    c->out_dtype[0] = a->to;
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    if (c->want[0]) c->din[0] = ls_cast(c->dout[0], ls_value_dtype(c->in[0]));
}

static double to_integer(double x, double low, double high)
{
    if (isnan(x)) return 0;
    return trunc(fmin(fmax(x, low), high));
}

static double convert(double x, ls_dtype to)
{
    switch (to) {
    case LS_I32: return to_integer(x, INT32_MIN, INT32_MAX);
    case LS_U8: return to_integer(x, 0, UINT8_MAX);
    case LS_BOOL: return x != 0;
    default: return x;
    }
}

static void ref(const ls_ref_call *c)
{
    const ls_cast_attr *a = c->attr;

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = convert(c->in[0].d[i], a->to);
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_cast_attr *a = attr;

    snprintf(buf, n, "to=%s", ls_dtype_name(a->to));
}

const ls_op ls_op_cast = {
    .name = "cast",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_cast_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_cast(ls_value x, ls_dtype to)
{
    if (ls_value_ok(x) && ls_value_dtype(x) == to) return x;
    return ls_graph_add(x.g, &ls_op_cast, 1, &x, &(ls_cast_attr){to});
}
