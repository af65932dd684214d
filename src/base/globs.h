/* globs.h: lists of patterns as users write them: "fc.*,layer4.?.bn*". */
#ifndef LS_BASE_GLOBS_H
#define LS_BASE_GLOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/status.h"

/* The next pattern of *at, which moves on, into `glob` (LS_GLOB_MAX bytes); false at the end.  Commas
 * separate patterns; spaces around them do not count, and neither do empty ones. */
enum { LS_GLOB_MAX = 256 };
bool ls_globs_next(const char **at, char *glob);
/* Whether one of the patterns matches the whole of `name` ('*': anything, '?': one character). */
bool ls_globs_match(const char *list, const char *name);
/* LS_INVALID when a pattern of the list matches none of the n names: the text begins with `what`, names the
 * pattern and the names that come near. */
ls_status ls_globs_check(const char *list, const char *const *names, size_t n, const char *what,
                         ls_err *err) LS_MUST_CHECK;

#endif
