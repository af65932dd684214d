/* train.h: runs an experiment: the loop from the first sample to the last checkpoint.
 *
 * Everything a run leaves behind is in its directory (runs/run.h); everything it prints goes through the
 * reporter (reporter.h).  A run that was stopped, killed or has finished its epochs can be continued from its
 * last checkpoint and then gives the same bits as one that never stopped. */
#ifndef LS_TRAIN_TRAIN_H
#define LS_TRAIN_TRAIN_H

#include <jansson.h>
#include <signal.h>

#include "comm/comm.h"
#include "config/experiment.h"
#include "runs/last_words.h"
#include "runs/run.h"

typedef struct ls_train_options {
    int threads;
    ls_comm *comm;               /* of this rank; NULL: alone */
    ls_run *run;                 /* of rank 0: the directory, which it writes; of other ranks: unused */
    bool resume;                 /* go on from the run's last checkpoint, if there is one */
    const ls_experiment *before; /* of a resumed run: its settings so far; NULL: not known, or the same */
    bool json, quiet;
    /* Set by signal handlers: 1 asks for a checkpoint and an end, 2 for an end now.  May be NULL. */
    const volatile sig_atomic_t *stop;
    ls_last_words *last_words; /* for a handler that ends the program; may be NULL */
} ls_train_options;

/* Of a run that is complete already nothing is done but to say so.
 * *summary is the content of summary.json, to be released by json_decref, also of a run that failed after it
 * began; NULL when there is none.  *stopped: the run ended on request, after a checkpoint. */
ls_status ls_train(const ls_experiment *x, const ls_train_options *o, json_t **summary, bool *stopped,
                   ls_err *err) LS_MUST_CHECK;

/* The test pass alone, with the variables of `weights`: a checkpoint or a safetensors file. */
ls_status ls_train_eval(const ls_experiment *x, const ls_train_options *o, const char *weights,
                        json_t **result, ls_err *err) LS_MUST_CHECK;

#endif
