/* run_pages.h: what runs have left behind (history.h, timeline.h) as a document (report/report.h): a table of
 * the runs, curves of every metric with the runs overlaid, throughput over time, the ledger, one step's
 * timeline. */
#ifndef LS_TRAIN_RUN_PAGES_H
#define LS_TRAIN_RUN_PAGES_H

#include "report/report.h"
#include "train/history.h"

enum { LS_RUN_PAGES_MOST = 32 }; /* runs in one document: more cannot be told apart */

/* Adds everything to `page`.  Reads the runs' traces, and says LS_DATA of a damaged one. */
ls_status ls_run_pages(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err) LS_MUST_CHECK;

/* -- its parts ---------------------------------------------------------------------------------------------
 */

/* Losses, accuracies, other metrics, learning rates: a chart for each name (run_curves.c). */
ls_status ls_run_pages_curves(ls_report *page, const ls_past_run *runs, int n_runs,
                              ls_err *err) LS_MUST_CHECK;

#endif
