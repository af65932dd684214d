/* upsample_rules.c: checks and positions for upsample2d and its adjoint. */
#include "ops/upsample_rules.h"

#include <stdio.h>

ls_status lsi_upsample_check(const ls_infer *c, ls_err *err)
{
    const ls_upsample_attr *a = c->attr;

    if (c->in[0].rank != 4) return ls_fail(err, LS_INVALID, "needs an input (N, C, H, W)");
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    if (a->factor < 1) return ls_fail(err, LS_INVALID, "the factor must be at least 1, got %d", a->factor);
    return LS_OK;
}

void lsi_upsample_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_upsample_attr *a = attr;

    snprintf(buf, n, "factor=%d", a->factor);
}

int64_t lsi_upsample_source(const ls_upsample_attr *a, ls_shape large, int64_t i)
{
    int64_t x = i % large.dim[3], y = i / large.dim[3] % large.dim[2],
            plane = i / (large.dim[3] * large.dim[2]);

    return (plane * (large.dim[2] / a->factor) + y / a->factor) * (large.dim[3] / a->factor) + x / a->factor;
}
