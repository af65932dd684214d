/* module.h: parts of Lockstep that are libraries of their own, loaded when they are needed.
 *
 * A module is linked with something that a machine may lack (MPI, PMIx); without it the program starts all
 * the same, and says what is missing when it is asked for. */
#ifndef LS_BASE_MODULE_H
#define LS_BASE_MODULE_H

#include "lockstep/status.h"

/* Loads lockstep-NAME.so and finds `symbol` in it.  Looked for in $LOCKSTEP_MODULES, beside the program, and
 * where modules are installed.  LS_UNSUPPORTED, with the loader's words, when there is none or it cannot be
 * loaded.  A module stays loaded until the process ends. */
ls_status ls_module_open(void **out, const char *name, const char *symbol, ls_err *err) LS_MUST_CHECK;

/* Any shared object, by its path (with a '/'), for as long as the process lives.  LS_UNSUPPORTED with the
 * loader's words. */
ls_status ls_module_load(void **out, const char *path, ls_err *err) LS_MUST_CHECK;
/* NULL when it has none of that name. */
void *ls_module_symbol(void *module, const char *symbol);

#endif
