/* tensors.h: for tests that run plans and look into tensors.  What fails stops the program. */
#ifndef LS_TESTS_TENSORS_H
#define LS_TESTS_TENSORS_H

#include "lockstep/plan.h"

void run_plan(ls_plan *p);
void init_state(ls_state *s, uint64_t seed);

/* Element i, of whatever type. */
double tensor_get(const ls_tensor *t, int64_t i);
void tensor_put(const ls_tensor *t, int64_t i, double x);
/* All elements, by one copy: a device may take long for each. */
void tensor_get_all(const ls_tensor *t, double *to);
void tensor_put_all(const ls_tensor *t, const double *from);
/* The first bytes. */
void tensor_read(const ls_tensor *t, void *to, size_t bytes);
void tensor_write(const ls_tensor *t, const void *from, size_t bytes);
/* The same bytes, and as many. */
bool tensor_equal(const ls_tensor *a, const ls_tensor *b);

#endif
