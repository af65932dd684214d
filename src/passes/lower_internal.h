/* lower_internal.h: shared by the passes that expand a record. */
#ifndef LS_PASSES_LOWER_INTERNAL_H
#define LS_PASSES_LOWER_INTERNAL_H

#include "ops/macros.h"
#include "passes/lower.h"
#include "passes/passes.h"

/* True while nothing has failed; memory that is missing is noted. */
static inline bool lsi_sound(const ls_graph *g)
{
    return g->err.status == LS_OK;
}
void lsi_no_memory(ls_graph *g);

/* The variable in which what belongs to `name` is added up over the batches of an update: its current
 * version.
 */
ls_value lsi_sum_variable(ls_graph *g, const char *name, ls_shape shape);
/* Adds weight * x to it, or begins anew with that. */
void lsi_add_to_sum(ls_graph *g, ls_value sum, ls_value x, ls_value weight);

/* Replaces x[0..n-1] by their sums over ranks of weight times each, in one exchange; the last `plain` are not
 * weighted. */
void lsi_exchange(ls_graph *g, ls_value weight, int n, int plain, ls_value *x);

/* -- keep.c: the pool of the replay layer ----------------------------------------------------------------
 * `in` are the inputs of a `keep`, x and slots become those of one by place. */

/* What is added up over the batches of an update. */
void lsi_keep_add_up(ls_graph *g, const ls_strategy *how, const ls_value *in);
void lsi_keep_added_up(ls_graph *g, const ls_strategy *how, ls_value *in);
/* What is added up over ranks. */
void lsi_keep_exchange(ls_graph *g, const ls_strategy *how, bool by_place, ls_value *in);
/* The next versions of pool and filled. */
void lsi_keep_store(bool by_place, const ls_value *in, ls_value *out);

#endif
