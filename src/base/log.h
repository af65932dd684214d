/* log.h: messages for people and logs, to standard error.
 *
 * One line per call, written with a single write so that lines of several threads or ranks never mix.
 * The level comes from LOCKSTEP_LOG (error, warn, info, debug; default warn) unless set in code. */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include "lockstep/status.h"

typedef enum ls_log_level { LS_LOG_ERROR, LS_LOG_WARN, LS_LOG_INFO, LS_LOG_DEBUG } ls_log_level;

void ls_log_set_level(ls_log_level level);
/* False with the level untouched when `name` is none of the four names. */
int ls_log_set_level_by_name(const char *name);
ls_log_level ls_log_get_level(void);

/* "lockstep: warning: ..." (no prefix word at info and debug level other than "lockstep: "). */
void ls_log(ls_log_level level, const char *fmt, ...) LS_PRINTF(2, 3);

#endif
