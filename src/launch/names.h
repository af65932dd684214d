/* names.h: names by which MPI tells the machines of a run apart. */
#ifndef LS_LAUNCH_NAMES_H
#define LS_LAUNCH_NAMES_H

#include "lockstep/status.h"

#define LSI_HOST_NAME 64 /* bytes of a machine's own name, its end included */

/* The names of n machines, separated by commas, made of letters, digits, '-' and '.', all different.  A
 * machine keeps its own name unless an earlier one has it (launchers on one host are machines of one name);
 * it is then followed by a number that makes it like nobody's.  *out is the caller's to ls_free. */
ls_status lsi_host_names(char **out, char (*own)[LSI_HOST_NAME], int n, ls_err *err) LS_MUST_CHECK;

#endif
