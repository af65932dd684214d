/* fill: a tensor whose elements are all the same number. */
#include <stdio.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_fill_attr *a = c->attr;

    if ((unsigned)a->dtype >= LS_DTYPE_N)
        return ls_fail(err, LS_INVALID, "there is no type number %d", (int)a->dtype);
    c->out[0] = a->shape;
    c->out_dtype[0] = a->dtype;
    return LS_OK;
}

static void ref(const ls_ref_call *c)
{
    const ls_fill_attr *a = c->attr;

    for (int64_t i = 0; i < c->out[0].count; i++) c->out[0].d[i] = a->value;
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_fill_attr *a = attr;
    char shape[LS_SHAPE_TEXT];

    snprintf(buf, n, "shape=%s type=%s value=%.9g", ls_shape_text(a->shape, shape), ls_dtype_name(a->dtype),
             a->value);
}

const ls_op ls_op_fill = {
    .name = "fill",
    .min_in = 0,
    .max_in = 0,
    .n_out = 1,
    .attr_size = sizeof(ls_fill_attr),
    .infer = infer,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_fill(ls_graph *g, ls_shape shape, ls_dtype dtype, double value)
{
    return ls_graph_add(g, &ls_op_fill, 0, NULL, &(ls_fill_attr){shape, dtype, value});
}
