/* log.h: messages for people and logs, to standard error.
 *
 * One line per call, written with a single write so that lines of several threads or ranks never mix.
 * The level comes from LOCKSTEP_LOG (error, warn, info, debug; default warn) unless set in code.  A program
 * that draws on the terminal or keeps a file takes the lines over with a hook. */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/status.h"

typedef enum ls_log_level { LS_LOG_ERROR, LS_LOG_WARN, LS_LOG_INFO, LS_LOG_DEBUG } ls_log_level;

void ls_log_set_level(ls_log_level level);
/* False with the level untouched when `name` is none of the four names. */
int ls_log_set_level_by_name(const char *name);
ls_log_level ls_log_get_level(void);

/* "lockstep: warning: ..." (no prefix word at info and debug level other than "lockstep: "). */
void ls_log(ls_log_level level, const char *fmt, ...) LS_PRINTF(2, 3);

/* Receives whole lines, with their newline, instead of standard error: those of level `keep` and more urgent
 * ones, and all that would be shown without it; `shown` says whether this one would.  Calls come from any
 * thread, one at a time, and must not log. */
typedef struct ls_log_hook {
    ls_log_level keep;
    void (*line)(void *arg, ls_log_level level, bool shown, const char *line, size_t n);
    void *arg;
} ls_log_hook;

/* Copies *hook; NULL: standard error again.  The hook before is not called any more once this returns. */
void ls_log_set_hook(const ls_log_hook *hook);

#endif
