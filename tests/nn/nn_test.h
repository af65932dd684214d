/* nn_test.h: builds steps on the reference device and runs them. */
#ifndef LS_TESTS_NN_NN_TEST_H
#define LS_TESTS_NN_NN_TEST_H

#include "check.h"
#include "lockstep/nn.h"
#include "tensors.h"

typedef struct nn_run {
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
    ls_step *step;
} nn_run;

/* Builds and compiles a step with zeroed inputs, default learning rates and initial weights of seed 1; stops
 * the test when that fails. */
nn_run nn_compile(void (*build)(ls_step *s), int64_t batch, ls_mode mode);
void nn_release(nn_run *r);
/* The error a build ends with; the step is thrown away. */
ls_err nn_error(void (*build)(ls_step *s));

/* A variable, an input, a fetched value; stops the test when there is none. */
const ls_tensor *nn_var(const nn_run *r, const char *name);
const ls_tensor *nn_input(const nn_run *r, const char *name);
const ls_tensor *nn_fetched(const nn_run *r, const char *name);
/* The first element of a fetched value. */
double nn_fetch(const nn_run *r, const char *name);

#endif
