/* faults.h: what happens when memory runs out, at every place where it can.
 *
 * A scenario is run with the first allocation failing, then the second, and so on until it succeeds.  Each
 * failing run must return LS_NOMEM with a text and must give back all memory, and so must the run that
 * succeeds. */
#ifndef LS_TESTS_FAULTS_H
#define LS_TESTS_FAULTS_H

#include "lockstep/status.h"

/* Builds something, uses it, and takes it down again. */
typedef ls_status (*check_scenario)(void *arg, ls_err *err);

/* Runs `scenario` with every allocation failing in turn and checks each run; prints "name: N faults". */
void check_faults(const char *name, check_scenario scenario, void *arg);

#endif
