/* whole.h: reads whole files of limited size. */
#ifndef LS_BASE_WHOLE_H
#define LS_BASE_WHOLE_H

#include <stddef.h>

#include "lockstep/status.h"

/* *out has the bytes and a NUL after them, *n without it; the caller's to ls_free.  LS_DATA, with the file's
 * name, when it cannot be read or has more than `most` bytes.  A pipe is read to its end. */
ls_status ls_whole_file(char **out, size_t *n, const char *path, size_t most, ls_err *err) LS_MUST_CHECK;
/* The same, but LS_DATA for what is no plain file: one never waits for somebody to write into a pipe. */
ls_status ls_whole_plain(char **out, size_t *n, const char *path, size_t most, ls_err *err) LS_MUST_CHECK;

#endif
