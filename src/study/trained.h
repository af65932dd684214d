/* trained.h: the trainings of a study with --train, as predictions of whole runs need them. */
#ifndef LS_STUDY_TRAINED_H
#define LS_STUDY_TRAINED_H

#include "predict/trainings.h"

/* Adds every training of the folder that is complete, with the batch and seed that its run had.  When the
 * accuracy was reached is told by the run's validations; where there were none, by the test at its end.
 * LS_INVALID: no study, not one that trains, one of another experiment than `name`, or without a complete
 * training that has an accuracy; LS_DATA: damaged. */
ls_status ls_study_trained(ls_trainings *t, const char *folder, const char *name, ls_err *err) LS_MUST_CHECK;

#endif
