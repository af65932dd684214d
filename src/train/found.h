/* found.h: what a guarded step (passes/guard.c) tells the host about gradients that are not finite. */
#ifndef LS_TRAIN_FOUND_H
#define LS_TRAIN_FOUND_H

#include "graph/graph.h"
#include "lockstep/plan.h"
#include "passes/lower.h"

typedef struct ls_found {
    int64_t parameter; /* the first whose gradient is not, counted from 1 over all calls; 0: all are finite */
    double scale;      /* the loss scale of the step; 0: nobody has looked */
    bool by_rank;      /* it is known which ranks' own gradients are not: */
    float rank[LS_GUARD_SLOTS];
} ls_found;

/* Of that run of the plan, which is waited for.  Of plans without a guard nothing is found. */
ls_status ls_found_read(ls_found *out, ls_plan *p, uint64_t run, ls_err *err) LS_MUST_CHECK;
/* What `rank` gives to the sum, by which it is found there; ranks beyond the first LS_FOUND_RANKS are not. */
enum { LS_FOUND_RANKS = 8 * LS_GUARD_SLOTS }; /* sums of so few powers of two are exact in 16 bits, too */
void ls_found_mark(ls_plan *p, int rank);
bool ls_found_on(const ls_found *f, int rank);

/* "the gradient of \"conv1.weight\" is not finite on rank 2 of 4"; the names are those of the record. Without
 * a name where only other ranks have found it, in pieces of their own (parallel.strategy). */
const char *ls_found_text(const ls_found *f, const ls_graph *record, int ranks, char *buf, size_t size);

#endif
