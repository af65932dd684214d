/* run_pages.h: what runs have left behind (history.h, timeline.h) as a document (report/report.h): a table of
 * the runs, their settings, curves of every metric with the runs overlaid, throughput and GPUs over time, the
 * ledger, one step's timeline. */
#ifndef LS_TRAIN_RUN_PAGES_H
#define LS_TRAIN_RUN_PAGES_H

#include "base/alloc.h"
#include "report/report.h"
#include "train/history.h"

enum { LS_RUN_PAGES_MOST = LS_CHART_COLOURS }; /* runs in one document: each has a colour of its own */

/* The runs of a document.  Run k has colour k + 1 everywhere. */
typedef struct ls_page_runs {
    const ls_past_run *runs;
    int n;
    /* How legends call them: the name, or the path where two have the same name, without the beginning that
     * all share where names are long. */
    const char *label[LS_RUN_PAGES_MOST];
} ls_page_runs;

/* Adds everything to `page`.  Reads the runs' settings and traces, and says LS_DATA of a damaged one. */
ls_status ls_run_pages(ls_report *page, const ls_past_run *runs, int n_runs, ls_err *err) LS_MUST_CHECK;

/* -- its parts ---------------------------------------------------------------------------------------------
 */

/* Chooses the labels, from `arena`; *shared is how many bytes of all names they leave out. */
ls_status ls_page_runs_of(ls_page_runs *out, const ls_past_run *runs, int n, ls_arena *arena, size_t *shared,
                          ls_err *err) LS_MUST_CHECK;
/* In which settings the runs differ, and what all have (run_settings.c). */
ls_status ls_run_pages_settings(ls_report *page, const ls_page_runs *p, ls_err *err) LS_MUST_CHECK;
/* Losses, accuracies, other metrics, learning rates: a chart for each name (run_curves.c). */
ls_status ls_run_pages_curves(ls_report *page, const ls_page_runs *p, ls_err *err) LS_MUST_CHECK;
/* Samples per second over time (run_throughput.c). */
ls_status ls_run_pages_throughput(ls_report *page, const ls_page_runs *p, ls_err *err) LS_MUST_CHECK;
/* Load, memory, power and temperature of GPUs over time, of runs that have them (run_gauges.c). */
ls_status ls_run_pages_gauges(ls_report *page, const ls_page_runs *p, ls_err *err) LS_MUST_CHECK;

#endif
