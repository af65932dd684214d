/* upsample_rules.h: what upsample2d and its adjoint share. */
#ifndef LS_OPS_UPSAMPLE_RULES_H
#define LS_OPS_UPSAMPLE_RULES_H

#include "ops/ops.h"

/* Checks the factor, and that the input is floating and (N, C, H, W). */
ls_status lsi_upsample_check(const ls_infer *c, ls_err *err);
void lsi_upsample_attr_text(const void *attr, char *buf, size_t n);
/* The element of the small image that element i of the large one (of shape `large`) shows. */
int64_t lsi_upsample_source(const ls_upsample_attr *a, ls_shape large, int64_t i);

#endif
