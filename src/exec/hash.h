/* hash.h: the hash of a plan that is not compiled. */
#ifndef LS_EXEC_HASH_H
#define LS_EXEC_HASH_H

#include "lockstep/plan.h"
#include "passes/lower.h"

/* What ls_plan_hash would say of the plan compiled from `g`, of which nothing but what is needed stays.  0,
 * with the error in the graph, when memory runs out. */
uint64_t ls_plan_hash_of(ls_graph *g);

/* One number for the collectives of a plan, and the order in which ranks start them and wait for them: plans
 * that run at the same time on different ranks need the same (ls_strategy.turns).  0: it has none. */
uint64_t ls_plan_turns(const ls_plan *p);
/* One number for the waits alone, which is the same on machines with any number of ranks. */
uint64_t ls_plan_waits(const ls_plan *p);
/* The same two numbers. */
typedef struct ls_turns {
    uint64_t turns, waits;
} ls_turns;
/* Whether the plan that would be compiled from `g`, which goes, has the collectives of how->turns (0: any) in
 * their order: LS_UNSUPPORTED where it has not.  *out, unless NULL: those that it has. */
ls_status ls_plan_check_turns(ls_graph *g, const ls_strategy *how, ls_device *dev, ls_state *state,
                              ls_turns *out, ls_err *err) LS_MUST_CHECK;

#endif
