/* calibration_internal.h: what the files of calibration.h share. */
#ifndef LS_PREDICT_CALIBRATION_INTERNAL_H
#define LS_PREDICT_CALIBRATION_INTERNAL_H

#include "predict/machine.h"
#include "predict/network.h"

/* Adds to the machine all steps of several ranks that these files of `bench --export` have, beside what
 * machine and network say of them.  The files have been read before. */
ls_status lsi_calibration_steps(ls_machine *m, const ls_network *n, const char *const *exports, int n_exports,
                                ls_err *err) LS_MUST_CHECK;

#endif
