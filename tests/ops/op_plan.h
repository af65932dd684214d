/* op_plan.h: a graph of one's own on a device, for tests that look at particular numbers.
 *
 *     op_plan p = {0};
 *     op_plan_begin(&p);                          add ops to p.g, fetch results by name
 *     op_plan_compile(&p, "ref");                 p.g is gone from here on
 *     op_set(op_plan_find(&p, "x"), values, n);   run_plan(p.plan);
 *     tensor_get(op_plan_find(&p, "y"), i);
 *     op_plan_end(&p);
 * What fails stops the test. */
#ifndef TESTS_OPS_OP_PLAN_H
#define TESTS_OPS_OP_PLAN_H

#include "backend/backend.h"
#include "graph/graph.h"
#include "lockstep/plan.h"
#include "tensors.h"

typedef struct op_plan {
    ls_graph *g;
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
} op_plan;

void op_plan_begin(op_plan *p);
void op_plan_compile(op_plan *p, const char *device);
void op_plan_end(op_plan *p);
/* The input, fetched value or variable of that name. */
const ls_tensor *op_plan_find(const op_plan *p, const char *name);

void op_set(const ls_tensor *t, const double *x, int64_t n); /* n must be the number of elements */

/* Whether this machine can open the backend's device, and $LS_TEST_DEVICE, where it is set, names it.  Ends
 * the test where it names none (exit code 2), or one that cannot be opened (77, with the reason). */
bool device_is_tested(const ls_backend *b);

#endif
