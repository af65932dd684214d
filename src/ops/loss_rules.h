/* loss_rules.h: what the losses and metrics on (N, C) logits with integer labels share. */
#ifndef LS_OPS_LOSS_RULES_H
#define LS_OPS_LOSS_RULES_H

#include "ops/ops.h"

/* Checks that input `logits` is (N, C) of floating type and input `labels` is (N) of type i32. */
ls_status lsi_check_labelled(const ls_infer *c, int logits, int labels, ls_err *err);
/* Checks that input i is a scalar (rank 0) of type `want`: the gradient of a loss. */
ls_status lsi_check_dloss(const ls_infer *c, int i, ls_dtype want, ls_err *err);

#endif
