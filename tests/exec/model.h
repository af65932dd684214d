/* model.h: one plan with its device and state, and a kernel that fails, for tests of how plans run. */
#ifndef LS_TESTS_EXEC_MODEL_H
#define LS_TESTS_EXEC_MODEL_H

#include "backend/backend.h"
#include "exec/plan_internal.h"

typedef struct model {
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
} model;

/* Takes the graph; variables begin the same every time.  The seed is that of `far`'s order. */
void model_open(model *m, ls_graph *g, const char *device, uint64_t seed);
void model_close(model *m);

/* In place of a step's kernel: says in its second run that it has failed. */
typedef struct failing {
    ls_kernel real;
    int runs;
} failing;

void failing_put(failing *f, lsi_step *s);
void failing_take(failing *f, lsi_step *s);

#endif
