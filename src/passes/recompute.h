/* recompute.h: which units are computed again in the backward pass, and what that saves and costs. */
#ifndef LS_PASSES_RECOMPUTE_H
#define LS_PASSES_RECOMPUTE_H

#include "passes/lower.h"

/* What one unit would save and cost. */
typedef struct ls_unit_cost {
    double bytes; /* activations that would not be kept */
    double flops; /* arithmetic that would be done again */
} ls_unit_cost;

/* Fills of[0 .. n_units - 1] for a record, which is lowered as far as needed and of no use afterwards: give
 * it a copy.  Errors are sticky in it. */
void ls_recompute_costs(ls_graph *g, const ls_strategy *how, ls_unit_cost *of);

#endif
