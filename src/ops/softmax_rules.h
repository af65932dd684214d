/* softmax_rules.h: what softmax, log_softmax and cross_entropy share: rows along the last dimension. */
#ifndef LS_OPS_SOFTMAX_RULES_H
#define LS_OPS_SOFTMAX_RULES_H

#include "ops/ops.h"

/* Shape rule of ops that work on rows along the last dimension: like input 0, floating type, rank at least 1.
 */
ls_status lsi_infer_rows(ls_infer *c, ls_err *err);
/* Five per element: compare, subtract, exp, add, divide (or subtract the logarithm). */
double lsi_softmax_flops(const ls_graph *g, const ls_node *node);
/* log(sum of exp(x[i])) without overflow; -inf for n = 0. */
double lsi_log_sum_exp(const double *x, int64_t n);
/* Sum over the last dimension, which stays as 1. */
ls_value lsi_row_sum(ls_value x);

#endif
