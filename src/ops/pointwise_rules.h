/* pointwise_rules.h: what all element-wise ops share. */
#ifndef LS_OPS_POINTWISE_RULES_H
#define LS_OPS_POINTWISE_RULES_H

#include "ops/ops.h"

/* Shape rule of unary ops: the output is like the input, which must be of floating type. */
ls_status lsi_infer_unary(ls_infer *c, ls_err *err);
/* Shape rule of binary ops: equal dtypes, NumPy broadcasting. */
ls_status lsi_infer_binary(ls_infer *c, ls_err *err);
/* Position in a broadcast operand of the element at `index` of the result. */
int64_t lsi_broadcast_offset(ls_shape operand, ls_shape result, int64_t index);
/* The reference kernel of all element-wise ops: calls the op's function on every element, broadcasting. */
void lsi_ref_pointwise(const ls_op *op, const ls_ref_call *c);
void lsi_pw_attr_text(const void *attr, char *buf, size_t n);

static inline ls_value lsi_add_unary(const ls_op *op, ls_value x, double p0, double p1)
{
    ls_pw_attr a = {{p0, p1}};

    return ls_graph_add(x.g, op, 1, &x, op->attr_size > 0 ? &a : NULL);
}
static inline ls_value lsi_add_binary(const ls_op *op, ls_value a, ls_value b, double p0)
{
    ls_pw_attr attr = {{p0, 0}};

    return ls_graph_add(a.g, op, 2, (ls_value[]){a, b}, op->attr_size > 0 ? &attr : NULL);
}

#endif
