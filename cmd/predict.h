/* predict.h: what the files of `lockstep predict` share. */
#ifndef LS_CMD_PREDICT_H
#define LS_CMD_PREDICT_H

#include "cli.h"

/* Predictions, as text, JSON, CSV or a page; and the names of what comes with the program.  Both return the
 * exit code. */
int predict_ask(const cli_args *args);
int predict_list(void);

/* LS_INVALID names an option that the form of the command does not take (predict_forms.c). */
ls_status predict_forms_check(const cli_args *args, ls_err *err) LS_MUST_CHECK;

/* --calibrate: measures this machine and its network, or takes files; writes a calibration.  Returns the exit
 * code. */
int predict_calibrate(const cli_args *args);
/* Whether it measures, or files are all it takes. */
bool predict_calibrate_measures(const cli_args *args);
/* Its words and options. */
ls_status predict_calibrate_check(const cli_args *args, ls_err *err) LS_MUST_CHECK;

/* -- measurements of --calibrate (predict_measure.c) -------------------------------------------------------
 */

enum { PREDICT_COUNTS = 32, PREDICT_FILES = 256 };

typedef struct predict_counts {
    int of[PREDICT_COUNTS], n; /* ascending, each once */
} predict_counts;

/* "1,2,4" of `option`. */
ls_status predict_counts_read(predict_counts *c, const char *option, const char *text,
                              ls_err *err) LS_MUST_CHECK;

/* What is measured, and the files that come of it. */
typedef struct predict_measure {
    const cli_args *args;
    predict_counts ranks, batches; /* batches: none without an experiment */
    int batch;                     /* of several ranks */
    int node, nodes;               /* this machine of so many; 1: alone */
    int threads;                   /* of a rank */
    int full;                      /* ranks that fill the machine; 1: they do not share its processors */
    char folder[LS_PATH_MAX];      /* where the files are: made, and removed with all in it */
    char file[PREDICT_FILES][LS_PATH_MAX + 16];
    int n_files, done; /* measurements that there are */
} predict_measure;

/* Runs the benchmarks as children, one after the other.  LS_CANCELLED when asked to stop.  Release in any
 * case. */
ls_status predict_measure_run(predict_measure *m, ls_err *err) LS_MUST_CHECK;
void predict_measure_release(predict_measure *m);
/* After a failure: what was measured took its time.  If there is any, its folder stays, which the error then
 * says; the stop that somebody asked for leaves none. */
void predict_measure_keep(predict_measure *m, ls_err *err);

#endif
