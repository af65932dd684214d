/* replace.h: writes a whole file so that readers see the old one or the new one, never a part. */
#ifndef LS_BASE_REPLACE_H
#define LS_BASE_REPLACE_H

#include <stddef.h>

#include "lockstep/status.h"

/* Writes `n` bytes beside `path`, waits until they are on the disk and renames; LS_IO names the file.  The
 * folder must be there.  Two processes that write the same path do not disturb each other: the last one
 * wins. */
ls_status ls_replace_file(const char *path, const void *bytes, size_t n, ls_err *err) LS_MUST_CHECK;

#endif
