/* attention_rules.h: what attention and its gradient share. */
#ifndef LS_OPS_ATTENTION_RULES_H
#define LS_OPS_ATTENTION_RULES_H

#include "ops/ops.h"

/* Checks that inputs 0..2 (q, k, v) are of one floating type and one shape (B, T, D). */
ls_status lsi_attention_check(const ls_infer *c, ls_err *err);
/* `products` multiply-adds for each (query, key, channel). */
double lsi_attention_flops(ls_shape q, int products);
void lsi_attention_attr_text(const void *attr, char *buf, size_t n);
/* sum of a[i] * b[i] */
double lsi_dot(const double *a, const double *b, int64_t n);

#endif
