/* calibration.h: a machine and a network from files of measurements, as one file (docs/predict.md). */
#ifndef LS_PREDICT_CALIBRATION_H
#define LS_PREDICT_CALIBRATION_H

#include <jansson.h>

#include "predict/fit.h"
#include "predict/machine.h"

enum { LS_CALIBRATION_FORMAT = 1, LS_CALIBRATION_FILES = 256 };

typedef struct ls_calibration {
    bool has_network, has_machine;
    ls_fit fit; /* the network */
    char host[LS_RANK_HOST_MAX];
    ls_machine machine;
} ls_calibration;

/* From files of `bench --collectives` (the network) and of `bench EXPERIMENT --export` (the machine), in any
 * order; what there is none of is not known.  LS_INVALID names the file that is neither, or what is wrong
 * with it.  Release in any case. */
ls_status ls_calibration_make(ls_calibration *c, const char *const *paths, int n, ls_err *err) LS_MUST_CHECK;
void ls_calibration_release(ls_calibration *c); /* frees and zeroes */
/* As the file has it, which ls_machine_open and ls_network_open read; NULL when memory runs out.  The
 * caller's to json_decref. */
json_t *ls_calibration_json(const ls_calibration *c);

/* Replaces the file (base/replace.h), once what is to be written has been read as it will be. */
ls_status ls_calibration_write(const ls_calibration *c, const char *path, ls_err *err) LS_MUST_CHECK;

#endif
