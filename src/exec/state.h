/* state.h (internal): the variables of a model: weights, running statistics, optimiser state. */
#ifndef LS_EXEC_STATE_H
#define LS_EXEC_STATE_H

#include "backend/backend.h"
#include "lockstep/plan.h"

/* Variables for work beside `base`: parameters and optimiser state are those of `base` itself, buffers and
 * accumulated gradients are copies of its own.  A plan over `base` must have been compiled from the same
 * model before; `base` outlives it. */
ls_status ls_state_create_beside(ls_state **out, ls_state *base, ls_err *err) LS_MUST_CHECK;
/* Whether a variable of this role is such a copy. */
static inline bool lsi_state_copies(ls_var_role role)
{
    return role != LS_VAR_PARAM && role != LS_VAR_OPTIMIZER;
}

/* Finds or adds each variable of `g`; index[i] receives the entry of variable i. */
ls_status lsi_state_bind(ls_state *s, const ls_graph *g, int *index, ls_err *err) LS_MUST_CHECK;
ls_tensor *lsi_state_entry(ls_state *s, int i);
/* The memory that plans over these variables run in, in turn. */
struct lsi_workspace *lsi_state_workspace(ls_state *s);
/* Adds the bytes of the variables that are the state's own, this rank's part, to what they are for. */
void lsi_state_bytes(const ls_state *s, size_t by_category[LS_CAT_N]);
/* What variable i is for: parameters and buffers are the model, the rest belongs to the optimiser. */
ls_var_role ls_state_role(const ls_state *s, int i);
/* Whether accumulated gradients wait for an update.  Between two updates they mean nothing, and checkpoints
 * leave them out; the one who runs the plans says so. */
void ls_state_set_pending(ls_state *s, bool pending);
bool ls_state_pending(const ls_state *s);
/* The ranks with which plans over these variables exchange gradients; borrowed, NULL (as at first): none. */
struct ls_peers;
void ls_state_set_peers(ls_state *s, struct ls_peers *peers);
struct ls_peers *ls_state_peers(const ls_state *s);
/* Whether the ranks of this machine keep variable i once.  Its values then change in steps that all of them
 * take, and where the first of them alone writes while the others wait. */
bool ls_state_shared(const ls_state *s, int i);
/* Which piece of variable i, of which ranks have pieces, is this rank's, and in which group. */
typedef struct ls_cut_of {
    int own;
    ls_group group;
} ls_cut_of;
ls_cut_of ls_state_cut(const ls_state *s, int i);
/* This rank's part of the memory that all of those take. */
size_t ls_state_shared_bytes(const ls_state *s);

#endif
