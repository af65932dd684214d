/* convert: several tensors at once, each in another type or memory layout: what casts and reorders become
 * that a device does in one go (passes/convert.c).  Numbers are rounded, and elements found and stored by the
 * layouts, where a backend stores the results: the reference copies. */
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

static int count_out(int n_in, const void *attr)
{
    (void)attr;
    return n_in;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_cast_attr *a = c->attr;

    if ((unsigned)a->to >= LS_DTYPE_N || !ls_dtype_is_float(a->to))
        return ls_fail(err, LS_INVALID, "there is no floating type number %d", (int)a->to);
    for (int k = 0; k < c->n_in; k++) {
        if (!ls_dtype_is_float(c->in_dtype[k]))
            return ls_fail(err, LS_INVALID, "tensor %d must be of a floating type, got %s", k,
                           ls_dtype_name(c->in_dtype[k]));
        c->out[k] = c->in[k];
        c->out_dtype[k] = a->to;
    }
    return LS_OK;
}

static void ref(const ls_ref_call *c)
{
    for (int k = 0; k < c->n_in; k++)
        memcpy(c->out[k].d, c->in[k].d, sizeof(double) * (size_t)c->in[k].count);
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_cast_attr *a = attr;

    snprintf(buf, n, "to=%s", ls_dtype_name(a->to));
}

const ls_op ls_op_convert = {
    .name = "convert",
    .min_in = 1,
    .max_in = -1,
    .attr_size = sizeof(ls_cast_attr),
    .flags = LS_OP_MOVE,
    .count_out = count_out,
    .infer = infer,
    .ref = ref,
    .attr_text = attr_text,
};
