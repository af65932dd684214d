/* pad_rules.h: geometry shared by pad and pad_adjoint. */
#ifndef LS_OPS_PAD_RULES_H
#define LS_OPS_PAD_RULES_H

#include "ops/ops.h"

/* Checks that an unpadded tensor of shape x may be padded and computes the padded shape. */
ls_status lsi_pad_shape(const ls_pad_attr *a, ls_shape x, ls_shape *padded, ls_err *err);
void lsi_pad_attr_text(const void *attr, char *buf, size_t n);

/* Calls `each` for every element of the padded tensor that has a source: element `from` of x is seen at
 * element `to` of the padded tensor. */
typedef void (*lsi_pad_visit)(double *x, double *padded, int64_t from, int64_t to);
void lsi_pad_each(const ls_pad_attr *a, ls_ref_tensor x, ls_ref_tensor padded, lsi_pad_visit each);

#endif
