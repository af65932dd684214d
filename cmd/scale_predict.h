/* scale_predict.h: predictions for a study's points (scale --predict), made and written down before they are
 * measured. */
#ifndef LS_CMD_SCALE_PREDICT_H
#define LS_CMD_SCALE_PREDICT_H

#include "cli.h"
#include "study/predicted.h"

typedef struct scale_predict scale_predict;

/* Opens the calibration and the network that `args` names and tells the study of them (s->predicted_by). *out
 * NULL: none is named.  LS_INVALID where they are no description of the study's ranks; nothing was created by
 * then. */
ls_status scale_predict_open(scale_predict **out, const cli_args *args, ls_study *s,
                             ls_err *err) LS_MUST_CHECK;
/* What the counts of an open study that have no prediction yet will take, in its folder. */
ls_status scale_predict_write(scale_predict *p, const ls_study *s, ls_err *err) LS_MUST_CHECK;
void scale_predict_close(scale_predict *p); /* accepts NULL */

#endif
