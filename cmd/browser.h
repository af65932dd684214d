/* browser.h: shows a page. */
#ifndef LS_CMD_BROWSER_H
#define LS_CMD_BROWSER_H

#include "lockstep/status.h"

/* Starts what $BROWSER names (programs separated by ':', the first that works; without it xdg-open) with the
 * whole path of `page`, and does not wait for its end.  LS_UNSUPPORTED when there is none, or when it fails
 * within two seconds. */
ls_status browser_open(const char *page, ls_err *err) LS_MUST_CHECK;

#endif
