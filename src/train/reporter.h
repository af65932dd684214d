/* reporter.h: everything a run tells while it goes on: terminal, JSON lines, metrics.jsonl, TensorBoard.
 *
 * Tags are those of the published runs: train/loss_step, train/loss_epoch, val/loss_epoch, test/loss_epoch
 * and so on for every metric.  Steps are counted from 0, as there.  Reports never fail a run once they are
 * open.  Ranks that do not lead have no report: NULL, to which nothing is told. */
#ifndef LS_TRAIN_REPORTER_H
#define LS_TRAIN_REPORTER_H

#include <jansson.h>

#include "config/experiment.h"
#include "runs/run.h"
#include "train/counters.h"
#include "train/runlog.h"
#include "train/session.h"

typedef struct ls_reporter_options {
    const ls_experiment *experiment;
    const char *folder;
    ls_run *run;                   /* nothing is written once it is somebody else's; NULL: always */
    int64_t resumed_at;            /* the step; -1: a new run */
    bool validates;                /* that step is still to be validated (counters.h: owed) */
    const ls_experiment *before;   /* settings of a resumed run so far; NULL: the same */
    int64_t step_samples;          /* that a step has where settings speak of steps */
    int64_t total_steps, n_epochs; /* at the end: updates made, and epochs, begun ones included */
    int64_t epoch_samples, batch;
    const ls_lr_schedule *schedule;
    ls_session *session;
    const ls_dataset *test, *val; /* val NULL: the test set is for validation, too */
    const json_t *init;           /* the weights that the run started from (train/init.h); NULL: none */
    ls_runlog *log;               /* everything said is noted there; may be NULL */
    bool json, quiet;
} ls_reporter_options;

typedef struct ls_reporter ls_reporter;

/* Opens the files and says what is about to happen. */
ls_status ls_reporter_open(ls_reporter **out, const ls_reporter_options *o, ls_err *err) LS_MUST_CHECK;
void ls_reporter_close(ls_reporter *r); /* accepts NULL */

/* After a step; `now` holds the step's own metrics.  `due`: they are written; the terminal has them anyway.
 */
void ls_reporter_step(ls_reporter *r, const ls_counters *c, const ls_metric_sums *now, double lr, double rate,
                      bool due);
/* At the end of an epoch, while c->sums still has it. */
void ls_reporter_epoch(ls_reporter *r, const ls_counters *c);
/* After an evaluation. */
void ls_reporter_validation(ls_reporter *r, const ls_counters *c, const ls_metric_sums *sums);
/* Where scalars of others go, who come by between reports; NULL where there is no report. */
struct ls_events *ls_reporter_events(ls_reporter *r);
/* One line between the steps, to the terminal and the log. */
void ls_reporter_note_line(ls_reporter *r, const char *format, ...) LS_PRINTF(2, 3);
/* Pictures of the trial's images, once for every step. */
void ls_reporter_samples(ls_reporter *r, const ls_counters *c);
/* Everything reported so far is on the disk when this returns: before a checkpoint that counts on it. */
void ls_reporter_flush(ls_reporter *r);
/* What could not be written so far, as "missing": {"metrics": lines, "events": records, "log": pieces}, into
 * `summary`; nothing when all is there. */
void ls_reporter_add_missing(ls_reporter *r, json_t *summary);
/* `test` is NULL when the run was stopped. */
void ls_reporter_end(ls_reporter *r, const ls_counters *c, const ls_metric_sums *test, const json_t *summary);
/* The run ends by an error, which the caller prints: the bar goes, the log gets the text. */
void ls_reporter_failure(ls_reporter *r, const ls_err *why);

#endif
