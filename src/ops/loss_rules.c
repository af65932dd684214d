/* loss_rules.c: checks of logits, labels and the gradient of a loss. */
#include "ops/loss_rules.h"

ls_status lsi_check_labelled(const ls_infer *c, int logits, int labels, ls_err *err)
{
    if (c->in[logits].rank != 2 || c->in[labels].rank != 1 || c->in[labels].dim[0] != c->in[logits].dim[0])
        return ls_fail(err, LS_INVALID, "needs one row (N, C) and one label (N) per sample");
    if (!ls_dtype_is_float(c->in_dtype[logits]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[logits]));
    if (c->in_dtype[labels] != LS_I32)
        return ls_fail(err, LS_INVALID, "labels must be i32, got %s", ls_dtype_name(c->in_dtype[labels]));
    return LS_OK;
}

ls_status lsi_check_dloss(const ls_infer *c, int i, ls_dtype want, ls_err *err)
{
    if (c->in[i].rank != 0 || c->in_dtype[i] != want)
        return ls_fail(err, LS_INVALID, "the gradient of the loss must be a scalar of type %s",
                       ls_dtype_name(want));
    return LS_OK;
}
