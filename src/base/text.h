/* text.h: a growing string, nearest-name search and number formatting for messages and reports. */
#ifndef LS_BASE_TEXT_H
#define LS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* Starts as {0}; `data` is NULL or NUL-terminated.  When memory runs out, `failed` is set, further appends
 * do nothing, and what was there stays. */
typedef struct ls_text {
    char *data;
    size_t length, capacity;
    bool failed;
} ls_text;

void ls_text_add(ls_text *t, const char *fmt, ...) LS_PRINTF(2, 3);
/* `word` so that a shell reads exactly it: plain where that is safe, else in single quotes. */
void ls_text_add_quoted(ls_text *t, const char *word);
/* The same into `buf`, for commands that are shown to be copied; a word that does not fit is "...", since
 * half of one would be another command.  Returns buf. */
const char *ls_text_quoted(const char *word, char *buf, size_t size);
void ls_text_release(ls_text *t); /* frees and zeroes */
/* snprintf, where what does not fit is cut before a character of UTF-8 and never inside one.  Returns buf. */
const char *ls_text_fit(char *buf, size_t size, const char *fmt, ...) LS_PRINTF(3, 4);

/* The candidate with the smallest edit distance to `word`, or NULL when none is near enough to be meant
 * (distance at most a third of the longer word, rounded up). */
const char *ls_text_nearest(const char *word, const char *const *candidates, size_t n);

/* "1.25 GiB", "87.4 KiB", "12 B" into `buf` (at least 32 bytes); returns buf. */
const char *ls_text_bytes(double bytes, char *buf);
/* The other way round: "16GiB", "1.5 TiB", "800MB", "4096".  K, M, G, T with or without "iB" are powers of
 * 1024, kB, MB, GB, TB powers of 1000.  LS_INVALID, naming `what`, for anything else and for less than a
 * byte.
 */
ls_status ls_text_parse_bytes(const char *text, const char *what, size_t *out, ls_err *err) LS_MUST_CHECK;
/* "2.61 M", "47.85 G", "12" with SI steps of 1000 into `buf` (at least 32 bytes); returns buf. */
const char *ls_text_si(double value, char *buf);
/* "11,181,642" into `buf` (at least 32 bytes); returns buf. */
const char *ls_text_count(int64_t value, char *buf);

/* Whether the shell pattern (fnmatch: '*', '?', '[...]', and '\\' before one that is meant) matches the whole
 * of `text`: "D.*" matches "D.h0.weight". */
bool ls_text_glob(const char *pattern, const char *text);

#endif
