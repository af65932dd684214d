/* json.h: JSON in files and texts. */
#ifndef LS_BASE_JSON_H
#define LS_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/text.h"
#include "lockstep/status.h"

/* How files are written: a member a line, numbers with nine digits. */
#define LS_JSON_FILE_FLAGS (JSON_INDENT(1) | JSON_REAL_PRECISION(9))
#define LS_JSON_FILE_MAX   ((size_t)16 << 20) /* bytes; no description or summary has more */

/* The JSON value in a plain file of at most `most` bytes; the caller's to json_decref.  LS_DATA names the
 * file and the line that is none. */
ls_status ls_json_read(json_t **out, const char *path, size_t most, ls_err *err) LS_MUST_CHECK;
/* Replaces the file (base/replace.h) by the value and a line's end. */
ls_status ls_json_write(const char *path, const json_t *value, ls_err *err) LS_MUST_CHECK;
/* Appends the value, with jansson's flags; `to->failed` when it cannot be had. */
void ls_json_add(ls_text *to, const json_t *value, size_t flags);

enum { LS_JSON_SHOWN = 80 }; /* bytes of a value that a message shows */
/* A value as a file has it, if it is short; else what it is.  Returns buf. */
const char *ls_json_show(const json_t *value, char buf[LS_JSON_SHOWN]);

#endif
