/* reporter_text.h: what a run says to people at its beginning and its end.  Part of the reporter. */
#ifndef LS_TRAIN_REPORTER_TEXT_H
#define LS_TRAIN_REPORTER_TEXT_H

#include "base/text.h"
#include "train/reporter.h"

/* The table of layers, the data, the learning rate, the run.  When memory runs out, `out` is left failed. */
void lsi_report_beginning(ls_text *out, const ls_reporter_options *o);
/* Metrics, time, speed, and where things are.  `test` is NULL when the run was stopped. */
void lsi_report_ending(ls_text *out, const ls_reporter_options *o, const ls_counters *c,
                       const ls_metric_sums *test, const json_t *summary);

#endif
