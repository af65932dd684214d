/* chamfer_rules.c: the check that the Chamfer distance and its gradient share. */
#include "ops/chamfer_rules.h"

ls_status lsi_chamfer_check(const ls_infer *c, int p, int q, ls_err *err)
{
    ls_shape a = c->in[p], b = c->in[q];

    if (a.rank != 3 || b.rank != 3 || a.dim[1] != 3 || b.dim[1] != 3 || a.dim[0] != b.dim[0])
        return ls_fail(err, LS_INVALID, "needs two batches of clouds (B, 3, P) and (B, 3, Q)");
    if (a.dim[2] < 1 || b.dim[2] < 1) return ls_fail(err, LS_INVALID, "a cloud has no points");
    if (c->in_dtype[p] != c->in_dtype[q] || !ls_dtype_is_float(c->in_dtype[p]))
        return ls_fail(err, LS_INVALID, "the clouds must have one floating type, got %s and %s",
                       ls_dtype_name(c->in_dtype[p]), ls_dtype_name(c->in_dtype[q]));
    return LS_OK;
}
