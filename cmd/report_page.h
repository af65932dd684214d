/* report_page.h: the page that `lockstep report` makes of runs, for other commands. */
#ifndef LS_CMD_REPORT_PAGE_H
#define LS_CMD_REPORT_PAGE_H

#include "cli.h"
#include "train/run_pages.h"

/* Writes the page of `n` runs, at most LS_RUN_PAGES_MOST, and says where it is.  Returns the exit code. */
int report_of_runs(const char *const *paths, int n, const cli_args *args);

#endif
