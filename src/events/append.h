/* append.h: a file that grows by whole records and never stops a run.
 *
 * A record (of TensorBoard's, or a line of text) is written by one write call.  When that fails, as on a full
 * disk, the file is cut back to its last whole record, one warning is given, and this record and the later
 * ones are kept in memory (up to LS_APPEND_KEEP bytes) and tried again: with a later record a second
 * afterwards, at every flush, and at the end. What could never be written is counted and said. */
#ifndef LS_EVENTS_APPEND_H
#define LS_EVENTS_APPEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#define LS_APPEND_KEEP ((size_t)16 << 20)

typedef struct ls_append {
    int fd;
    char *path;       /* owned */
    const char *what; /* for messages: "TensorBoard events" */
    int64_t bytes;    /* length of the file: the end of its last whole record */
    int64_t dropped;  /* records lost for good */
    /* Records that wait for the disk, the oldest first. */
    char *kept;
    size_t *lengths;
    size_t n_kept, n_waiting, kept_capacity, lengths_capacity;
    double next_try;
    int cause; /* errno of the last failure */
    bool warned, sync_failed;
    /* Gets a message, a line without its end; NULL: the log. */
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
} ls_append;

/* Opens `path` for appending; `flags` are added to open(2)'s.  LS_IO with errno kept, LS_NOMEM. */
ls_status ls_append_open(ls_append *a, const char *path, int flags, const char *what,
                         ls_err *err) LS_MUST_CHECK;
void ls_append_write(ls_append *a, const void *data, size_t n);
/* The record could not even be made, for lack of memory. */
void ls_append_lost(ls_append *a);
/* Tries again what waits, then waits until the file is on the disk. */
void ls_append_flush(ls_append *a);
/* Records that are not in the file: lost, or waiting. */
int64_t ls_append_missing(const ls_append *a);
/* Flushes, closes, and says how much was lost; accepts one that was never opened ({.fd = -1}). */
void ls_append_close(ls_append *a);

#endif
