/* collective_rules.h: what the collectives have in common. */
#ifndef LS_OPS_COLLECTIVE_RULES_H
#define LS_OPS_COLLECTIVE_RULES_H

#include "ops/ops.h"

/* All tensors from input `first` on are of the type of input 0, f32 or f64; a weight or token is one number.
 */
ls_status lsi_collective_check(const ls_infer *c, int first, ls_err *err);
/* A token, after that check of tensors behind a weight, or from the first input on. */
ls_status lsi_infer_weighted_start(ls_infer *c, ls_err *err);
ls_status lsi_infer_start(ls_infer *c, ls_err *err);
/* Results like what was given. */
ls_status lsi_infer_wait(ls_infer *c, ls_err *err);
int lsi_collective_results(int n_in, const void *attr); /* all inputs of a wait but its token */
void lsi_collective_text(const void *attr, char *buf, size_t n);
/* One addition and one product for every element that is added up. */
double lsi_collective_flops(const ls_graph *g, const ls_node *n);

/* The two nodes; `weight` is left out where it is not valid. */
ls_value lsi_collective_add(const ls_op *start, const ls_op *wait, ls_value weight, int n, const ls_value *x,
                            ls_collective_attr attr, ls_value *in);

/* One rank: the token is the weight (1 where there is none), the result weight * x. */
void lsi_ref_weighted_start(const ls_ref_call *c);
void lsi_ref_start(const ls_ref_call *c);
void lsi_ref_wait(const ls_ref_call *c);

#endif
