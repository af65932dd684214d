/* fault.h: gradients that overflow on request, so that tests can see what follows.
 *
 * The environment variable LOCKSTEP_OVERFLOW is a list such as "3@0,7@1": in step 3 on rank 0, and in step 7
 * on rank 1, the loss is multiplied by infinity before it is differentiated.  Steps count from 1. */
#ifndef LS_TRAIN_FAULT_H
#define LS_TRAIN_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

#define LS_FAULT_OVERFLOW "LOCKSTEP_OVERFLOW"

/* The list; NULL: there is none.  LS_INVALID, naming the place, where it cannot be read. */
ls_status ls_fault_overflows(const char **list, ls_err *err) LS_MUST_CHECK;
/* The largest rank in it; -1: none. */
int64_t ls_fault_last_rank(const char *list);
/* Whether the step of the rank is in it. */
bool ls_fault_is_listed(const char *list, int64_t step, int rank);

#endif
