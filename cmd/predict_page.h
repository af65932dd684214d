/* predict_page.h: the parts of the page of `lockstep predict`, each a file's. */
#ifndef LS_CMD_PREDICT_PAGE_H
#define LS_CMD_PREDICT_PAGE_H

#include "predict_table.h"
#include "report/report.h"

/* Where the time of a step goes, for every number of ranks; and one step in time with what would help, at a
 * number of ranks that the reader chooses, as the strategy where there are several. */
ls_status predict_page_steps(ls_report *doc, const predict_table *t, ls_err *err) LS_MUST_CHECK;

#endif
