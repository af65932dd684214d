/* run.h: what the files of the training loop share: begin.c opens a run, loop.c goes through it. */
#ifndef LS_TRAIN_RUN_H
#define LS_TRAIN_RUN_H

#include "ckpt/ckpt.h"
#include "data/loader.h"
#include "runs/run.h"
#include "train/agenda.h"
#include "train/best.h"
#include "train/evaluate.h"
#include "train/gauges.h"
#include "train/reporter.h"
#include "train/runlog.h"
#include "train/samples.h"
#include "train/stepper.h"
#include "train/summary.h"
#include "train/train.h"

/* A step that is done, but for what follows from its metrics. */
typedef struct lsi_awaited {
    ls_underway metrics; /* plan NULL: there is no such step, or they have come */
    ls_counters c;       /* when it was done */
    double lr;
    bool report;
    double begun;        /* by the clock */
    ls_step_times times; /* of the host's part */
    bool come;           /* the metrics are here, and nothing has followed from them yet */
    ls_metric_sums now;  /* then */
} lsi_awaited;

/* Everything a run holds while it goes on. */
typedef struct lsi_run {
    const ls_experiment *x;
    const ls_train_options *o;
    ls_config *cfg;
    ls_session session;
    ls_run_paths dir;
    bool summary_failed;            /* the last one could not be written, which was said */
    bool anew;                      /* begins from the beginning: rank 0's answer, shared with all */
    bool resumed;                   /* goes on from a checkpoint */
    ls_dataset *train, *test, *val; /* val NULL: the test set is for validation, too */
    ls_loader *loader;
    ls_ckpt_writer *writer;
    ls_runlog *log;
    ls_reporter *report;
    ls_gauges *gauges; /* of a machine's first rank, where its device has some */
    ls_counters c;
    ls_lr_schedule schedule;
    ls_summary summary;
    ls_stepper stepper;
    ls_update update;
    ls_ruler ruler;      /* what settings in steps and epochs mean */
    int64_t total_steps; /* at which training ends, by the ruler */
    ls_agenda agenda;    /* rank 0's, which decides */
    ls_best best;        /* what is better */
    double started;      /* clock of this process's first step */
    double lr;           /* of the newest update */
    ls_step_times now;   /* of the update that goes on */
    lsi_awaited awaited; /* on a device with queues: the newest step, until the next has begun */
    double over;         /* then: when the last step that is known to be over was, by the clock */
    int64_t saved;       /* samples passed when a checkpoint was last due in this process; -1: never */
    ls_samples
        *samples; /* on other ranks than 0, where these help with pictures; and the step of the newest */
    int64_t sampled;
    bool ended;       /* all is done, or there was no better result for too long */
    bool stopped;     /* to go on later */
    bool nothing;     /* the run was complete already */
    bool diverged;    /* the last step's metrics were not finite */
    bool overflowing; /* the last step's gradients were not */
} lsi_run;

/* The session, the data sets, and what follows from their sizes. */
ls_status lsi_run_open_data(lsi_run *r, ls_err *err) LS_MUST_CHECK;
/* The session and one data set, for those who do not train: other sets need not be there.  `rows`: what comes
 * out is wanted sample by sample, and labels need not be there, either. */
ls_status lsi_run_open_split(lsi_run *r, ls_split split, bool rows, const ls_dataset **data,
                             ls_err *err) LS_MUST_CHECK;
/* All of it: data, run directory, the newest checkpoint if it is to be resumed, loader and report. */
ls_status lsi_run_begin(lsi_run *r, ls_err *err) LS_MUST_CHECK;

/* The other ranks must not wait for this one, nor take its leaving for a disagreement; of a real one all
 * know. */
void lsi_run_tell_others(const lsi_run *r, const ls_err *why);
/* Frees what the run holds, however far it came. */
void lsi_run_release(lsi_run *r);

/* Whether this is rank 0, which alone writes. */
bool lsi_run_leads(const lsi_run *r);
/* Whether train.early_stop ends the training: by numbers that are equal on all ranks. */
bool lsi_run_is_stuck(const lsi_run *r);
/* Of all epochs. */
int64_t lsi_run_samples(const lsi_run *r);
/* The moment at which so many samples have been seen, by this rank's clock. */
ls_moment lsi_run_moment(const lsi_run *r, int64_t samples);
/* Of everything until now. */
ls_step_times lsi_run_times(const lsi_run *r);
/* What this process has spent, into the summary; the ledger is made from it. */
void lsi_run_note_time(lsi_run *r);
/* What a checkpoint holds besides variables; NULL: no memory. */
json_t *lsi_run_checkpoint_state(const lsi_run *r, const ls_counters *c);
/* Every sample of `data` once; `outputs`: those of the trial are written into the run directory; answers of a
 * classifier are counted in `confusion` (NULL: they are not).  Collective. */
ls_status lsi_run_evaluate(lsi_run *r, const ls_dataset *data, bool outputs, struct ls_confusion *confusion,
                           ls_metric_sums *sums, ls_err *err) LS_MUST_CHECK;
/* The test at the end, with the weights that train.test_weights says; afterwards the variables are the last
 * ones again.  Notes in the summary which were tested.  LS_CANCELLED with session.given_up as of ls_evaluate.
 * Collective. */
ls_status lsi_run_test(lsi_run *r, bool outputs, ls_metric_sums *sums, ls_err *err) LS_MUST_CHECK;
/* Writes the summary as it would be if the run ended now. */
ls_status lsi_run_summarise(lsi_run *r, const char *state, const ls_metric_sums *test, const char *error,
                            json_t **out, ls_err *err);
/* Between steps: what the gauges showed since the last time goes where it belongs. */
void lsi_run_look(lsi_run *r);
void lsi_run_end_gauges(lsi_run *r);
/* While the run goes on.  A summary that cannot be written is worth a warning, not the run. */
void lsi_run_summarise_running(lsi_run *r);

#endif
