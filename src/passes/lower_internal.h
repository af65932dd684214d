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

/* The shape of all of a parameter, of which the variable may be a piece. */
static inline ls_shape lsi_whole(const ls_graph *g, const ls_var *v)
{
    return v->home == LS_HOME_SHARDED ? v->whole : g->values[v->first]->shape;
}
/* Whether an optimiser works on pieces: those that need norms of whole parameters, where these are in pieces
 * themselves. */
static inline bool lsi_in_pieces(const ls_strategy *how, const ls_op *rule)
{
    return how->sharding == LS_SHARD_WEIGHTS ||
           (how->sharding != LS_SHARD_NOTHING && ls_optim_by_element(rule));
}
/* The variable is this rank's piece of one of that shape. */
void lsi_cut(ls_var *v, const ls_strategy *how, ls_shape whole);
/* What all_gather made of the pieces of a tensor, as that tensor. */
ls_value lsi_gathered(ls_value pieces, ls_shape whole);

/* Replaces x[0..n-1] by their sums over ranks of weight times each, in one exchange; the last `plain` are not
 * weighted.  Where shards are added up, `number` is the bucket's, and what is not plain says only what shape
 * the sums have. */
void lsi_exchange(ls_graph *g, const ls_strategy *how, int number, ls_value weight, int n, int plain,
                  ls_value *x);

/* What travels at the end of a part besides gradients: running statistics that it has changed, then metrics;
 * returns how many, with the number of the former.  `vars` and `x` have room for all variables and values. */
int lsi_list_rest(ls_graph *g, const ls_strategy *how, int32_t *vars, ls_value *x, int *n_buffers);
/* Whether the plan is of the step's last update, or gives what that needs. */
static inline bool lsi_is_last(const ls_graph *g, const ls_strategy *how)
{
    return how->stage + 1 == g->n_stages;
}

/* -- guard.c: gradients that are not finite ----------------------------------------------------------------
 */

/* The loss scale of a step: 1, a constant, or the variable's current version (loss_scale.c). */
ls_value lsi_loss_scale(ls_graph *g, const ls_strategy *how);

/* What has looked at the updates of a plan: numbers of values that are 0 where all is well. */
typedef struct lsi_guard {
    int32_t found[LS_GUARD_UPDATES];
    int n;
} lsi_guard;
/* Notes what was found of one update; false, with the error in the graph, where that cannot be. */
bool lsi_guard_note(lsi_guard *guard, ls_value found);
/* Where each rank has looked at pieces of its own: what all have found. */
ls_value lsi_guard_everywhere(ls_value found);
/* The learning rate `lr`, an input, or the one that holds if the step before was left out. */
ls_value lsi_guard_rate(ls_value lr);
/* Where what was found leads: counters, the loss scale, the report to the host. */
void lsi_guard_conclude(ls_graph *g, const ls_strategy *how, const lsi_guard *guard);

/* -- layerwise.c: rules that need norms of parameters of which ranks have pieces ---------------------------
 */

/* grads[i], of pieces `weights`, become what sgd makes the steps of lars of; parameters that do not adapt
 * have neither ratio nor decay. */
void lsi_lars_gradients(const ls_strategy *how, const ls_optim_attr *attr, ls_value scale, int n,
                        const bool *adapts, const ls_value *weights, ls_value *grads);
/* steps[i], what adam with a rate of 1 and no decay has made of zeros, become the pieces as lamb updates
 * them. */
void lsi_lamb_step(const ls_strategy *how, const ls_optim_attr *attr, ls_value lr, ls_value scale, int n,
                   const ls_value *weights, ls_value *steps);

/* -- keep.c: the pool of the replay layer ----------------------------------------------------------------
 * `in` are the inputs of a `keep`, x and slots become those of one by place. */

/* What is added up over the batches of an update. */
void lsi_keep_add_up(ls_graph *g, const ls_strategy *how, const ls_value *in);
void lsi_keep_added_up(ls_graph *g, const ls_strategy *how, ls_value *in);
/* The same of one shard: its tensors by place, and their weight. */
ls_value lsi_keep_leaf(ls_graph *g, const ls_strategy *how, const ls_value *in, ls_value x[2]);
/* What is added up over ranks. */
void lsi_keep_exchange(ls_graph *g, const ls_strategy *how, const ls_keep_attr *a, ls_value *in);
/* The next versions of pool and filled. */
void lsi_keep_store(bool by_place, const ls_value *in, ls_value *out);

#endif
