/* shape_rules.c: axes, splits and attribute texts of ops that move or reduce elements. */
#include "ops/shape_rules.h"

#include <stdio.h>

ls_status lsi_infer_same(ls_infer *c, ls_err *err)
{
    (void)err;
    c->out[0] = c->in[0];
    return LS_OK;
}

ls_status lsi_resolve_axis(int *axis, int rank, ls_err *err)
{
    if (rank == 0) return ls_fail(err, LS_INVALID, "axis %d: a scalar has no axes", *axis);
    if (*axis < -rank || *axis >= rank)
        return ls_fail(err, LS_INVALID, "axis %d lies outside %d..%d", *axis, -rank, rank - 1);
    if (*axis < 0) *axis += rank;
    return LS_OK;
}

lsi_split lsi_split_at(ls_shape s, int axis)
{
    lsi_split r = {1, s.dim[axis], 1};

    for (int i = 0; i < axis; i++) r.outer *= s.dim[i];
    for (int i = axis + 1; i < s.rank; i++) r.inner *= s.dim[i];
    return r;
}

void lsi_shape_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_shape_attr *a = attr;
    char shape[LS_SHAPE_TEXT];

    snprintf(buf, n, "to=%s", ls_shape_text(a->to, shape));
}

void lsi_axis_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_axis_attr *a = attr;

    snprintf(buf, n, "axis=%d", a->axis);
}
