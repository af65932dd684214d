/* shape_rules.h: what ops that move elements or reduce along an axis share. */
#ifndef LS_OPS_SHAPE_RULES_H
#define LS_OPS_SHAPE_RULES_H

#include "ops/ops.h"

/* Shape rule of ops whose output is like their input, whatever its type. */
ls_status lsi_infer_same(ls_infer *c, ls_err *err);
/* Replaces a negative axis by the one it stands for; fails when `rank` dimensions do not have it. */
ls_status lsi_resolve_axis(int *axis, int rank, ls_err *err);

/* A row-major tensor seen along one axis: element (o, k, i) lies at (o * length + k) * inner + i. */
typedef struct lsi_split {
    int64_t outer, length, inner;
} lsi_split;
lsi_split lsi_split_at(ls_shape s, int axis);

void lsi_shape_attr_text(const void *attr, char *buf, size_t n);
void lsi_axis_attr_text(const void *attr, char *buf, size_t n);

#endif
